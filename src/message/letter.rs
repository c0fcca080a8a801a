//! A message on its way.

use alloc::boxed::Box;
use core::{
    any::{Any, type_name},
    fmt,
};

use bevy_ecs::entity::Entity;
use bevy_platform::sync::Arc;

use super::{
    Packet, Payload, ReplyTo, Session, StableKey,
    packet::{Shared, Topic, sealed::Sealed},
};

/// Whom a message is for. An entity stands for [`To`](Self::To) that entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum Delivery<To = Entity> {
    /// One, whom the sender knows.
    To(To),
    /// All that follow it.
    #[doc(alias("broadcast", "publish"))]
    All,
    /// Exactly one of those that follow it, the one whose turn it is: round robin, in the order in
    /// which they were inserted, whoever comes and goes.
    #[doc(alias("exclusive", "round_robin", "queue group"))]
    InTurn,
}

impl From<Entity> for Delivery {
    fn from(entity: Entity) -> Self {
        Self::To(entity)
    }
}

impl From<StableKey> for Delivery<StableKey> {
    fn from(key: StableKey) -> Self {
        Self::To(key)
    }
}

/// A message that has not been delivered: see
/// [`close_inbox`](super::MessageWorldExt::close_inbox), and
/// [`send_letter`](super::MessageWorldExt::send_letter) to send it after all.
#[derive(Clone)]
pub struct Letter {
    pub(super) to: Recipient,
    pub(super) topic: Topic,
    /// The type of what is in it.
    pub(super) name: &'static str,
    pub(super) payload: Shared,
    pub(super) regarding: Regarding,
}

/// Whom a letter is for, in this world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipient {
    /// An entity.
    One(Entity),
    /// The entity of a key.
    Key(StableKey),
    /// All that follow it.
    All,
    /// One of those that follow it, in turn.
    InTurn,
}

/// What a letter is part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Regarding {
    #[default]
    Nothing,
    Question(Box<ReplyTo>),
    Answer(Session),
}

impl Regarding {
    pub(super) fn session(&self) -> Option<Session> {
        match self {
            Self::Nothing => None,
            Self::Question(reply_to) => Some(reply_to.session()),
            Self::Answer(session) => Some(*session),
        }
    }

    pub(super) fn reply_to(&self) -> Option<&ReplyTo> {
        match self {
            Self::Question(reply_to) => Some(reply_to),
            _ => None,
        }
    }
}

impl Letter {
    pub(super) fn new<P: Payload>(
        to: impl Into<Recipient>,
        payload: P,
        regarding: Regarding,
    ) -> Self {
        Self {
            to: to.into(),
            topic: Sealed::topic(&payload),
            name: type_name::<P>(),
            payload: Arc::new(payload),
            regarding,
        }
    }

    /// Returns the message, if it is of this type.
    #[must_use]
    pub fn message<M: Payload>(&self) -> Option<&M> {
        let payload: &dyn Any = &*self.payload;
        payload.downcast_ref()
    }

    /// Returns the name of the type of the message.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.name
    }

    /// Returns whom it is for.
    #[must_use]
    pub fn recipient(&self) -> Recipient {
        self.to
    }

    /// Returns the number of the question that it is, or answers.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.regarding.session()
    }

    /// Returns where to send an answer, if it is a question.
    #[must_use]
    pub fn reply_to(&self) -> Option<&ReplyTo> {
        self.regarding.reply_to()
    }

    /// Returns the packet, if it is one.
    #[must_use]
    pub fn packet(&self) -> Option<&Packet> {
        self.message()
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letter")
            .field("to", &self.to)
            .field("message", &format_args!("{}", self.name))
            .field("regarding", &self.regarding)
            .finish_non_exhaustive()
    }
}

impl From<Delivery> for Recipient {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::To(entity) => Self::One(entity),
            Delivery::All => Self::All,
            Delivery::InTurn => Self::InTurn,
        }
    }
}

impl From<Delivery<StableKey>> for Recipient {
    fn from(delivery: Delivery<StableKey>) -> Self {
        match delivery {
            Delivery::To(key) => Self::Key(key),
            Delivery::All => Self::All,
            Delivery::InTurn => Self::InTurn,
        }
    }
}

impl From<Entity> for Recipient {
    fn from(entity: Entity) -> Self {
        Self::One(entity)
    }
}
