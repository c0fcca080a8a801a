//! The letters of entities that have despawned.

use std::collections::{BTreeMap, BTreeSet};

use bevy_due::worlds::StableKey;
use bevy_ecs::error::BevyError;

use crate::{
    ids::Life,
    item::{Batch, encode},
    journal::Record,
    outbox::Outbox,
    stored::Stored,
    zone_clock::Readings,
};

/// The outboxes of entities that have despawned. They are durable until they are empty.
#[derive(Debug, Default)]
pub(crate) struct LastLetters {
    outboxes: BTreeMap<Life, Outbox>,
    changed: BTreeSet<Life>,
}

impl LastLetters {
    /// Adds an outbox that the journal has.
    pub(crate) fn restore(&mut self, life: Life, outbox: Outbox) {
        self.outboxes.insert(life, outbox);
        // The shard may have been restored, so that all of it can go.
        self.changed.insert(life);
    }

    /// Takes over the outbox of an entity that despawns.
    pub(crate) fn add(&mut self, life: Life, outbox: Outbox) {
        self.outboxes.insert(life, outbox);
        self.changed.insert(life);
    }

    pub(crate) fn len(&self) -> usize {
        self.outboxes.len()
    }

    pub(crate) fn contains(&self, life: Life) -> bool {
        self.outboxes.contains_key(&life)
    }

    /// Notes that letters have arrived.
    pub(crate) fn arrived(&mut self, life: Life, to: StableKey) {
        if let Some(outbox) = self.outboxes.get_mut(&life) {
            outbox.arrived(to);
            self.changed.insert(life);
        }
    }

    /// Notes that letters to these entities have arrived, or are lost.
    pub(crate) fn all_arrived(&mut self, is_over: impl Fn(Life, StableKey) -> bool) {
        for (&life, outbox) in &mut self.outboxes {
            let over: Vec<_> = outbox
                .on_the_way()
                .filter(|&to| is_over(life, to))
                .collect();
            for to in over {
                outbox.arrived(to);
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

    /// Returns what has changed since the last call, for the journal.
    pub(crate) fn records(&mut self, zone: StableKey) -> Result<Vec<Record>, BevyError> {
        let mut records = Vec::new();
        for life in core::mem::take(&mut self.changed) {
            let outbox = self.outboxes.get(&life).cloned().unwrap_or_default();
            if outbox.is_empty() {
                self.outboxes.remove(&life);
                let epoch = u64::MAX;
                records.push(Record::Gone { zone, life, epoch });
                continue;
            }
            let stored = Stored {
                body: None,
                outbox,
                readings: Readings::default(),
            };
            records.push(Record::Entity {
                zone,
                life,
                epoch: 0,
                body: encode(&stored)?,
            });
        }
        Ok(records)
    }
}
