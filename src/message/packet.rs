//! What is sent: messages of a type, and packets of a number.

use core::any::{Any, TypeId};

use bevy_ecs::message::Message;
use bevy_platform::sync::Arc;

/// Bytes with a number that says what they are, as they come off a network, or go to another world.
///
/// A clone shares the bytes.
///
/// # Examples
///
/// ```
/// use bevy_due::Packet;
///
/// const SAY: u32 = 3;
///
/// let packet = Packet::new(SAY, *b"hello");
/// assert_eq!((packet.id(), packet.payload()), (3, b"hello".as_slice()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Packet {
    id: u32,
    #[cfg_attr(feature = "serialize", serde(with = "bytes"))]
    payload: Arc<[u8]>,
}

impl Packet {
    /// Creates a packet.
    #[must_use]
    pub fn new(id: u32, payload: impl Into<Arc<[u8]>>) -> Self {
        Self {
            id,
            payload: payload.into(),
        }
    }

    /// Returns the number that says what it is.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the bytes.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// What can be sent: every [`Message`] of Bevy's, and [`Packet`]s.
pub trait Payload: sealed::Sealed + Any + Send + Sync {}

impl<P: sealed::Sealed + Any + Send + Sync> Payload for P {}

pub(super) mod sealed {
    use super::{Message, Packet, Topic};

    pub trait Sealed {
        /// What it is.
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

/// A payload on its way to whoever follows it.
pub(crate) type Shared = Arc<dyn Any + Send + Sync>;

/// What somebody follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Messages of a type.
    Type(TypeId),
    /// Packets of a number.
    Packet(u32),
}

impl Topic {
    pub(super) fn of<M: Message>() -> Self {
        Self::Type(TypeId::of::<M>())
    }
}

#[cfg(feature = "serialize")]
mod bytes {
    use alloc::vec::Vec;

    use bevy_platform::sync::Arc;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Arc<[u8]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes[..].serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[u8]>, D::Error> {
        Ok(Vec::<u8>::deserialize(deserializer)?.into())
    }
}
