//! The contents of messages.

use alloc::boxed::Box;
use core::{
    any::{Any, type_name},
    fmt,
    mem::MaybeUninit,
};

use bevy_ecs::message::Message;

use super::{packet::Packet, topic::Topic};

/// Marks the types that can be sent: every [`Message`], and [`Packet`].
pub trait Payload: sealed::Sealed + Any + Send + Sync {}

impl<P: sealed::Sealed + Any + Send + Sync> Payload for P {}

/// A payload of any type. A packet is small and needs no box.
pub enum AnyPayload {
    Packet(Packet),
    Message(Box<dyn AnyMessage>),
}

/// A message of any type, with its topic and the name of its type.
pub trait AnyMessage: Any + Send + Sync {
    fn topic(&self) -> Topic;
    fn name(&self) -> &'static str;
}

impl<M: Message> AnyMessage for M {
    fn topic(&self) -> Topic {
        Topic::of::<M>()
    }

    fn name(&self) -> &'static str {
        type_name::<M>()
    }
}

impl AnyPayload {
    pub(super) fn topic(&self) -> Topic {
        match self {
            Self::Packet(packet) => Topic::Packet(packet.id()),
            Self::Message(message) => (**message).topic(),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Packet(_) => type_name::<Packet>(),
            Self::Message(message) => (**message).name(),
        }
    }

    pub(super) fn as_any(&self) -> &dyn Any {
        match self {
            Self::Packet(packet) => packet,
            Self::Message(message) => &**message,
        }
    }
}

impl fmt::Debug for AnyPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(super) mod sealed {
    use super::{AnyPayload, Box, MaybeUninit, Message, Packet, Topic};

    #[doc(hidden)]
    pub trait Sealed: Sized {
        /// Memory for a message, allocated before a lock is taken.
        type Room;

        /// Returns the topic of this message.
        fn topic(&self) -> Topic;

        fn room() -> Self::Room;

        fn into_any(self, room: Self::Room) -> AnyPayload;
    }

    impl<M: Message> Sealed for M {
        type Room = Box<MaybeUninit<M>>;

        fn topic(&self) -> Topic {
            Topic::of::<M>()
        }

        fn room() -> Self::Room {
            Box::new_uninit()
        }

        fn into_any(self, room: Self::Room) -> AnyPayload {
            let message: Box<M> = Box::write(room, self);
            AnyPayload::Message(message)
        }
    }

    impl Sealed for Packet {
        type Room = ();

        fn topic(&self) -> Topic {
            Topic::Packet(self.id())
        }

        fn room() -> Self::Room {}

        fn into_any(self, (): Self::Room) -> AnyPayload {
            AnyPayload::Packet(self)
        }
    }
}
