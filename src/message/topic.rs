//! The kinds of messages that an entity can follow.

use core::any::{Any, TypeId};

use bevy_ecs::message::Message;

use super::packet::Packet;

/// Marks the types that can be sent: every [`Message`], and [`Packet`].
pub trait Payload: sealed::Sealed + Any + Send + Sync {}

impl<P: sealed::Sealed + Any + Send + Sync> Payload for P {}

/// A kind of message that an entity can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// All messages of a type.
    Type(TypeId),
    /// All packets with an id.
    Packet(u32),
}

impl Topic {
    pub(crate) fn of<M: Message>() -> Self {
        Self::Type(TypeId::of::<M>())
    }
}

pub(super) mod sealed {
    use super::{Message, Packet, Topic};

    pub trait Sealed {
        /// Returns the topic of this message.
        #[doc(hidden)]
        fn topic(&self) -> Topic;
    }

    impl<M: Message> Sealed for M {
        fn topic(&self) -> Topic {
            Topic::of::<M>()
        }
    }

    impl Sealed for Packet {
        fn topic(&self) -> Topic {
            Topic::Packet(self.id())
        }
    }
}
