//! What timers do when an entity gets or loses an owner or a key.

use bevy_ecs::{prelude::*, world::DeferredWorld};

type Hook = fn(&mut DeferredWorld, Entity);

/// The functions of `timer/` that the hooks of `OwnedBy` and `Keyed` call.
///
/// The plugin inserts them, because `timer/` imports these components and not the other way round. In a
/// world without the plugin, owners and keys are plain data.
#[derive(Resource, Clone, Copy)]
pub(crate) struct TimerHooks {
    /// An entity got an owner.
    pub(crate) on_own: Hook,
    /// An entity got an owner that does not exist.
    pub(crate) on_orphan: Hook,
    /// An entity is about to lose its owner.
    pub(crate) on_disown: Hook,
    /// An entity with an owner took the list of the owner past a mark.
    pub(crate) on_growth: Hook,
    /// An entity got a key.
    pub(crate) on_take_key: Hook,
    /// An entity is about to lose its key.
    pub(crate) on_free_key: Hook,
}

impl TimerHooks {
    /// Returns one of the hooks of a world.
    #[inline]
    pub(crate) fn of(world: &World, hook: impl FnOnce(&Self) -> Hook) -> Hook {
        world.get_resource().map_or(|_, _| (), hook)
    }
}
