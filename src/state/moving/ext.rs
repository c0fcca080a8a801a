//! The extension trait of [`World`].

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    HeldMail, MoveError, MovedEntity, TimePassed, commit_entity, copy_entities, export_entity,
    forget_entity, import_entities,
};

/// Moves entities out of a [`World`] and into it.
pub trait MoveWorldExt {
    /// Returns an entity as data for another world, with its timers, cooldowns, mail and open requests,
    /// and with everything that it owns.
    ///
    /// From here on the entity is [in transit](crate::moving::InTransit) until you
    /// [commit](Self::commit_entity) or [forget](Self::forget_entity) it. What you change on it
    /// meanwhile does not move. The module [`moving`](crate::moving) describes a move, and has an
    /// example.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError), and leaves the world as it was, if the entity
    /// does not exist or is in transit, if one of its timers has a closure, or if a message that waits
    /// for it is neither a [`Packet`](crate::message::Packet) nor has a
    /// [codec](crate::message::MessageWorldExt::add_message_codec). A request that waits for it must be a
    /// packet, and a reply must be able to reach the asking entity from another world, unless that entity moves
    /// along. Also fails in a timer handler.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that move, and the number *m* of messages and ends of
    /// timers that wait in the world.
    fn export_entity(&mut self, entity: Entity) -> Result<MovedEntity, MoveError>;

