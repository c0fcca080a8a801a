//! The timers of a world by key.

use alloc::string::String;

use bevy_ecs::prelude::*;
use bevy_platform::collections::{HashMap, HashSet};

use super::key_id::KeyId;
use crate::journal::Journal;

/// The entity that was last inserted with each key of each owner.
#[derive(Resource, Debug, Default)]
pub(crate) struct KeyTable {
    timers: HashMap<(Entity, KeyId), Entity>,
    /// The names of the keys that timers of this world have had, or that were reported. Only debug
    /// builds fill it.
    used: HashSet<String>,
    /// The journal, if the table keeps one.
    journal: Option<KeyJournal>,
}

/// The keys that have changed, with the entities that had them.
pub(crate) type KeyJournal = Journal<(Entity, KeyId), Option<Entity>>;

impl KeyTable {
    /// Returns the entity with a key of an owner, if any.
    pub(super) fn get(&self, owner: Entity, key: KeyId) -> Option<Entity> {
        self.timers.get(&(owner, key)).copied()
    }

    /// Notes the name of a key, and returns `true` if it is new.
    pub(super) fn use_name(&mut self, name: &str) -> bool {
        !self.used.contains(name) && self.used.insert(name.into())
    }

    /// Gives a key of an owner to an entity, and returns the entity that had it before.
    pub(super) fn insert(&mut self, owner: Entity, key: KeyId, entity: Entity) -> Option<Entity> {
        // If a bundle has an owner and a key, both hooks insert the same entry.
        if self.get(owner, key) == Some(entity) {
            return None;
        }
        if cfg!(debug_assertions) {
            self.use_name(key.name());
        }
        self.note(owner, key);
        self.timers.insert((owner, key), entity)
    }

    /// Frees a key of an owner, unless another entity has it by now.
    pub(super) fn remove(&mut self, owner: Entity, key: KeyId, entity: Entity) {
        if self.get(owner, key) == Some(entity) {
            self.note(owner, key);
            self.timers.remove(&(owner, key));
        }
    }

    /// Begins a journal of the keys that change.
    pub(crate) fn watch(&mut self) {
        self.journal = Some(KeyJournal::default());
    }

    /// Ends the journal.
    pub(crate) fn unwatch(&mut self) {
        self.journal = None;
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take_journal(&mut self) -> KeyJournal {
        let journal = self.journal.as_mut();
        journal.map(Journal::take).unwrap_or_default()
    }

    /// Goes back to the moment at which `journal` began. By now, its entities are called `name`. A name
    /// may have an `earlier` one.
    pub(crate) fn put_back(
        &mut self,
        journal: &KeyJournal,
        name: impl Fn(Entity) -> Entity,
        earlier: impl Fn(Entity) -> Option<Entity>,
    ) {
        let earlier = |(owner, key)| Some((earlier(owner)?, key));
        for ((owner, key), timer) in journal.under_first_names(earlier) {
            let owner = name(owner);
            self.note(owner, key);
            match *timer {
                Some(timer) => _ = self.timers.insert((owner, key), name(timer)),
                None => _ = self.timers.remove(&(owner, key)),
            }
        }
    }

    /// Notes a key of an owner before it changes.
    fn note(&mut self, owner: Entity, key: KeyId) {
        if let Some(journal) = &mut self.journal {
            let timers = &self.timers;
            journal.note((owner, key), || timers.get(&(owner, key)).copied());
        }
    }
}
