//! What zones send each other, each item exactly once.

use core::time::Duration;

use bevy_due::{message::Packet, worlds::StableKey};
use bevy_ecs::error::BevyError;
use serde::{Deserialize, Serialize};

use crate::{
    ids::{Life, Recipient},
    routes::Location,
};

/// Something on its way to another zone, or to an entity that nobody knows yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Item {
    /// An entity with everything that it owns. From here on it belongs to the zone that gets the item.
    Entity(MovedOut),
    /// Letters from one entity to another, in order.
    Letters(Batch),
    /// The recipient has the letters of a batch, except for these: the next ones can go, and these come back.
    Receipt(Batch),
}

/// Letters from one entity to another, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// A random number, or `None` if the outbox of the sender had no room for the letters.
    pub(crate) id: Option<u64>,
    pub(crate) from: Life,
    pub(crate) to: StableKey,
    pub(crate) letters: Vec<Packet>,
}

/// An entity that has left its zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MovedOut {
    pub(crate) life: Life,
    /// The number of the new owner.
    pub(crate) epoch: u64,
    /// The encoded [`Stored`](crate::stored::Stored).
    #[serde(with = "serde_bytes")]
    pub(crate) stored: Vec<u8>,
    /// What the clock of the zone that sends it showed when it left.
    pub(crate) left: Duration,
    /// How long it had been on its way before that, or in all when it is sent.
    pub(crate) waited: Duration,
    /// Why it comes back, if another zone could not take it.
    pub(crate) refused: Option<String>,
}

impl MovedOut {
    /// Returns where the entity is when it goes to a zone.
    pub(crate) fn location(&self, zone: StableKey) -> Location {
        Location {
            life: self.life,
            zone,
            epoch: self.epoch,
        }
    }

    /// Returns the entity on its way back, with the next owner. `now` is what the clock of this zone shows.
    pub(crate) fn returned(self, reason: String, now: Duration) -> Self {
        Self {
            epoch: self.epoch.saturating_add(1),
            left: now,
            refused: Some(reason),
            ..self
        }
    }

    /// Adds up how long it has been on its way by now.
    pub(crate) fn sent_at(&mut self, now: Duration) {
        self.waited += now.saturating_sub(core::mem::replace(&mut self.left, now));
    }
}

impl Item {
    /// Returns the entity to which the item goes. An entity that moves goes to a zone.
    pub(crate) fn recipient(&self) -> Option<Recipient> {
        match self {
            Self::Entity(_) => None,
            Self::Letters(batch) => Some(Recipient::Key(batch.to)),
            Self::Receipt(batch) => Some(Recipient::Life(batch.from)),
        }
    }

    /// Returns the batch of which this is the letters or the receipt.
    pub(crate) fn batch(&self) -> Option<u64> {
        match self {
            Self::Entity(_) => None,
            Self::Letters(batch) | Self::Receipt(batch) => batch.id,
        }
    }
}

/// All stored forms of an item.
#[derive(Serialize, Deserialize)]
enum Versions<T> {
    V1(T),
}

/// Encodes a value with the version of its form.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, BevyError> {
    Ok(postcard::to_allocvec(&Versions::V1(value))?)
}

/// Decodes a value. Unknown versions are an error.
pub(crate) fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, BevyError> {
    let Versions::V1(value) = postcard::from_bytes(bytes)?;
    Ok(value)
}
