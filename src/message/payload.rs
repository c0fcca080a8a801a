//! The contents of messages, and the topics by which entities follow them.

use core::{
    any::{Any, TypeId},
    hash::{Hash, Hasher},
};

use bevy_ecs::message::Message;
use bevy_platform::sync::Arc;

/// Marks the types that can be sent: every [`Message`], and [`Packet`].
pub trait Payload: Any + Send + Sync {
    #[doc(hidden)]
    fn topic(&self) -> Topic;
}

impl<M: Message> Payload for M {
    #[inline]
    fn topic(&self) -> Topic {
        Topic::of::<M>()
    }
}

impl Payload for Packet {
    #[inline]
    fn topic(&self) -> Topic {
        Topic::Packet(self.id())
    }
}

/// A kind of message that an entity can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// All messages of a type.
    Type(TypeId),
    /// All packets with an id.
    Packet(u32),
}

/// Writes a single number, whose bits need no further mixing.
impl Hash for Topic {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Type(id) => id.hash(state),
            Self::Packet(id) => {
                // The golden ratio spreads ids that follow each other. A map looks at the lower bits,
                // and only the upper bits of the product depend on all bits of the id.
                let product = u64::from(*id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                state.write_u64(product.rotate_left(32));
            }
        }
    }
}

impl Topic {
    pub(crate) fn of<M: Message>() -> Self {
        Self::Type(TypeId::of::<M>())
    }
}

/// Bytes with an id that names their kind, for networks and other worlds.
///
/// Clones share the bytes.
///
/// # Examples
///
/// ```
/// use bevy_due::message::Packet;
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
    /// Creates a packet from an id and bytes.
    #[must_use]
    pub fn new(id: u32, payload: impl Into<Arc<[u8]>>) -> Self {
        Self {
            id,
            payload: payload.into(),
        }
    }

    /// Returns the id.
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
