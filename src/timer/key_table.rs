//! The timers of a world by key.

use alloc::string::String;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::collections::{HashMap, HashSet};

use super::key_id::KeyId;

/// The entity that was last inserted with each key of each owner.
#[derive(Resource, Clone, Debug, Default)]
pub(crate) struct KeyTable {
    timers: HashMap<(Entity, KeyId), Entity>,
    /// The key of each timer in `timers`.
    keys: EntityHashMap<KeyId>,
    /// The names of the keys that timers of this world have had, or that were reported. Only debug
    /// builds fill it.
    used: HashSet<String>,
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

    /// Notes the name of a key, and returns `true` if it is new.
    pub(super) fn use_name(&mut self, name: &str) -> bool {
        !self.used.contains(name) && self.used.insert(name.into())
    }

    /// Changes the entities of all timers and owners.
    pub(crate) fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        let timers = self.timers.iter();
        self.timers = timers
            .map(|(&(owner, key), &entity)| {
                let owner = mapper.get_mapped(owner);
                ((owner, key), mapper.get_mapped(entity))
            })
            .collect();
        let keys = self.keys.iter();
        self.keys = keys
            .map(|(&entity, &key)| (mapper.get_mapped(entity), key))
            .collect();
    }

    /// Gives a key of an owner to an entity, and returns the entity that had it before.
    pub(super) fn insert(&mut self, owner: Entity, key: KeyId, entity: Entity) -> Option<Entity> {
        if cfg!(debug_assertions) {
            self.use_name(key.name());
        }
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
