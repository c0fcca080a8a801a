//! The kinds of messages that an entity can follow.

use core::{
    any::TypeId,
    hash::{Hash, Hasher},
};

use bevy_ecs::message::Message;

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
