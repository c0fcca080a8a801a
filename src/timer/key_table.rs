//! The timers of a world by key.

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::collections::{HashMap, HashSet};

use super::key_id::KeyId;

/// The entity that was last inserted with each key of each owner.
#[derive(Resource, Debug, Default)]
pub(crate) struct KeyTable {
    timers: HashMap<(Entity, KeyId), Entity>,
    /// The key of each timer in `timers`.
    keys: EntityHashMap<KeyId>,
    /// Every key that a timer of this world has had.
    used: HashSet<KeyId>,
}

impl KeyTable {
    /// Returns the entity with a key of an owner, if any.
    pub(super) fn get(&self, owner: Entity, key: KeyId) -> Option<Entity> {
        self.timers.get(&(owner, key)).copied()
    }

    /// Returns the key of a timer, if it has one.
    pub(super) fn key_of(&self, timer: Entity) -> Option<KeyId> {
        self.keys.get(&timer).copied()
    }

    /// Returns `true` if a timer of this world has, or had, this key.
    pub(super) fn is_used(&self, name: &str) -> bool {
        KeyId::find(name).is_some_and(|key| self.used.contains(&key))
    }

    /// Gives a key of an owner to an entity, and returns the entity that had it before.
    pub(super) fn insert(&mut self, owner: Entity, key: KeyId, entity: Entity) -> Option<Entity> {
        self.used.insert(key);
        self.keys.insert(entity, key);
        let earlier = self.timers.insert((owner, key), entity);
        earlier.filter(|&earlier| earlier != entity)
    }

    /// Frees a key of an owner, unless another entity has it by now.
    pub(super) fn remove(&mut self, owner: Entity, key: KeyId, entity: Entity) {
        self.keys.remove(&entity);
        if self.get(owner, key) == Some(entity) {
            self.timers.remove(&(owner, key));
        }
    }
}
