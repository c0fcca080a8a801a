//! The records of a journal.

use serde::{Deserialize, Serialize};

/// The stable key of an entity, or of the endpoint of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(pub u64);

/// The random number that a journal gets when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JournalId(pub u128);

/// A zone of another shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The journal of the shard.
    pub journal: JournalId,
    /// The endpoint of the zone.
    pub zone: Key,
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
    /// A zone has reached a frame. Live until the next one of the zone.
    World {
        /// The endpoint of the zone.
        zone: Key,
        /// The number of the frame.
        frame: u64,
        /// The readings of its clocks.
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    },
    /// The state of an entity. Live until the next one of the key, its [`Gone`](Record::Gone), its
    /// [`Lost`](Record::Lost), or the [`Given`](Record::Given) of a later epoch.
    Entity {
        /// The key of the entity.
        key: Key,
        /// The number of its owner: one more with each owner.
        epoch: u64,
        /// The zone in which it lives.
        zone: Key,
        /// Its timers, components and cursors.
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    },
    /// A letter that the recipient has not acknowledged. Live until its [`Acked`](Record::Acked), or until
    /// the sender is [`Lost`](Record::Lost) or [`Given`](Record::Given).
    Letter {
        /// The sender.
        from: Key,
        /// The epoch of the sender.
        epoch: u64,
        /// The recipient.
        to: Key,
        /// The number of the letter among those of the sender.
        number: u64,
        /// The parcel.
        #[serde(with = "serde_bytes")]
        body: Vec<u8>,
    },
    /// The recipient has the letters of the sender up to a number. Ends them.
    Acked {
        /// The sender.
        from: Key,
        /// The recipient.
        to: Key,
        /// The number of the last letter.
        number: u64,
    },
    /// The entity now belongs to another zone, which may not know it yet. Live until its
    /// [`Given`](Record::Given).
    Giving {
        /// The key of the entity.
        key: Key,
        /// The epoch of the new owner.
        epoch: u64,
        /// The zone that gives it.
        from: Key,
        /// The zone that gets it.
        to: Place,
        /// The number of the move among those from `from` to `to`.
        number: u64,
    },
    /// The zone `to` has taken the moves up to a number. Ends them, with the earlier epochs of their
    /// entities and their letters. Live until the next one, or until the journal of `to` is
    /// [`Dead`](Record::Dead), so that a number is never given twice.
    Given {
        /// The zone that gave them.
        from: Key,
        /// The zone that took them.
        to: Place,
        /// The number of the last move.
        number: u64,
    },
    /// This journal has taken the moves up to a number. Live until the next one, or until the journal of
    /// `from` is [`Dead`](Record::Dead).
    Taken {
        /// The zone that gave them.
        from: Place,
        /// The zone of this journal that took them.
        to: Key,
        /// The number of the last move.
        number: u64,
    },
    /// The entity was despawned. Ends its state up to an epoch. Its letters stay.
    Gone {
        /// The key of the entity.
        key: Key,
        /// The last epoch that ends.
        epoch: u64,
    },
    /// The entity belongs to another shard. Ends its state and its letters up to an epoch.
    Lost {
        /// The key of the entity.
        key: Key,
        /// The last epoch that ends.
        epoch: u64,
    },
    /// The journal will never be opened again. Live forever.
    Dead {
        /// The lost journal.
        journal: JournalId,
    },
}

impl Record {
    /// The first tag that this release does not know.
    pub(super) const TAGS: u8 = 11;
}
