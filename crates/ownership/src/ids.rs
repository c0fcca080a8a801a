//! The names of shards, zones and entities.

use core::{fmt, hash::BuildHasher};
use std::hash::RandomState;

use bevy_due::worlds::StableKey;
use serde::{Deserialize, Serialize};

/// Returns a random number, by which something can be told from all others.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}

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

/// A zone of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ZoneId {
    /// The journal of the shard.
    pub journal: JournalId,
    /// The key of the zone.
    pub zone: StableKey,
}

/// A durable entity from its birth to its death. After that, another one can have its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Life {
    pub(crate) key: StableKey,
    /// A random number.
    pub(crate) birth: u64,
}

impl Life {
    /// Returns a new entity with a key.
    pub(crate) fn new(key: StableKey) -> Self {
        let birth = random();
        Self { key, birth }
    }
}

/// To whom something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Recipient {
    /// Whoever has this key.
    Key(StableKey),
    /// This entity, also when it has despawned.
    Life(Life),
}

impl Recipient {
    pub(crate) fn key(self) -> StableKey {
        match self {
            Self::Key(key) | Self::Life(Life { key, .. }) => key,
        }
    }

    pub(crate) fn is(self, life: Life) -> bool {
        match self {
            Self::Key(key) => key == life.key,
            Self::Life(it) => it == life,
        }
    }
}
