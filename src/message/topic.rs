//! The kinds of messages that an entity can follow.

use core::{
    any::{Any, TypeId},
    hash::{Hash, Hasher},
};

use bevy_ecs::message::Message;

use super::packet::Packet;

/// Marks the types that can be sent: every [`Message`], and [`Packet`].
pub trait Payload: sealed::Sealed + Any + Send + Sync {}

impl<P: sealed::Sealed + Any + Send + Sync> Payload for P {}

/// A kind of message that an entity can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// All messages of a type.
    Type(TypeId),
    /// All packets with an id.
    Packet(u32),
}

/// Writes a single number that is a good hash in itself.
impl Hash for Topic {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Type(id) => id.hash(state),
            // The golden ratio spreads ids that follow each other.
            Self::Packet(id) => state.write_u64(u64::from(*id).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        }
    }
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
