//! Items for entities that nobody has been found for yet.

use core::time::Duration;
use std::collections::BTreeMap;

use bevy_due::StableKey;
use bevy_ecs::error::BevyError;

use crate::{
    crash_point::crash_point,
    item::{Item, encode},
    journal::Record,
};

/// How long letters wait for a recipient that nobody knows.
pub(crate) const RETURN_AFTER: Duration = Duration::from_secs(30);

/// Items for entities that are not here, and of which no zone is known. They are durable, too.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    items: BTreeMap<u64, Waits>,
    /// The numbers that the journal has, of items that wait no longer.
    ended: Vec<u64>,
    last: u64,
}

#[derive(Debug)]
struct Waits {
    item: Item,
    to: StableKey,
    since: Duration,
    is_stored: bool,
}

impl Waiting {
    /// Adds an item that the journal has.
    pub(crate) fn restore(&mut self, number: u64, item: Item, now: Duration) {
        self.last = self.last.max(number);
        self.insert(number, item, now, true);
    }

    pub(crate) fn add(&mut self, item: Item, now: Duration) {
        self.last += 1;
        self.insert(self.last, item, now, false);
    }

    fn insert(&mut self, number: u64, item: Item, since: Duration, is_stored: bool) {
        let Some(to) = item.recipient() else {
            return;
        };
        let waits = Waits {
            item,
            to,
            since,
            is_stored,
        };
        self.items.insert(number, waits);
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the entities for which items wait.
    pub(crate) fn keys(&self) -> Vec<StableKey> {
        let mut keys: Vec<_> = self.items.values().map(|waits| waits.to).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Takes the items for entities that are known now, and the letters that have waited too long.
    pub(crate) fn take(
        &mut self,
        is_known: impl Fn(StableKey) -> bool,
        now: Duration,
    ) -> Vec<Item> {
        let is_late = |waits: &Waits| {
            let letters = matches!(waits.item, Item::Letters(_));
            letters && now.saturating_sub(waits.since) >= RETURN_AFTER
        };
        let ready = self
            .items
            .extract_if(.., |_, waits| is_known(waits.to) || is_late(waits));
        let mut taken = Vec::new();
        for (number, waits) in ready {
            self.ended.extend(waits.is_stored.then_some(number));
            taken.push(match waits.item {
                Item::Letters(batch) if !is_known(waits.to) => Item::Returned(batch),
                item => item,
            });
        }
        taken
    }

    /// Returns what has changed since the last call, for the journal.
    pub(crate) fn records(&mut self, zone: StableKey) -> Result<Vec<Record>, BevyError> {
        let (from, to) = (zone, zone);
        let ended = self.ended.drain(..);
        let ended = ended.map(|number| Record::Done { from, to, number });
        let mut records: Vec<_> = ended.collect();
        for (&number, waits) in &mut self.items {
            if !core::mem::replace(&mut waits.is_stored, true) {
                let body = encode(&waits.item)?;
                records.push(Record::Item {
                    from,
                    to,
                    number,
                    body,
                });
                crash_point!("waiting.stored");
            }
        }
        Ok(records)
    }
}
