//! What a frame changes in a journal, and what the journal has of a zone.

use core::fmt;
use std::collections::BTreeMap;

use bevy_due::worlds::StableKey;
use serde::{Deserialize, Serialize};

/// The random number that a shard gets when its file is created.
///
/// Its text form can be pasted as the argument of [`Shard::reclaim`](crate::Shard::reclaim).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JournalId(pub u128);

impl fmt::Display for JournalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JournalId({:#034x})", self.0)
    }
}

/// A zone of another shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The journal of the shard.
    pub journal: JournalId,
    /// The endpoint of the zone.
    pub zone: StableKey,
}

/// A change of a journal. To make it twice is the same as to make it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Replaces the readings of a zone's clocks.
    World { zone: StableKey, body: Vec<u8> },
    /// Replaces the state of an entity.
    Entity {
        key: StableKey,
        /// The number of its owner: one more with each owner.
        epoch: u64,
        zone: StableKey,
        body: Vec<u8>,
    },
    /// Removes the state of an entity up to an epoch: it has despawned, or belongs to another zone.
    Gone {
        zone: StableKey,
        key: StableKey,
        epoch: u64,
    },
    /// Adds something that is on its way from a zone of this journal to another zone.
    Item {
        from: StableKey,
        to: StableKey,
        /// Its number in the stream between the two.
        number: u64,
        body: Vec<u8>,
    },
    /// Removes an item that has ended before those in front of it.
    Done {
        from: StableKey,
        to: StableKey,
        number: u64,
    },
    /// Replaces how far two zones have come with each other. Removes the items that `peer` has taken.
    Stream {
        zone: StableKey,
        peer: Place,
        /// `peer` has taken the items up to this number.
        acked: u64,
        /// `zone` has taken the items of `peer` up to this number.
        taken: u64,
    },
    /// Notes for good that nobody will open a journal again.
    Dead { journal: JournalId },
}

/// What a journal has of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    pub(crate) readings: Option<Vec<u8>>,
    /// By key, the epoch and the stored form.
    pub(crate) entities: BTreeMap<StableKey, (u64, Vec<u8>)>,
    /// How far the streams to and from other zones are.
    pub(crate) streams: BTreeMap<Place, (u64, u64)>,
    /// By zone and number.
    pub(crate) items: BTreeMap<(StableKey, u64), Vec<u8>>,
}
