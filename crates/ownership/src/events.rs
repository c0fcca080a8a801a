//! What durable entities are told.

use bevy_due::{message::Packet, worlds::StableKey};
use bevy_ecs::prelude::*;

/// A durable entity has come into this world: from another zone, or from the journal after a restart.
///
/// It has its timers and its registered components. Observe this to insert what is not stored: its
/// [`MessageComponent`](bevy_due::message::MessageComponent), its observers, its appearance.
#[derive(EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The entity.
    pub entity: Entity,
    /// Its key.
    pub key: StableKey,
}

/// A durable entity could not move to another zone. It is here.
#[derive(EntityEvent, Clone, Debug, PartialEq, Eq)]
pub struct MoveFailed {
    /// The entity.
    pub entity: Entity,
    /// The destination.
    pub zone: StableKey,
    /// The reason.
    pub reason: String,
}

/// A letter of a durable entity was not delivered.
#[derive(EntityEvent, Clone, Debug, PartialEq, Eq)]
pub struct MailReturned {
    /// The sender.
    pub entity: Entity,
    /// The recipient.
    pub to: StableKey,
    /// The letter.
    pub letter: Packet,
}
