//! A message on its way.

use alloc::boxed::Box;
use core::fmt;

use bevy_ecs::entity::Entity;

use super::{
    packet::Packet,
    payload::{AnyPayload, Payload},
    request::{ReplyTo, Request},
};

/// Selects the entities that receive a message. An `Entity` converts into [`To`](Self::To).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum Delivery<To = Entity> {
    /// This entity.
    To(To),
    /// All entities that follow the message when the run delivers it.
    ///
    /// An entity whose component is replaced before its turn gets the message in the next run, with
    /// its new callback. An entity that starts to follow during the delivery does not get it, unless
    /// there is no other follower. Then the message waits for the new ones until the next run.
    #[doc(alias("broadcast", "publish"))]
    All,
    /// Exactly one of the entities that follow the message, round-robin.
    ///
    /// Turns go by the order in which the entities started to follow the message. They stay fair
    /// when entities join and leave. If all of them take part only from the next run on, the
    /// message waits until then.
    #[doc(alias("exclusive", "round_robin", "queue group"))]
    InTurn,
}

impl From<Entity> for Delivery {
    #[inline]
    fn from(entity: Entity) -> Self {
        Self::To(entity)
    }
}

/// A message that was not delivered, returned by [`close_inbox`](crate::DueWorldExt::close_inbox).
///
/// [`resend`](crate::DueWorldExt::resend) sends it again.
pub struct Undelivered(pub(crate) Letter);

impl Undelivered {
    /// Returns the message, if it has the type `M`.
    #[must_use]
    pub fn message<M: Payload>(&self) -> Option<&M> {
        self.0.message()
    }

    /// Returns the message, if it is a packet.
    #[must_use]
    pub fn packet(&self) -> Option<&Packet> {
        self.message()
    }

    /// Returns the type name of the message.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.0.payload.name()
    }

    /// Returns the recipients, or `None` if another world sent the message to a key.
    #[must_use]
    pub fn delivery(&self) -> Option<Delivery> {
        match self.0.to {
            Recipient::Entity(entity) => Some(Delivery::To(entity)),
            Recipient::Key(_) => None,
            Recipient::All => Some(Delivery::All),
            Recipient::InTurn => Some(Delivery::InTurn),
        }
    }

    /// Returns the request that the message makes or replies to, if any.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        self.0.role.request()
    }

    /// Returns where to send a reply, if the message is a request.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.0.role.reply_to()
    }
}

#[cfg(feature = "worlds")]
impl Undelivered {
    pub(crate) fn role(&self) -> &Role {
        &self.0.role
    }
}

impl fmt::Debug for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undelivered")
            .field("to", &self.0.to)
            .field("message", &format_args!("{}", self.type_name()))
            .field("role", &self.0.role)
            .finish_non_exhaustive()
    }
}

/// A message with its recipient.
pub(crate) struct Letter {
    pub(super) to: Recipient,
    pub(super) payload: AnyPayload,
    pub(super) role: Role,
}

/// The recipient of a letter.
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

/// The role of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Request(Box<ReplyTo>),
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

impl Letter {
    pub(crate) fn new<P: Payload>(to: impl Into<Recipient>, payload: P, role: Role) -> Self {
        Self {
            to: to.into(),
            payload: payload.into_any(P::room()),
            role,
        }
    }

    /// Creates a letter that neither asks nor replies, without an allocation.
    pub(super) fn plain_in<P: Payload>(room: P::Room, to: Delivery, payload: P) -> Self {
        Self {
            to: to.into(),
            payload: payload.into_any(room),
            role: Role::Plain,
        }
    }

    /// Creates a letter that neither asks nor replies.
    pub(crate) fn plain<P: Payload>(to: impl Into<Recipient>, payload: P) -> Self {
        Self::new(to, payload, Role::Plain)
    }

    /// Returns the message, if it has the type `M`.
    pub(super) fn message<M: Payload>(&self) -> Option<&M> {
        self.payload.as_any().downcast_ref()
    }
}

impl From<Delivery> for Recipient {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::To(entity) => Self::Entity(entity),
            Delivery::All => Self::All,
            Delivery::InTurn => Self::InTurn,
        }
    }
}

impl From<Entity> for Recipient {
    fn from(entity: Entity) -> Self {
        Self::Entity(entity)
    }
}
