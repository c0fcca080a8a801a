//! The packets that worlds exchange.

use alloc::borrow::Cow;
use core::fmt;

use bevy_ecs::message::Message;

use super::address::{Address, StableKey};
use crate::message::{Delivery, Packet, RefusalReason, Request};

/// A packet for another group of worlds, with its recipients.
///
/// The [`Delivery`] first selects worlds of the group: the world that has the entity, all worlds,
/// or exactly one in turn. Then it selects entities in each of these worlds in the same way. A
/// parcel is serialized as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Parcel {
    /// The name of the group of worlds.
    pub group: Cow<'static, str>,
    /// The recipients in that group.
    pub delivery: Delivery<StableKey>,
    /// The packet.
    pub packet: Packet,
    pub(super) part: Part,
}

/// The role of a parcel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Part {
    Plain,
    Request {
        reply_to: Address,
        request: RequestId,
    },
    Reply(RequestId),
}

/// A request as other worlds know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct RequestId {
    /// A random-looking number that only the asking world can compute. Whoever knows it can reply.
    pub(super) token: u64,
    /// The number of the request in the asking world. Worlds that are built alike give their requests
    /// the same numbers.
    pub(super) number: u64,
}

impl From<RequestId> for Request {
    fn from(RequestId { token, number }: RequestId) -> Self {
        Self::elsewhere(token, number)
    }
}

impl Parcel {
    /// Creates a parcel.
    ///
    /// To get a reply, send it with [`ask_world`](crate::worlds::ParcelEntityCommandsExt::ask_world).
    #[must_use]
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        delivery: impl Into<Delivery<StableKey>>,
        packet: Packet,
    ) -> Self {
        Self {
            group: group.into(),
            delivery: delivery.into(),
            packet,
            part: Part::Plain,
        }
    }

    /// Refuses the parcel.
    pub(super) fn refused(self, reason: RefusalReason) -> Refused {
        Refused {
            parcel: self,
            reason,
        }
    }

    /// Returns `true` if the parcel makes a request.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self.part, Part::Request { .. })
    }

    /// Returns `true` if the parcel is the reply to a request.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        matches!(self.part, Part::Reply(_))
    }
}

/// A parcel that was not taken, with the reason.
///
/// If a parcel from [`post`](crate::worlds::ParcelCommandsExt::post) is refused, at once or later by another
/// process, this message is sent to all followers in the sending world. Without a follower, Bevy's error
/// handler gets a warning.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The parcel.
    pub parcel: Parcel,
    /// The reason.
    pub reason: RefusalReason,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parcel, reason } = self;
        write!(
            f,
            "packet {} for {:?} of the group {:?} was refused: {reason}",
            parcel.packet.id(),
            parcel.delivery,
            parcel.group
        )
    }
}

impl core::error::Error for Refused {}
