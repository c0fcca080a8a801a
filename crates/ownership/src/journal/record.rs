//! What a frame changes in a journal, and what the journal has of a zone.

use std::collections::BTreeMap;

use bevy_due::worlds::StableKey;

use crate::ids::{JournalId, Life, ZoneId};

/// A change of a journal. To make it twice is the same as to make it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Replaces the readings of a zone's clocks.
    World { zone: StableKey, body: Vec<u8> },
    /// Replaces the state of an entity.
    Entity {
        zone: StableKey,
        life: Life,
        /// The number of its owner: one more with each owner.
        epoch: u64,
        body: Vec<u8>,
    },
    /// Removes the state of an entity up to an epoch: it has despawned, or belongs to another zone.
    Gone {
        zone: StableKey,
        life: Life,
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
        peer: ZoneId,
        /// `peer` has taken the items up to this number.
        acked: u64,
        /// `zone` has taken the items of `peer` up to this number.
        taken: u64,
    },
    /// Notes for good that nobody will open a journal again.
    Dead {
        /// Forgets how far this zone was with it.
        zone: StableKey,
        journal: JournalId,
    },
}

/// What a journal has of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    pub(crate) readings: Option<Vec<u8>>,
    /// The epoch and the stored form.
    pub(crate) entities: BTreeMap<Life, (u64, Vec<u8>)>,
    /// How far the streams to and from other zones are.
    pub(crate) streams: BTreeMap<ZoneId, (u64, u64)>,
    /// By zone and number.
    pub(crate) items: BTreeMap<(StableKey, u64), Vec<u8>>,
}
