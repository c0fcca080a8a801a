//! The stored form of an entity.

use bevy_due::moving::MovedEntity;
use serde::{Deserialize, Serialize};

use crate::{outbox::Outbox, zone_clock::Readings};

/// An entity with everything that it owns, as the journal has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stored {
    /// `None` if it has despawned, and its last letters are still on their way.
    pub(crate) body: Option<Body>,
    pub(crate) outbox: Outbox,
    /// What the clocks of its zone showed.
    pub(crate) readings: Readings,
}

/// What an entity and its owned entities have, by the names of the world that stored them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Body {
    /// A random number of the world that named the entities.
    pub(crate) names: u64,
    pub(crate) moved: MovedEntity,
}
