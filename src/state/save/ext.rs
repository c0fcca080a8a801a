//! The extension trait of [`World`].

use alloc::{borrow::Cow, format, vec::Vec};

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    LoadError, SaveError, SavedTimers, Unsavable, load_timers, save_all, save_entity, save_timers,
};
use crate::state::component::{OlderComponent, SavedComponents};

/// Saves the timers and messages of a [`World`], and loads them.
pub trait SaveWorldExt {
    /// Saves the component `C` of your game with the timers, under a name.
    ///
    /// From here on, [`save_timers`](Self::save_timers), [`save_entity`](Self::save_entity),
    /// [moves](crate::moving) and [rollbacks](crate::rollback) treat it as a component of this crate: each entity
    /// that has one is saved, and a restore spawns and despawns it with the others. The entities to which the
    /// component refers [are mapped](bevy_ecs::entity::MapEntities), if its fields are marked `#[entities]`.
    ///
    /// On loading, and in a restore that spawns an entity again, a required
    /// [`MessageComponent`](crate::message::MessageComponent) or [`UpdateComponent`](crate::UpdateComponent) comes along.
    /// Your observers of `Add` and `Insert` run as for any other insertion. Other components of this crate that it
    /// requires or that an observer inserts on the entity, such as a `Timer`, are there only if they were there before.
    ///
    /// The data has the names of the fields, so a field that you add with `#[serde(default)]` can be missing in an earlier
    /// save. For any other change, use [`add_versioned_component`](Self::add_versioned_component). A component that can't
    /// be read after it was written is an error when it is saved. So is one that is nested deeper than 128 levels.
    ///
    /// # Panics
    ///
    /// Panics if the name or the component is registered already, for a resource and a component of this crate, and while
    /// a [snapshot](crate::rollback::TimerSnapshot) or a [mark](crate::rollback::ChangeMark) exists. Register all
    /// components at start-up.
    ///
    /// # Time complexity
    ///
    /// *O*(1). A [snapshot](crate::rollback::RollbackWorldExt::snapshot_timers) clones all components of this type, and a
    /// restore inserts those that have changed since.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*, save::SaveWorldExt};
    /// use bevy_ecs::{entity::EntityHashMap, prelude::*};
    /// use bevy_time::TimePlugin;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Component, Clone, Serialize, Deserialize)]
    /// struct Health(u32);
    ///
    /// #[derive(Component, Clone, Serialize, Deserialize)]
    /// struct Target(#[entities] Entity);
    ///
    /// fn game() -> App {
    ///     let mut app = App::new();
    ///     app.add_plugins((TimePlugin, DuePlugin::default()));
    ///     app.world_mut().add_saved_component::<Health>("health");
    ///     app.world_mut().add_saved_component::<Target>("target");
    ///     app
    /// }
    ///
    /// let mut before = game();
    /// let hero = before.world_mut().spawn(Health(10)).id();
    /// let bomb = before.world_mut().spawn((Target(hero), Timer::after(3.0))).id();
    /// let text = ron::to_string(&before.world_mut().save_timers()?)?;
    ///
    /// let mut after = game();
    /// let mut entities = EntityHashMap::default();
    /// after.world_mut().load_timers(&ron::from_str(&text)?, &mut entities)?;
    /// let target = after.world().get::<Target>(entities[&bomb]).unwrap().0;
    /// assert_eq!(target, entities[&hero]);
    /// assert_eq!(after.world().get::<Health>(target).unwrap().0, 10);
    /// # Ok::<(), BevyError>(())
    /// ```
    #[track_caller]
    fn add_saved_component<C: Component + Clone + Serialize + DeserializeOwned>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
    );

    /// Saves the component `C` of your game with the timers, as [`add_saved_component`](Self::add_saved_component) does,
    /// in a version of its own.
    ///
    /// Raise the version whenever the serialized form of the component changes. `read_older` gets what earlier versions
    /// have saved. A component that was added without a version has version 1.
    ///
    /// A later version than this one is a [`LoadError`](crate::save::LoadError), and so is an error of `read_older`.
    ///
    /// # Panics
    ///
    /// Panics as `add_saved_component` does, and if `version` is zero.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{prelude::*, save::SaveWorldExt};
    /// use bevy_ecs::prelude::*;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Component, Clone, Serialize, Deserialize)]
    /// struct Health {
    ///     now: u32,
    ///     most: u32,
    /// }
    ///
    /// /// Version 1 of `Health`.
    /// #[derive(Deserialize)]
    /// struct HealthV1(u32);
    ///
    /// let mut app = App::new();
    /// app.add_plugins(DuePlugin::default());
    /// app.world_mut().add_versioned_component("health", 2, |older| match older.version() {
    ///     1 => {
    ///         let HealthV1(now) = older.read()?;
    ///         Ok(Health { now, most: 100 })
    ///     }
    ///     version => Err(format!("no release has saved version {version}").into()),
    /// });
    /// ```
    #[track_caller]
    fn add_versioned_component<C: Component + Clone + Serialize + DeserializeOwned>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        version: u32,
        read_older: impl Fn(OlderComponent) -> Result<C> + Send + Sync + 'static,
    );

    /// Saves all timers of this world, their owners and their clocks, all [messages](crate::save#messages) on their
    /// way, and [your own components](Self::add_saved_component) with the entities to which they refer.
    ///
    /// # Errors
    ///
    /// Returns [`SaveError`](crate::save::SaveError) in a world without the plugin, if the action of
    /// a timer is a closure, such as a delayed command, if a message on its way is neither a
    /// [`Packet`](crate::message::Packet) nor has a [codec](crate::message::MessageWorldExt::add_message_codec), and
    /// if the `Serialize` of a [component of yours](Self::add_saved_component) fails.
    /// The error lists all of these, and [`save_timers_without_closures`](Self::save_timers_without_closures)
    /// leaves them out.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers, owners, clocks and messages on their way.
    fn save_timers(&mut self) -> Result<SavedTimers, SaveError>;

    /// Saves all timers of this world whose actions are data, and all messages on their way and components of yours
    /// that are data. Returns those that it left out.
    fn save_timers_without_closures(&mut self) -> (SavedTimers, Vec<Unsavable>);

    /// Saves the timers of an entity, everything that it owns, and the messages on their way to these.
    ///
    /// Pauses of these and modifiers of their clocks are saved, too, unless they belong to another entity, have a stable
    /// key, or are modifiers that pause another entity. The clocks on which the timers run are saved only if the entity owns them. To load the result, map
    /// each other clock to a clock, and each other entity to which a registered component refers to an entity. If
    /// another entity has sent a request that is still on its way, map that entity and its request. The result holds no
    /// messages to all and in turn.
    ///
    /// # Errors
    ///
    /// Returns [`SaveError`](crate::save::SaveError) if the entity does not exist, in a world without the
    /// plugin, if the action of a timer is a closure, if a message is neither a
    /// [`Packet`](crate::message::Packet) nor has a codec, and if the `Serialize` of a component of yours fails.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *m*) in the number *n* of entities that are saved, and the number *m* of messages and ends of
    /// timers that wait for the next run. Other timers cost nothing.
    fn save_entity(&mut self, entity: Entity) -> Result<SavedTimers, SaveError>;

    /// Loads saved timers and messages into this world.
    ///
    /// `entities` maps saved entities to entities of this world. It may already contain entities that
    /// your game has loaded. Each other saved entity is spawned and added to the map.
    ///
    /// A timer keeps its remaining time. With equal deadlines, it fires after the timers that are
    /// armed already, and before timers that are inserted later in this frame. If all timers of a world
    /// were saved, this also sets the built-in clocks, the number of random delays drawn so far, and
    /// the overstep of `Time<Fixed>`. Load them into a new app.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`](crate::save::LoadError), and leaves the world and the map as they were,
    /// if the data contradicts itself, the map or the world, or if a message or a component of yours can't be
    /// decoded.
    fn load_timers(
        &mut self,
        saved: &SavedTimers,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<(), LoadError>;
}

impl SaveWorldExt for World {
    #[track_caller]
    fn add_saved_component<C: Component + Clone + Serialize + DeserializeOwned>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
    ) {
        let none = |older: OlderComponent| {
            let version = older.version();
            Err(format!("it has version {version}, and its first version is 1").into())
        };
        SavedComponents::add::<C>(self, name.into(), 1, none);
    }

    #[track_caller]
    fn add_versioned_component<C: Component + Clone + Serialize + DeserializeOwned>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        version: u32,
        read_older: impl Fn(OlderComponent) -> Result<C> + Send + Sync + 'static,
    ) {
        assert!(version > 0, "the first version of a component is 1");
        SavedComponents::add(self, name.into(), version, read_older);
    }

    fn save_timers(&mut self) -> Result<SavedTimers, SaveError> {
        save_timers(self)
    }

    fn save_timers_without_closures(&mut self) -> (SavedTimers, Vec<Unsavable>) {
        save_all(self)
    }

    fn save_entity(&mut self, entity: Entity) -> Result<SavedTimers, SaveError> {
        save_entity(self, entity)
    }

    fn load_timers(
        &mut self,
        saved: &SavedTimers,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<(), LoadError> {
        load_timers(self, saved, entities)
    }
}
