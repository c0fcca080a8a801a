//! What zones tell each other. Any of it may be lost, repeated or late.

use std::collections::BTreeSet;

use bevy_due::{message::Packet, worlds::StableKey};
use bevy_ecs::error::BevyError;
use serde::{Deserialize, Serialize};

use crate::{
    ids::{JournalId, Recipient, ZoneId},
    item::{Item, decode, encode},
    routes::Location,
};

/// The id of the packets between zones.
pub(crate) const ZONE_PACKET: u32 = u32::from_be_bytes(*b"DUEZ");

/// A message from one zone to another, or to all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Items of the stream from a zone.
    Items(Items),
    /// A zone has taken the items of the recipient up to a number, and this is durable.
    Ack {
        from: ZoneId,
        number: u64,
        /// The session of the recipient.
        session: u64,
    },
    /// A zone looks for these recipients.
    Locate {
        from: StableKey,
        recipients: Vec<Recipient>,
    },
    /// Where entities are.
    Located(Vec<Location>),
    /// The journal will never be opened again.
    Dead {
        journal: JournalId,
        /// The session of the recipient, if it has the journal and has spoken. Nobody else knows this number.
        session: Option<u64>,
    },
    /// A zone looks for these batches of letters, or for their receipts.
    FindLetters {
        from: StableKey,
        search: u64,
        batches: Vec<u64>,
        /// The journals that the sender has given up.
        dead: BTreeSet<JournalId>,
    },
    /// A zone has something of these batches.
    FoundLetters {
        from: ZoneId,
        search: u64,
        batches: Vec<u64>,
    },
}

/// Items of the stream from a zone. Without items, it asks how far the recipient is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Items {
    pub(crate) from: ZoneId,
    /// A random number of this start of the zone, for the answer.
    pub(crate) session: u64,
    /// The session of the recipient, if it has told.
    pub(crate) to_session: Option<u64>,
    /// The number of the first item here.
    pub(crate) first: u64,
    /// The number up to which the recipient has said that it has the stream.
    pub(crate) acked: u64,
    pub(crate) items: Vec<Item>,
    /// The journals that the sender has given up.
    pub(crate) dead: BTreeSet<JournalId>,
}

impl Message {
    pub(crate) fn to_packet(&self) -> Result<Packet, BevyError> {
        Ok(Packet::new(ZONE_PACKET, encode(self)?))
    }

    pub(crate) fn from_packet(packet: &Packet) -> Result<Self, BevyError> {
        decode(packet.payload())
    }
}
