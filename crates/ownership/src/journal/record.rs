//! The records of a journal.

use bevy_due::worlds::StableKey;
use serde::{Deserialize, Serialize};

/// The random number that a journal gets when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JournalId(pub u128);

/// A zone of another shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The journal of the shard.
    pub journal: JournalId,
    /// The endpoint of the zone.
    pub zone: StableKey,
}

/// One fact of a journal.
///
/// A record is live until a later record replaces or ends it. Recovery sees the live records only, and
/// the journal copies them when it removes its oldest file.
// Postcard instead of own code: the derive is shorter, and the tag and the variable-length numbers are
// the same bytes that we would write. `Vec<Record>` would hide the tag, so each record is read alone.
// The order of the variants is the format: add new ones at the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Record {
    /// The journal was opened. Only the journal writes it. Live until the next one.
    Boot {
        /// How often the journal has been opened.
        count: u64,
    },
    /// The readings of a zone's clocks. Live until the next one of the zone.
    World {
        /// The endpoint of the zone.
        zone: StableKey,
        /// The readings.
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    },
    /// The state of an entity. Live until the next one of the key in the zone, or its [`Gone`](Record::Gone).
    Entity {
        /// The key of the entity.
        key: StableKey,
        /// The number of its owner: one more with each owner.
        epoch: u64,
        /// The zone in which it lives.
        zone: StableKey,
        /// Its timers, components and letters.
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    },
    /// The entity has despawned, or belongs to another zone. Ends its state up to an epoch.
    Gone {
        /// The zone in which it has lived.
        zone: StableKey,
        /// The key of the entity.
        key: StableKey,
        /// The last epoch that ends.
        epoch: u64,
    },
    /// Something on its way from a zone of this journal to another zone. Live until its
    /// [`Done`](Record::Done), or until the [`Stream`](Record::Stream) is acknowledged up to its number.
    Item {
        /// The zone that sends it.
        from: StableKey,
        /// The zone that gets it.
        to: StableKey,
        /// Its number in the stream between the two.
        number: u64,
        /// The item.
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    },
    /// An item has ended before those in front of it. Ends the item alone.
    Done {
        /// The zone that has sent it.
        from: StableKey,
        /// The zone that was to get it.
        to: StableKey,
        /// Its number.
        number: u64,
    },
    /// How far two zones have come with each other. Live until the next one of the two.
    Stream {
        /// The zone of this journal.
        zone: StableKey,
        /// The other zone.
        peer: Place,
        /// `peer` has taken the items up to this number. Ends them.
        acked: u64,
        /// `zone` has taken the items of `peer` up to this number.
        taken: u64,
    },
    /// The journal will never be opened again. Live forever.
    Dead {
        /// The lost journal.
        journal: JournalId,
    },
}

impl Record {
    /// The first tag that this release does not know.
    pub(super) const TAGS: u8 = 8;
}
