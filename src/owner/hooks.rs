//! The hooks of owners and keys.

use bevy_ecs::{prelude::*, world::DeferredWorld};

type Hook = fn(&mut DeferredWorld, Entity);

/// The functions that keep timers in sync with their owners and keys.
///
/// They belong to `timer/`, which imports the components. The plugin therefore passes them in. In a
/// world without the plugin, owners and keys are plain data.
#[derive(Resource, Clone, Copy)]
pub(crate) struct OwnerHooks {
    /// An entity got an owner.
    pub(crate) own: Hook,
    /// An entity got an owner that does not exist.
    pub(crate) orphan: Hook,
    /// An entity is about to lose its owner.
    pub(crate) disown: Hook,
    /// An entity got a key.
    pub(crate) take_key: Hook,
    /// An entity is about to lose its key.
    pub(crate) free_key: Hook,
}

impl OwnerHooks {
    /// Returns one of the hooks of a world.
    #[inline]
    pub(crate) fn of(world: &World, hook: impl FnOnce(&Self) -> Hook) -> Hook {
        world.get_resource().map_or(|_, _| (), hook)
    }
}
