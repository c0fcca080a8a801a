//! The recipients and the role of a message.

use core::any::Any;

use bevy_ecs::prelude::*;

use super::request::{ReplyTo, Request};

/// Selects the entities that receive a message. An `Entity` converts into [`To`](Self::To).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum Delivery<To = Entity> {
    /// This entity.
    To(To),
    /// All entities that follow the message when its delivery begins. An entity that starts to follow
    /// later does not get it.
    #[doc(alias("broadcast", "publish"))]
    All,
    /// Exactly one of the entities that follow the message, round-robin.
    ///
    /// Turns go by the order in which the entities started to follow the message. They stay fair
    /// when entities join and leave. An entity that replaces its component keeps its place.
    #[doc(alias("exclusive", "round_robin", "queue group"))]
    InTurn,
}

impl From<Entity> for Delivery {
    #[inline]
    fn from(entity: Entity) -> Self {
        Self::To(entity)
    }
}

/// The recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    Entity(Entity),
    /// The entity that other worlds know by this key. It is looked up on delivery.
    #[cfg_attr(
        not(feature = "worlds"),
        expect(dead_code, reason = "there is no other world")
    )]
    Key(u64),
    All,
    InTurn,
}

impl From<Delivery> for Recipient {
    #[inline]
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::To(entity) => Self::Entity(entity),
            Delivery::All => Self::All,
            Delivery::InTurn => Self::InTurn,
        }
    }
}

impl From<Entity> for Recipient {
    #[inline]
    fn from(entity: Entity) -> Self {
        Self::Entity(entity)
    }
}

/// The role of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Request(ReplyTo),
    Reply(Request),
}

impl Role {
    pub(super) fn request(&self) -> Option<Request> {
        match self {
            Self::Plain => None,
            Self::Request(reply_to) => Some(reply_to.request()),
            Self::Reply(request) => Some(*request),
        }
    }

    pub(super) fn reply_to(&self) -> Option<&ReplyTo> {
        match self {
            Self::Request(reply_to) => Some(reply_to),
            Self::Plain | Self::Reply(_) => None,
        }
    }
}

/// A waiting message.
#[derive(Clone, Copy)]
pub(crate) struct MailRef<'a> {
    pub(crate) to: Recipient,
    pub(crate) role: &'a Role,
    /// The name of the type.
    pub(crate) name: &'static str,
    pub(crate) payload: &'a dyn Any,
}
