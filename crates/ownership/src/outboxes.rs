//! The outboxes of a zone.

use std::collections::{BTreeMap, BTreeSet};

use bevy_due::{message::Packet, worlds::StableKey};

use crate::{ids::Life, item::Batch, outbox::Outbox};

/// The letters that entities of a zone have sent and that are not delivered yet. Those of an entity that has despawned
/// stay here, and in the journal, until all are delivered.
#[derive(Debug, Default)]
pub(crate) struct Outboxes {
    outboxes: BTreeMap<Life, Outbox>,
    /// What the journal does not have yet. Only here can letters be ready.
    changed: BTreeSet<Life>,
}

impl Outboxes {
    /// Adds the outbox of an entity that comes from the journal or from another zone.
    pub(crate) fn insert(&mut self, life: Life, outbox: Outbox) {
        if !outbox.is_empty() {
            self.outboxes.insert(life, outbox);
            self.changed.insert(life);
        }
    }

    /// Lets the journal have the outbox as it is now. What it has of an entity that has despawned depends on more.
    pub(crate) fn touch(&mut self, life: Life) {
        self.changed.insert(life);
    }

    /// Removes the outbox of an entity that leaves.
    pub(crate) fn remove(&mut self, life: Life) {
        self.outboxes.remove(&life);
        self.changed.remove(&life);
    }

    /// Returns a copy of an outbox.
    pub(crate) fn copy(&self, life: Life) -> Outbox {
        self.outboxes.get(&life).cloned().unwrap_or_default()
    }

    /// Returns `true` if an entity has letters that are not delivered yet.
    pub(crate) fn contains(&self, life: Life) -> bool {
        self.outboxes.contains_key(&life)
    }

    /// Returns the number of entities with letters that are not delivered yet.
    pub(crate) fn len(&self) -> usize {
        self.outboxes.len()
    }

    /// Returns the batches that are on their way.
    pub(crate) fn on_the_way(&self) -> impl Iterator<Item = u64> {
        self.outboxes.values().flat_map(Outbox::on_the_way)
    }

    /// Adds a letter, or hands it back if too much waits.
    pub(crate) fn add(&mut self, from: Life, to: StableKey, letter: Packet) -> Result<(), Packet> {
        self.changed.insert(from);
        self.outboxes.entry(from).or_default().add(to, letter)
    }

    /// Notes that a batch is no longer on its way.
    pub(crate) fn arrived(&mut self, from: Life, to: StableKey, id: Option<u64>) {
        if let Some(outbox) = self.outboxes.get_mut(&from) {
            outbox.arrived(to, id);
            self.changed.insert(from);
        }
    }

    /// Notes that batches are no longer on their way.
    pub(crate) fn end(&mut self, is_over: impl Fn(u64) -> bool) {
        for (&life, outbox) in &mut self.outboxes {
            if outbox.end(&is_over) {
                self.changed.insert(life);
            }
        }
    }

    /// Takes the letters that can go now.
    pub(crate) fn take_ready(&mut self) -> Vec<Batch> {
        let mut ready = Vec::new();
        for &life in &self.changed {
            let outbox = self.outboxes.get_mut(&life).into_iter();
            ready.extend(outbox.flat_map(|outbox| outbox.take_ready(life)));
        }
        ready
    }

    /// Takes the entities whose outboxes have changed since the last call, and forgets outboxes that are empty.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Life> {
        for life in &self.changed {
            if self.outboxes.get(life).is_some_and(Outbox::is_empty) {
                self.outboxes.remove(life);
            }
        }
        core::mem::take(&mut self.changed)
    }
}
