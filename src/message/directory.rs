//! The names by which other worlds know this world and its entities.

use bevy_ecs::prelude::*;
use bevy_platform::collections::HashMap;
#[cfg(feature = "worlds")]
use bevy_platform::sync::Arc;

use super::request::Request;

/// The names by which other worlds know this world and its entities.
#[derive(Resource, Default)]
pub(crate) struct Directory {
    entities: HashMap<u64, Entity>,
    /// The random id of this world, once it has sent a request to another world.
    world: Option<u64>,
    /// Called for each key that is bound or unbound.
    #[cfg(feature = "worlds")]
    listener: Option<Arc<KeyListener>>,
}

impl Directory {
    /// Returns the entity with a key.
    pub(super) fn entity(&self, key: u64) -> Option<Entity> {
        self.entities.get(&key).copied()
    }

    /// Returns a request as seen from this world: a request that was made here has an entity.
    pub(crate) fn resolve(&self, request: Request) -> Request {
        request.seen_from(self.world)
    }
}

/// Called with each key that is bound (`true`) or unbound (`false`).
#[cfg(feature = "worlds")]
pub(crate) type KeyListener = dyn Fn(u64, bool) + Send + Sync;

#[cfg(feature = "worlds")]
impl Directory {
    /// Returns the id of this world. No other world has the same id, in this process or any other.
    pub(crate) fn world(&mut self) -> u64 {
        use core::hash::BuildHasher;
        use std::hash::RandomState;

        let random = || RandomState::new().hash_one("world");
        *self.world.get_or_insert_with(random)
    }

    /// Gives an entity a key, and returns the entity that had the key before, if any.
    pub(crate) fn bind(&mut self, key: u64, entity: Entity) -> Option<Entity> {
        let before = self.entities.insert(key, entity);
        if let Some(listener) = &self.listener {
            listener(key, true);
        }
        before
    }

    /// Takes a key from an entity, if the entity still has it.
    pub(crate) fn unbind(&mut self, key: u64, entity: Entity) {
        if self.entity(key) == Some(entity) {
            self.entities.remove(&key);
            if let Some(listener) = &self.listener {
                listener(key, false);
            }
        }
    }

    /// Returns `true` if there is a listener.
    pub(crate) fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Sets the listener, and passes it all keys that are already bound.
    pub(crate) fn listen(&mut self, listener: Option<Arc<KeyListener>>) {
        if let Some(listener) = &listener {
            for &key in self.entities.keys() {
                listener(key, true);
            }
        }
        self.listener = listener;
    }
}
