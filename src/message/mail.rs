//! The parts of a message: its recipients, its contents, its topic and its role.

use alloc::{boxed::Box, format, string::String};
use core::{
    any::{Any, TypeId, type_name},
    hash::{Hash, Hasher},
};

use bevy_ecs::prelude::*;
use bevy_platform::sync::Arc;

use super::{
    followers::Round,
    request::{ReplyTo, Request},
};

/// Selects the entities that receive a message. An `Entity` converts into [`To`](Self::To).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    any(feature = "serialize", feature = "worlds"),
    derive(serde::Serialize, serde::Deserialize)
)]
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

/// Returns what an error calls the recipients.
pub(crate) fn name_of_recipients(to: Option<Delivery>) -> String {
    match to {
        Some(Delivery::To(entity)) => format!("entity {entity}"),
        Some(Delivery::All) => "all followers".into(),
        Some(Delivery::InTurn) => "one follower in turn".into(),
        None => "a stable key".into(),
    }
}

/// Marks the types that can be sent: every [`Message`], and [`Packet`].
pub trait Payload: Any + Send + Sync {
    #[doc(hidden)]
    fn topic(&self) -> Topic;

    /// Returns the message and the name of its type.
    #[doc(hidden)]
    fn content(&self) -> (&dyn Any, &'static str);
}

impl<M: Message> Payload for M {
    #[inline]
    fn topic(&self) -> Topic {
        Topic::of::<M>()
    }

    #[inline]
    fn content(&self) -> (&dyn Any, &'static str) {
        (self, type_name::<M>())
    }
}

impl Payload for Packet {
    #[inline]
    fn topic(&self) -> Topic {
        Topic::Packet(self.id())
    }

    #[inline]
    fn content(&self) -> (&dyn Any, &'static str) {
        (self, type_name::<Self>())
    }
}

/// A message of any type that letters and snapshots share with the queue.
#[derive(Clone)]
pub(super) struct Shared(Arc<dyn Payload>);

impl Shared {
    pub(super) fn new(payload: impl Payload) -> Self {
        if let Some(shared) = (&payload as &dyn Any).downcast_ref::<Self>() {
            return shared.clone();
        }
        // Not `Arc::new`, which can't make an `Arc<dyn ..>` on platforms without atomics.
        let payload: Box<dyn Payload> = Box::new(payload);
        Self(payload.into())
    }
}

impl Payload for Shared {
    fn topic(&self) -> Topic {
        self.0.topic()
    }

    fn content(&self) -> (&dyn Any, &'static str) {
        self.0.content()
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
#[cfg_attr(
    any(feature = "serialize", feature = "worlds"),
    derive(serde::Serialize, serde::Deserialize)
)]
pub struct Packet {
    id: u32,
    #[cfg_attr(
        any(feature = "serialize", feature = "worlds"),
        serde(
            serialize_with = "<[u8] as serde::Serialize>::serialize",
            deserialize_with = "bytes"
        )
    )]
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

    /// Creates a packet from an id and a value, in the format of [postcard](https://docs.rs/postcard).
    ///
    /// # Errors
    ///
    /// Returns the error of the value's `Serialize`.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{message::Packet, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// const PAY: u32 = 4;
    ///
    /// #[derive(Component)]
    /// struct Gold(u64);
    ///
    /// // A callback returns the errors of what it gets.
    /// let purse = MessageComponent::new().on_packet(PAY, |mut me, packet| -> Result {
    ///     let amount: u64 = packet.decode()?;
    ///     me.entity.get_mut::<Gold>().ok_or("no purse")?.0 += amount;
    ///     Ok(())
    /// });
    /// let packet = Packet::encode(PAY, &300_u64)?;
    /// assert_eq!(packet.decode::<u64>()?, 300);
    /// assert!(packet.decode::<(u64, u64)>().is_err());
    /// # Ok::<(), BevyError>(())
    /// ```
    #[cfg(any(feature = "serialize", feature = "worlds"))]
    pub fn encode(id: u32, value: &impl serde::Serialize) -> Result<Self> {
        Ok(Self::new(id, postcard::to_allocvec(value)?))
    }

    /// Returns the value in a packet that was made with [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// Returns the error of the value's `Deserialize`, also if bytes are left over.
    #[cfg(any(feature = "serialize", feature = "worlds"))]
    pub fn decode<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T> {
        let error = |error: &dyn core::fmt::Display| {
            let (id, name) = (self.id, type_name::<T>());
            BevyError::from(format!("the packet {id} has no `{name}`: {error}"))
        };
        match postcard::take_from_bytes(&self.payload).map_err(|it| error(&it))? {
            (value, []) => Ok(value),
            (_, rest) => Err(error(&format!("{} bytes are left over", rest.len()))),
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

/// The recipient of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Recipient {
    Entity(Entity),
    /// The entity that other worlds know by this key. It is looked up on delivery.
    #[cfg_attr(
        not(any(feature = "serialize", feature = "worlds")),
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

impl Recipient {
    /// Returns the recipients, unless they have a key.
    pub(crate) fn delivery(self) -> Option<Delivery> {
        match self {
            Self::Entity(entity) => Some(Delivery::To(entity)),
            Self::Key(_) => None,
            Self::All => Some(Delivery::All),
            Self::InTurn => Some(Delivery::InTurn),
        }
    }

    /// Returns the entity, or a placeholder if the recipient is another.
    #[inline]
    pub(crate) fn entity(self) -> Entity {
        match self {
            Self::Entity(entity) => entity,
            _ => Entity::PLACEHOLDER,
        }
    }

    /// Returns this entity if the recipient is one, or else the recipient.
    #[inline]
    pub(crate) fn with(self, entity: Entity) -> Self {
        match self {
            Self::Entity(_) => Self::Entity(entity),
            other => other,
        }
    }

    /// Returns `true` if messages to both can be in a batch.
    #[inline]
    pub(super) fn shares_batch_with(self, other: Self) -> bool {
        self.with(Entity::PLACEHOLDER) == other.with(Entity::PLACEHOLDER)
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
    pub(crate) payload: &'a dyn Payload,
    /// The progress of the message, if its delivery to all has begun.
    pub(crate) round: Option<&'a Round>,
}

#[cfg(any(feature = "serialize", feature = "worlds"))]
fn bytes<'de, D: serde::Deserializer<'de>>(bytes: D) -> Result<Arc<[u8]>, D::Error> {
    let bytes: Box<[u8]> = serde::Deserialize::deserialize(bytes)?;
    Ok(bytes.into())
}
