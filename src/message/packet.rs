//! Packets: bytes with an id.

use bevy_platform::sync::Arc;

/// Bytes with an id that names their kind, for networks and other worlds.
///
/// Clones share the bytes.
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
