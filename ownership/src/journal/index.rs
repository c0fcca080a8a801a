//! Which records of a journal are live, and where they are.

use std::collections::BTreeMap;

use super::{JournalId, Key, Place, Record};

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
/// An entry has about 120 bytes. A change costs *O*(log live), and *O*(ended) for what it ends.
///
/// A record that ends another one must never come before a copy of it, or a removed segment would bring
/// the ended one back. So a record ends others by its own fields alone. `Given` is the exception: it needs
/// the `Giving`. So [`lost_by`](Index::lost_by) adds a `Lost` for each entity to its batch.
#[derive(Debug, Default)]
pub(super) struct Index {
    live: BTreeMap<Id, Live>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Live {
    at: Location,
    bytes: u32,
    /// The entity whose state it is, for entities, letters and moves.
    key: Key,
    epoch: u64,
}

/// A later record of the same id replaces an earlier one. The order of the fields allows the ranges below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Boot,
    Dead(JournalId),
    World(Key),
    Entity(Key),
    Letter { from: Key, to: Key, number: u64 },
    Giving { to: Place, from: Key, number: u64 },
    Given { to: Place, from: Key },
    Taken { from: Place, to: Key },
}

const FIRST: Key = Key(0);
const LAST: Key = Key(u64::MAX);

impl Index {
    /// Adds a record that is durable at `at`, and removes the records that it replaces and ends.
    pub(super) fn apply(&mut self, record: &Record, at: Location, bytes: usize) {
        self.end_by(record);
        let Some((id, key, epoch)) = identify(record) else {
            return;
        };
        if self.is_dead(&id) {
            return;
        }
        let bytes = bytes as u32;
        self.bytes += u64::from(bytes);
        if let Some(old) = self.live.insert(
            id,
            Live {
                at,
                bytes,
                key,
                epoch,
            },
        ) {
            self.bytes -= u64::from(old.bytes);
        }
    }

    /// Whether the record at `at` is live.
    pub(super) fn is_live(&self, record: &Record, at: Location) -> bool {
        identify(record)
            .and_then(|(id, ..)| self.live.get(&id))
            .is_some_and(|live| live.at == at)
    }

    /// Returns the bytes of all live records.
    pub(super) fn live_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the records that end what the `Given`s in `records` end: see [`Index`].
    pub(super) fn lost_by(&self, records: &[Record]) -> Vec<Record> {
        let mut lost = Vec::new();
        for given in records {
            let &Record::Given { from, to, number } = given else {
                continue;
            };
            let first = Id::Giving {
                to,
                from,
                number: 0,
            };
            let moves = self.live.range(first..=Id::Giving { to, from, number });
            lost.extend(moves.map(|(_, moved)| (moved.key, moved.epoch)));
            lost.extend(records.iter().filter_map(|record| match *record {
                Record::Giving {
                    key,
                    epoch,
                    from: f,
                    to: t,
                    number: n,
                } => (f == from && t == to && n <= number).then_some((key, epoch)),
                _ => None,
            }));
        }
        let before = |(key, epoch): (Key, u64)| Record::Lost {
            key,
            epoch: epoch.saturating_sub(1),
        };
        lost.into_iter().map(before).collect()
    }

    fn end_by(&mut self, record: &Record) {
        match *record {
            Record::Acked { from, to, number } => {
                let letter = |number| Id::Letter { from, to, number };
                self.remove(letter(0), letter(number), u64::MAX);
            }
            Record::Given { from, to, number } => {
                let giving = |number| Id::Giving { to, from, number };
                self.remove(giving(0), giving(number), u64::MAX);
            }
            Record::Gone { key, epoch } => self.remove(Id::Entity(key), Id::Entity(key), epoch),
            Record::Lost { key, epoch } => {
                self.remove(Id::Entity(key), Id::Entity(key), epoch);
                let letter = |to, number| Id::Letter {
                    from: key,
                    to,
                    number,
                };
                self.remove(letter(FIRST, 0), letter(LAST, u64::MAX), epoch);
            }
            Record::Dead { journal } => {
                let place = |zone| Place { journal, zone };
                let given = |key| Id::Given {
                    to: place(key),
                    from: key,
                };
                self.remove(given(FIRST), given(LAST), u64::MAX);
                let taken = |key| Id::Taken {
                    from: place(key),
                    to: key,
                };
                self.remove(taken(FIRST), taken(LAST), u64::MAX);
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

    fn is_dead(&self, id: &Id) -> bool {
        match id {
            Id::Given { to: place, .. } | Id::Taken { from: place, .. } => {
                self.live.contains_key(&Id::Dead(place.journal))
            }
            _ => false,
        }
    }
}

/// Returns the id, the key and the epoch of a record that can be live.
fn identify(record: &Record) -> Option<(Id, Key, u64)> {
    let of_journal = |id| Some((id, FIRST, 0));
    match *record {
        Record::Boot { .. } => of_journal(Id::Boot),
        Record::Dead { journal } => of_journal(Id::Dead(journal)),
        Record::World { zone, .. } => of_journal(Id::World(zone)),
        Record::Entity { key, epoch, .. } => Some((Id::Entity(key), key, epoch)),
        Record::Letter {
            from,
            epoch,
            to,
            number,
            ..
        } => Some((Id::Letter { from, to, number }, from, epoch)),
        Record::Giving {
            key,
            epoch,
            from,
            to,
            number,
        } => Some((Id::Giving { to, from, number }, key, epoch)),
        Record::Given { from, to, .. } => of_journal(Id::Given { to, from }),
        Record::Taken { from, to, .. } => of_journal(Id::Taken { from, to }),
        Record::Acked { .. } | Record::Gone { .. } | Record::Lost { .. } => None,
    }
}
