//! The extension trait of [`World`].

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    LoadError, SaveError, SavedTimers, Unsavable, load_timers, save_all, save_entity, save_timers,
};
use crate::timer::write_timer_states;

/// Saves the timers and messages of a [`World`], and loads them.
pub trait SaveWorldExt {
    /// Writes the state of every timer out, so that the components can be serialized.
    ///
    /// Call this right before you serialize [`Timer`](crate::Timer)s and
    /// [`DespawnAfter`](crate::DespawnAfter)s with serde, by reflection, or as a `DynamicWorld`. Their
    /// serialized form then holds their state: the remaining time, the number of firings, and so on.
    /// Without this call, serializing an armed timer is an error. The states hold until
    /// the timer changes, the next frame or fixed step begins, a clock is disabled, fast-forwarded or
    /// removed, or, in a handler, the next timer fires. The components of [`Clock`](crate::Clock)s hold
    /// their times just as long.
    ///
    /// Entities that await the next run to despawn are marked as
    /// [`Finished`](crate::save::Finished).
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*, save::SaveWorldExt};
    /// use bevy_time::TimePlugin;
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()));
    /// let bomb = app.world_mut().spawn(Timer::after(3.0)).id();
    /// assert!(ron::to_string(app.world().get::<Timer>(bomb).unwrap()).is_err());
    ///
    /// app.world_mut().write_timer_states();
    /// assert!(ron::to_string(app.world().get::<Timer>(bomb).unwrap()).is_ok());
    /// ```
    fn write_timer_states(&mut self);

    /// Saves all timers of this world, their owners and their clocks, and all
    /// [messages](crate::save#messages) on their way.
    ///
    /// # Errors
    ///
    /// Returns [`SaveError`](crate::save::SaveError) in a world without the plugin, if the action of
    /// a timer is a closure, such as a delayed command, and if a message on its way is neither a
    /// [`Packet`](crate::message::Packet) nor has a [codec](crate::message::MessageWorldExt::add_message_codec).
    /// The error lists all of these, and [`save_timers_without_closures`](Self::save_timers_without_closures)
    /// leaves them out.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers, owners, clocks and messages on their way.
    fn save_timers(&mut self) -> Result<SavedTimers, SaveError>;

    /// Saves all timers of this world whose actions are data, and all messages on their way that are data.
    /// Returns those that it left out.
    fn save_timers_without_closures(&mut self) -> (SavedTimers, Vec<Unsavable>);

    /// Saves the timers of an entity, everything that it owns, and the messages on their way to these.
    ///
    /// The clocks on which they run are saved only if the entity owns them. To load the result, map
    /// each other clock to a clock. If another entity has sent a request that is still on its way, map that
    /// entity and its request. Messages to all and in turn are not to this entity, and are left out.
    ///
    /// # Errors
    ///
    /// Returns [`SaveError`](crate::save::SaveError) if the entity does not exist, in a world without the
    /// plugin, if the action of a timer is a closure, and if a message is neither a
    /// [`Packet`](crate::message::Packet) nor has a codec.
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
    /// if the data contradicts itself, the map or the world, or if a message can't be decoded.
    fn load_timers(
        &mut self,
        saved: &SavedTimers,
        entities: &mut EntityHashMap<Entity>,
    ) -> Result<(), LoadError>;
}

impl SaveWorldExt for World {
    fn write_timer_states(&mut self) {
        write_timer_states(self);
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
