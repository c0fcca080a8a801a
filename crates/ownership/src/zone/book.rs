//! What a zone owns.

use std::collections::{BTreeMap, BTreeSet};

use bevy_due::worlds::StableKey;
use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use crate::{ids::Life, stored::Body, zone_clock::Readings};

/// The durable entities of a zone.
#[derive(Default)]
pub(super) struct Book {
    pub(super) owned: BTreeMap<StableKey, Owned>,
    pub(super) keys: EntityHashMap<StableKey>,
    /// Durable entities that belong to another one for now: their lives wait until they are free again.
    pub(super) belonging: BTreeMap<StableKey, (Entity, Life, u64)>,
    /// Entities with a key that can't be stored. They were reported.
    pub(super) refused: EntityHashSet,
    /// What is to be stored in this frame.
    pub(super) dirty: BTreeSet<StableKey>,
    /// Entities with mail, which are to be stored again when it is delivered.
    pub(super) with_mail: BTreeSet<StableKey>,
}

/// An entity that belongs to this zone.
pub(super) struct Owned {
    pub(super) life: Life,
    pub(super) epoch: u64,
    pub(super) state: State,
    /// Whether the journal has it.
    pub(super) is_stored: bool,
}

pub(super) enum State {
    Here(Entity),
    /// This build of the game can't load it.
    Unloadable(Box<(Body, Readings)>),
}

impl Owned {
    pub(super) fn new(life: Life, epoch: u64, state: State) -> Self {
        Self {
            life,
            epoch,
            state,
            is_stored: false,
        }
    }

    pub(super) fn entity(&self) -> Option<Entity> {
        match self.state {
            State::Here(entity) => Some(entity),
            State::Unloadable(_) => None,
        }
    }
}

impl Book {
    pub(super) fn insert(&mut self, owned: Owned) {
        let key = owned.life.key;
        if let State::Here(entity) = owned.state {
            self.keys.insert(entity, key);
        }
        self.owned.insert(key, owned);
        self.dirty.insert(key);
    }

    pub(super) fn remove(&mut self, key: StableKey) -> Option<Owned> {
        let owned = self.owned.remove(&key)?;
        // It can have another key by now.
        if let Some(entity) = owned.entity()
            && self.keys.get(&entity) == Some(&key)
        {
            self.keys.remove(&entity);
        }
        Some(owned)
    }

    /// Returns the entity with a key, if it is in the world.
    pub(super) fn entity(&self, key: StableKey) -> Option<Entity> {
        self.owned.get(&key)?.entity()
    }

    /// Notes that a journal has an entity: its own, or that of the zone from which it comes. If the entity can't
    /// be stored later, the world ends.
    pub(super) fn note_stored(&mut self, key: StableKey) {
        if let Some(owned) = self.owned.get_mut(&key) {
            owned.is_stored = true;
        }
    }
}
