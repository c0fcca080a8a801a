//! What a journal has: rows, each at its place.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;

use bevy_due::worlds::StableKey;

use crate::ids::{JournalId, Life, ZoneId};

/// The zone of a row, its kind, and what it is about. The rows of a zone are neighbours.
pub(crate) type Place = (u64, u8, u128, u64);

/// The rows of a journal, or of a zone.
pub(crate) type Rows = BTreeMap<Place, Vec<u8>>;

// The kinds of rows, in the order in which a zone needs them.

/// What the clocks of the zone show.
pub(crate) const READINGS: u8 = 0;
/// How far a stream is: up to which number the peer has acknowledged, and up to which number the zone has taken.
pub(crate) const STREAM: u8 = 1;
/// An item on its way to another zone, or to an entity that nobody knows yet.
pub(crate) const ITEM: u8 = 2;
/// The epoch and the stored form of an entity.
pub(crate) const ENTITY: u8 = 3;
/// A journal that nobody will open again.
pub(crate) const DEAD: u8 = 4;

/// A change of a journal. To make it twice is the same as to make it once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Adds a row, or replaces it.
    Put(Place, Vec<u8>),
    /// Removes the rows at these places.
    Remove(RangeInclusive<Place>),
}

impl Change {
    /// Removes a row.
    pub(crate) fn remove(place: Place) -> Self {
        Self::Remove(place..=place)
    }
}

pub(crate) fn readings(zone: StableKey) -> Place {
    (zone.0, READINGS, 0, 0)
}

pub(crate) fn stream(zone: StableKey, peer: ZoneId) -> Place {
    (zone.0, STREAM, peer.journal.0, peer.zone.0)
}

/// Returns the zone to which a stream leads.
pub(crate) fn peer_at((.., journal, zone): Place) -> ZoneId {
    ZoneId {
        journal: JournalId(journal),
        zone: StableKey(zone),
    }
}

/// The item with this number in the stream to a zone. Those in the stream to itself wait for an entity.
pub(crate) fn item(from: StableKey, to: StableKey, number: u64) -> Place {
    (from.0, ITEM, to.0.into(), number)
}

/// Returns to which zone an item goes, and its number.
pub(crate) fn item_at((.., to, number): Place) -> (StableKey, u64) {
    (StableKey(to as u64), number)
}

pub(crate) fn entity(zone: StableKey, Life { key, birth }: Life) -> Place {
    (zone.0, ENTITY, key.0.into(), birth)
}

/// Returns whose row this is.
pub(crate) fn life_at((.., key, birth): Place) -> Life {
    let key = StableKey(key as u64);
    Life { key, birth }
}

pub(crate) fn dead(zone: StableKey, journal: JournalId) -> Place {
    (zone.0, DEAD, journal.0, 0)
}

/// Returns the places of a zone.
pub(crate) fn of_zone(zone: StableKey) -> RangeInclusive<Place> {
    (zone.0, 0, 0, 0)..=(zone.0, u8::MAX, u128::MAX, u64::MAX)
}
