//! The extension trait of [`World`].

use alloc::{vec, vec::Vec};

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    MoveError, MovedEntity, PutError, TimePassed, copy_entities, put_entities, take_entity,
};

/// Moves entities out of a [`World`] and into it.
pub trait MoveWorldExt {
    /// Takes an entity out of the world, with its timers, cooldowns, mail and open requests, and with everything that
    /// it owns.
    ///
    /// The entity and what it owns despawn. Nothing is reported as cancelled, completed or lost. Timers of other
    /// entities on a clock that moves along are cancelled with [`ClockGone`](crate::CancelReason::ClockGone). The
    /// module [`moving`](crate::moving) describes a move, and has an example.
    #[cfg_attr(
        feature = "worlds",
        doc = "
From here on, a parcel for the [`StableKey`](crate::worlds::StableKey) of the entity is refused, until the entity is put
into a world. Parcels that this world has accepted move along."
    )]
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError), and leaves the world as it was, if the entity
    /// does not exist, if one of its timers has a closure, or if a message that waits
    /// for it is neither a [`Packet`](crate::message::Packet) nor has a
    /// [codec](crate::message::MessageWorldExt::add_message_codec). A request that waits for it must be a
    /// packet, and a reply must be able to reach the asking entity from another world, unless that entity moves
    /// along. Also fails in a timer handler.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that move, and the number *m* of messages and ends of
    /// timers that wait in the world.
    fn take_entity(&mut self, entity: Entity) -> Result<MovedEntity, MoveError>;

    /// Returns entities as data, as [`take_entity`](Self::take_entity) does, and leaves them as they
    /// are.
    ///
    /// Use it to store entities that must survive the end of the process: [put](Self::put_entity) the data into the
    /// world of the next one.
    /// [`changed_since`](crate::rollback::RollbackWorldExt::changed_since) tells which ones to store again: the recipe
    /// `store_changes` in the [cookbook](crate::guide::cookbook) has the complete code. An entity that two of these own
    /// is in the data of both.
    ///
    /// A message that waits and can't be turned into data is [left out](MovedEntity::left_out).
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) in place of each entity that `take_entity` would
    /// refuse, except for [`MoveError::Mail`](crate::moving::MoveError::Mail).
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that are copied, and the number *m* of messages and ends
    /// of timers that wait in the world.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     Timer,
    ///     moving::{MoveWorldExt, MovedEntity},
    ///     prelude::*,
    /// };
    /// use bevy_ecs::{entity::EntityHashMap, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// fn game() -> App {
    ///     let mut app = App::new();
    ///     app.add_plugins((TimePlugin, DuePlugin::default()));
    ///     app
    /// }
    ///
    /// let mut before = game();
    /// let heroes = [2.0, 5.0].map(|secs| before.world_mut().spawn(Timer::after(secs)).id());
    /// let mut stored = Vec::new();
    /// for copy in before.world_mut().copy_entities(&heroes) {
    ///     stored.push(ron::to_string(&copy?)?);
    /// }
    /// drop(before);
    ///
    /// let mut after = game();
    /// for text in stored {
    ///     let copy: MovedEntity = ron::from_str(&text)?;
    ///     let mut entities = EntityHashMap::default();
    ///     after.world_mut().put_entity(copy, Duration::ZERO, &mut entities)?;
    /// }
    /// assert_eq!(after.world_mut().with_timers(|timers| timers.iter().count()), 2);
    /// # Ok::<(), BevyError>(())
    /// ```
    fn copy_entities(&mut self, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>>;

    /// Puts an entity that was taken or copied into this world, and returns it.
    ///
    /// `on_the_way` is the time that has passed on the built-in clocks since then: a `Duration` for all
    /// except the clock of frames, or the [time of each](crate::moving::TimePassed). Clocks of your own advance
    /// by it at their speed. `entities` maps entities of the other world
    /// to entities of this world, as for [`load_timers`](crate::save::SaveWorldExt::load_timers): map the clocks
    /// that do not move along, and the owner, if any. The entity comes without an owner, a clock or a pause of another
    /// entity that is not in the map, and Bevy's error handler gets a warning. A timer or a clock continues on
    /// [`ClockId::Virtual`](crate::ClockId::Virtual) then. What [refers](bevy_ecs::entity::MapEntities) to such an entity gets
    /// [`Entity::PLACEHOLDER`].
    ///
    /// The mail that moves along is delivered in the next run, after the messages that this world has already.
    #[cfg_attr(
        feature = "worlds",
        doc = "
The [`StableKey`](crate::worlds::StableKey) of the entity moves along: from here on, parcels for the key come to this world."
    )]
    ///
    /// # Errors
    ///
    /// Returns [`PutError`](crate::moving::PutError) with the entity, and leaves the world and the map as they were,
    /// if the data contradicts itself, the map or the world, or if a message needs a codec that is not
    /// registered.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities, messages and components in the data and of entries in the map.
    fn put_entity(
        &mut self,
        moved: MovedEntity,
        on_the_way: impl Into<TimePassed>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<Entity, PutError>;

    /// Puts several entities into this world, as [`put_entity`](Self::put_entity) does. They find each other,
    /// whatever their order: the clock of one can drive the timers of another one, and they can pause each other.
    ///
    /// # Errors
    ///
    /// Returns [`PutError`](crate::moving::PutError) in place of each entity that `put_entity` would refuse, or
    /// that contradicts an earlier one. The others come without it.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities, messages and components in the data and of entries in the map.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{
    ///     PausedBy,
    ///     moving::{MoveWorldExt, TimePassed},
    ///     prelude::*,
    ///     timer::Pauses,
    /// };
    /// use bevy_ecs::{entity::EntityHashMap, prelude::*};
    /// use bevy_time::TimePlugin;
    ///
    /// fn game() -> App {
    ///     let mut app = App::new();
    ///     app.add_plugins((TimePlugin, DuePlugin::default()));
    ///     app
    /// }
    ///
    /// let mut before = game();
    /// let orc = before.world_mut().spawn_empty().id();
    /// let mage = before.world_mut().spawn_empty().id();
    /// before.world_mut().spawn((OwnedBy(mage), Pauses(orc)));
    /// let mut copies = Vec::new();
    /// for copy in before.world_mut().copy_entities(&[orc, mage]) {
    ///     copies.push((copy?, TimePassed::default()));
    /// }
    ///
    /// let mut after = game();
    /// let mut entities = EntityHashMap::default();
    /// for put in after.world_mut().put_entities(copies, &mut entities) {
    ///     put?;
    /// }
    /// assert!(after.world().get::<PausedBy>(entities[&orc]).is_some());
    /// # Ok::<(), BevyError>(())
    /// ```
    fn put_entities(
        &mut self,
        moved: Vec<(MovedEntity, TimePassed)>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Vec<Result<Entity, PutError>>;
}

impl MoveWorldExt for World {
    fn take_entity(&mut self, entity: Entity) -> Result<MovedEntity, MoveError> {
        take_entity(self, entity)
    }

    fn copy_entities(&mut self, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>> {
        copy_entities(self, entities)
    }

    fn put_entity(
        &mut self,
        moved: MovedEntity,
        on_the_way: impl Into<TimePassed>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<Entity, PutError> {
        let put = put_entities(self, vec![(moved, on_the_way.into())], entities);
        put.into_iter().next().expect("one result for each entity")
    }

    fn put_entities(
        &mut self,
        moved: Vec<(MovedEntity, TimePassed)>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Vec<Result<Entity, PutError>> {
        put_entities(self, moved, entities)
    }
}
