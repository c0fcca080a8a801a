//! Which records of a journal are live, and where they are.

use std::collections::BTreeMap;

use bevy_due::worlds::StableKey;

use super::{JournalId, Place, Record};

/// Where a record is. A copy of a record is at another location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) segment: u64,
    /// The offset of its batch.
    pub(super) batch: u64,
    /// Its number in the batch.
    pub(super) place: u32,
}

/// The live records.
///
/// An entry has about 100 bytes. A change costs *O*(log live), and *O*(ended) for what it ends.
///
/// A record that ends another one must never come before a copy of it, or a removed segment would bring
/// the ended one back. So a record ends others by its own fields alone.
#[derive(Debug, Default)]
pub(super) struct Index {
    live: BTreeMap<Id, Live>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    at: Location,
    bytes: u32,
    /// The epoch of an entity. 0 for others.
    epoch: u64,
}

/// A later record of the same id replaces an earlier one. The order of the fields allows the range below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Boot,
    Dead(JournalId),
    World(StableKey),
    Entity {
        zone: StableKey,
        key: StableKey,
    },
    Item {
        from: StableKey,
        to: StableKey,
        number: u64,
    },
    Stream {
        zone: StableKey,
        peer: Place,
    },
}

impl Index {
    /// Adds a record that is durable at `at`, and removes the records that it replaces and ends.
    pub(super) fn apply(&mut self, record: &Record, at: Location, bytes: usize) {
        self.end_by(record);
        let Some((id, epoch)) = identify(record) else {
            return;
        };
        let bytes = bytes as u32;
        self.bytes += u64::from(bytes);
        if let Some(old) = self.live.insert(id, Live { at, bytes, epoch }) {
            self.bytes -= u64::from(old.bytes);
        }
    }

    /// Whether the record at `at` is live.
    pub(super) fn is_live(&self, record: &Record, at: Location) -> bool {
        identify(record)
            .and_then(|(id, _)| self.live.get(&id))
            .is_some_and(|live| live.at == at)
    }

    /// Returns the bytes of all live records.
    pub(super) fn live_bytes(&self) -> u64 {
        self.bytes
    }

    fn end_by(&mut self, record: &Record) {
        match *record {
            Record::Gone { zone, key, epoch } => {
                let entity = Id::Entity { zone, key };
                self.remove(entity, entity, epoch);
            }
            Record::Done { from, to, number } => {
                let item = Id::Item { from, to, number };
                self.remove(item, item, 0);
            }
            Record::Stream {
                zone, peer, acked, ..
            } => {
                let item = |number| Id::Item {
                    from: zone,
                    to: peer.zone,
                    number,
                };
                self.remove(item(0), item(acked), 0);
            }
            _ => {}
        }
    }

    /// Removes the records from `first` to `last` whose epoch is at most `epoch`.
    fn remove(&mut self, first: Id, last: Id, epoch: u64) {
        for (_, live) in self
            .live
            .extract_if(first..=last, |_, live| live.epoch <= epoch)
        {
            self.bytes -= u64::from(live.bytes);
        }
    }
}

/// Returns the id and the epoch of a record that can be live.
fn identify(record: &Record) -> Option<(Id, u64)> {
    let id = match *record {
        Record::Boot { .. } => Id::Boot,
        Record::Dead { journal } => Id::Dead(journal),
        Record::World { zone, .. } => Id::World(zone),
        Record::Entity {
            zone, key, epoch, ..
        } => return Some((Id::Entity { zone, key }, epoch)),
        Record::Item {
            from, to, number, ..
        } => Id::Item { from, to, number },
        Record::Stream { zone, peer, .. } => Id::Stream { zone, peer },
        Record::Gone { .. } | Record::Done { .. } => return None,
    };
    Some((id, 0))
}
