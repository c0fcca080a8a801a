//! Items whose recipient has no known zone.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use bevy_due::worlds::StableKey;
use bevy_ecs::error::BevyError;

use crate::{
    ids::Recipient,
    item::{Item, encode},
    journal::{Change, rows},
};

/// How long letters wait for a recipient that nobody knows.
pub(crate) const RETURN_AFTER: Duration = Duration::from_secs(30);

/// What a zone knows of a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// It is here, or in a zone that is known.
    Known,
    /// It is here, but this build of the game can't load it, or it has nothing that could take a letter.
    NotReady,
    Unknown,
}

/// Items for entities that are not here, and of which no zone is known. They are durable, too.
#[derive(Debug, Default)]
pub(crate) struct Unrouted {
    items: BTreeMap<u64, Waits>,
    /// The numbers that the journal has, of items that wait no longer.
    ended: Vec<u64>,
    last: u64,
}

#[derive(Debug)]
struct Waits {
    item: Item,
    since: Duration,
    is_stored: bool,
}

impl Unrouted {
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
        let waits = Waits {
            item,
            since,
            is_stored,
        };
        self.items.insert(number, waits);
    }

    /// Returns the items that wait.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.values().map(|waits| &waits.item)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the recipients for which items wait.
    pub(crate) fn recipients(&self) -> BTreeSet<Recipient> {
        self.items().filter_map(Item::recipient).collect()
    }

    /// Notes that entities with these keys are on their way to this zone. Their letters wait on.
    pub(crate) fn expect(&mut self, keys: &BTreeSet<StableKey>, now: Duration) {
        if !keys.is_empty() {
            let waits = self.items.values_mut();
            let is_expected = |to: Recipient| keys.contains(&to.key());
            let waits = waits.filter(|it| it.item.recipient().is_some_and(is_expected));
            waits.for_each(|waits| waits.since = now);
        }
    }

    /// Takes the items that can go, and those that have waited too long for an entity that nobody knows. Receipts can be
    /// among these only if `may_end_receipts`.
    pub(crate) fn take(
        &mut self,
        place: impl Fn(&Item) -> Whereabouts,
        may_end_receipts: bool,
        now: Duration,
    ) -> (Vec<Item>, Vec<Item>) {
        let is_ready = |waits: &mut Waits| match place(&waits.item) {
            Whereabouts::Known => true,
            Whereabouts::NotReady => {
                waits.since = now;
                false
            }
            Whereabouts::Unknown => {
                // The sender of a batch waits for its receipt.
                let is_awaited = matches!(&waits.item, Item::Receipt(batch) if batch.id.is_some());
                if is_awaited && !may_end_receipts {
                    waits.since = now;
                }
                now.saturating_sub(waits.since) >= RETURN_AFTER
            }
        };
        let taken = self.items.extract_if(.., |_, waits| is_ready(waits));
        let taken = taken.map(|(number, waits)| {
            self.ended.extend(waits.is_stored.then_some(number));
            waits.item
        });
        taken.partition(|item| place(item) != Whereabouts::Unknown)
    }

    /// Returns what has changed since the last call, for the journal.
    pub(crate) fn changes(&mut self, zone: StableKey) -> Result<Vec<Change>, BevyError> {
        let ended = self.ended.drain(..);
        let ended = ended.map(|number| Change::remove(rows::item(zone, zone, number)));
        let mut changes: Vec<_> = ended.collect();
        for (&number, waits) in &mut self.items {
            if !core::mem::replace(&mut waits.is_stored, true) {
                let place = rows::item(zone, zone, number);
                changes.push(Change::Put(place, encode(&waits.item)?));
            }
        }
        Ok(changes)
    }
}
