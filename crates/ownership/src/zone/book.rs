//! What a zone owns.

use std::collections::{BTreeMap, BTreeSet};

use bevy_due::worlds::StableKey;
use bevy_ecs::{entity::EntityHashSet, prelude::*};

use crate::{ids::Life, stored::Body, zone_clock::Readings};

/// The durable entities of a zone.
#[derive(Default)]
pub(super) struct Book {
    pub(super) owned: BTreeMap<StableKey, Entry>,
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
pub(super) struct Entry {
    pub(super) life: Life,
    pub(super) epoch: u64,
    pub(super) state: State,
    /// Whether a journal has it: this one, or that of the zone from which it comes. If it can't be stored later, the
    /// world ends.
    pub(super) is_stored: bool,
}

pub(super) enum State {
    Here(Entity),
    /// This build of the game can't load it.
    Unloadable(Box<(Body, Readings)>),
}

impl Entry {
    /// Returns an entity that a journal has.
    pub(super) fn new(life: Life, epoch: u64, state: State) -> Self {
        Self {
            life,
            epoch,
            state,
            is_stored: true,
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
    /// Returns the entity with a key, if it is in the world.
    pub(super) fn entity(&self, key: StableKey) -> Option<Entity> {
        self.owned.get(&key)?.entity()
    }

    /// Returns the key of a durable entity.
    pub(super) fn key_of(&self, world: &World, entity: Entity) -> Option<StableKey> {
        let key = *world.get::<StableKey>(entity)?;
        (self.entity(key) == Some(entity)).then_some(key)
    }
}