    /// Returns entities as data, as [`export_entity`](Self::export_entity) does, and leaves them as they
    /// are.
    ///
    /// Use it to store entities that must survive the end of the process: [import](Self::import_entity) and
    /// [commit](Self::commit_entity) the data in the next one.
    /// [`changed_since`](crate::rollback::RollbackWorldExt::changed_since) returns the entities to store again. An entity that two of these own is in the
    /// data of both.
    ///
    /// A message that waits and is no data is [left out](MovedEntity::left_out).
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) in place of each entity that `export_entity` would
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
    ///     moving::{HeldMail, MoveWorldExt, MovedEntity},
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
    ///     let hero = after.world_mut().import_entity(&copy, Duration::ZERO, &mut entities)?;
    ///     after.world_mut().commit_entity(hero, &HeldMail::default())?;
    /// }
    /// assert_eq!(after.world_mut().with_timers(|timers| timers.iter().count()), 2);
    /// # Ok::<(), BevyError>(())
    /// ```
    fn copy_entities(&mut self, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>>;

    /// Brings an exported entity into this world, and returns it.
    ///
    /// `on_the_way` is the time that has passed on the built-in clocks since the export: a `Duration` for all
    /// except the clock of frames, or the [time of each](crate::moving::TimePassed). Clocks of your own advance
    /// by it at their speed. `entities` maps exported
    /// entities to entities of this world, as for [`load_timers`](crate::save::SaveWorldExt::load_timers): map the clocks
    /// that do not move along, and the owner, if any. The entity comes without an owner, a clock or a pause of another
    /// entity that is not in the map, and Bevy's error handler gets a warning. A timer or a clock continues on
    /// [`ClockId::Virtual`](crate::ClockId::Virtual) then. What [refers](bevy_ecs::entity::MapEntities) to such an entity gets
    /// [`Entity::PLACEHOLDER`].
    ///
    /// The entity is [in transit](crate::moving::InTransit) until you [commit](Self::commit_entity) it,
    /// or [forget](Self::forget_entity) it if the old world keeps it.
    #[cfg_attr(
        feature = "worlds",
        doc = "
Its [`StableKey`](crate::worlds::StableKey) moves along: from here on, parcels for the key come to this world."
    )]
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError), and leaves the world and the map as they were,
    /// if the data contradicts itself, the map or the world, or if a message needs a codec that is not
    /// registered.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities, messages and components in the data and of entries in the map.
    fn import_entity(
        &mut self,
        moved: &MovedEntity,
        on_the_way: impl Into<TimePassed>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<Entity, MoveError>;

    /// Brings several entities into this world, as [`import_entity`](Self::import_entity) does. They find each other,
    /// whatever their order: the clock of one can drive the timers of another one, and they can pause each other.
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) in place of each entity that `import_entity` would refuse, or
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
    ///     moving::{HeldMail, MoveWorldExt, TimePassed},
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
    ///     copies.push(copy?);
    /// }
    ///
    /// let mut after = game();
    /// let copies: Vec<_> = copies.iter().map(|copy| (copy, TimePassed::default())).collect();
    /// let mut entities = EntityHashMap::default();
    /// for imported in after.world_mut().import_entities(&copies, &mut entities) {
    ///     after.world_mut().commit_entity(imported?, &HeldMail::default())?;
    /// }
    /// assert!(after.world().get::<PausedBy>(entities[&orc]).is_some());
    /// # Ok::<(), BevyError>(())
    /// ```
    fn import_entities(
        &mut self,
        moved: &[(&MovedEntity, TimePassed)],
        entities: &mut EntityHashMap<Entity>,
    ) -> Vec<Result<Entity, MoveError>>;

    /// Despawns an entity that continues in another world, with everything that it owns, and returns the
    /// mail that was held for it here.
    ///
    /// Nothing is reported as cancelled, completed or lost. Pass the mail to the
    /// [commit](Self::commit_entity) in the other world. Timers of other entities on a clock that moves
    /// along are cancelled with [`ClockGone`](crate::CancelReason::ClockGone).
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) if the entity is not in transit, or if a held
    /// message is not data, as for [`export_entity`](Self::export_entity). The entity then stays in
    /// transit, and nothing is lost: register a codec and try again, or commit the entity here.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities that move and of messages that wait in the world.
    fn forget_entity(&mut self, entity: Entity) -> Result<HeldMail, MoveError>;

    /// Ends the move of an entity in this world: its timers and callbacks run again.
    ///
    /// Pass the mail that the other world has held, or `&HeldMail::default()` if the entity was never
    /// imported. In the new world, it is delivered after the mail that was exported, and before the mail
    /// that has arrived there. In the old world, it is delivered after the mail that was held there.
    #[cfg_attr(
        feature = "worlds",
        doc = "Parcels for a [`StableKey`](crate::worlds::StableKey) keep the order in which they were sent."
    )]
    ///
    /// # Errors
    ///
    /// Returns [`MoveError`](crate::moving::MoveError) if the entity is not in transit, or if the mail
    /// is invalid. The entity then stays in transit.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of entities that move and of messages held for them, and of messages that wait
    /// in the world if the other world has held any.
    fn commit_entity(&mut self, entity: Entity, late: &HeldMail) -> Result<(), MoveError>;
}

impl MoveWorldExt for World {
    fn export_entity(&mut self, entity: Entity) -> Result<MovedEntity, MoveError> {
        export_entity(self, entity)
    }

    fn copy_entities(&mut self, entities: &[Entity]) -> Vec<Result<MovedEntity, MoveError>> {
        copy_entities(self, entities)
    }

    fn import_entity(
        &mut self,
        moved: &MovedEntity,
        on_the_way: impl Into<TimePassed>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<Entity, MoveError> {
        let moved = [(moved, on_the_way.into())];
        let imported = import_entities(self, &moved, entities).pop();
        imported.unwrap_or(Err(MoveError::NoSuchEntity(moved[0].0.entity())))
    }

    fn import_entities(
        &mut self,
        moved: &[(&MovedEntity, TimePassed)],
        entities: &mut EntityHashMap<Entity>,
    ) -> Vec<Result<Entity, MoveError>> {
        import_entities(self, moved, entities)
    }

    fn forget_entity(&mut self, entity: Entity) -> Result<HeldMail, MoveError> {
        forget_entity(self, entity)
    }

    fn commit_entity(&mut self, entity: Entity, late: &HeldMail) -> Result<(), MoveError> {
        commit_entity(self, entity, late)
    }
}
