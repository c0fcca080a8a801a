//! The packets that worlds exchange.

use alloc::{borrow::Cow, boxed::Box};

use bevy_ecs::{message::Message, world::World};
use thiserror::Error;

use super::{address::StableKey, world_link::post};
use crate::message::{
    Delivery, Letter, MessageSender, Packet, RefusalReason, RemoteAsker, ReplyTo, Request, Role,
    SendError,
};

/// A packet for another group of worlds, with its recipients.
///
/// The [`Delivery`] first selects worlds of the group: the world that has the entity, all worlds,
/// or exactly one in turn. Then it selects entities in each of these worlds in the same way. A
/// parcel is serialized as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum Part {
    Plain,
    Request(RemoteAsker),
    /// The reply to the request with this token and number in the world that made it.
    Reply {
        token: u64,
        number: u64,
    },
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

    /// Returns the request that the parcel makes, if any.
    pub(super) fn request(&self) -> Option<Request> {
        match &self.part {
            &Part::Request(RemoteAsker { token, number, .. }) => {
                Some(Request::elsewhere(token, number))
            }
            Part::Plain | Part::Reply { .. } => None,
        }
    }

    /// Returns the group and the key to which a reply goes, if the parcel makes a request.
    pub(super) fn asker(&self) -> Option<(&str, StableKey)> {
        match &self.part {
            Part::Request(RemoteAsker { group, key, .. }) => Some((group, StableKey(*key))),
            Part::Plain | Part::Reply { .. } => None,
        }
    }

    /// Lets a reply go to another key of the asking world.
    pub(super) fn asked_by(mut self, StableKey(by): StableKey) -> Self {
        if let Part::Request(RemoteAsker { key, .. }) = &mut self.part {
            *key = by;
        }
        self
    }

    /// Returns `true` if the parcel makes a request.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self.part, Part::Request(_))
    }

    /// Returns `true` if the parcel is the reply to a request.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        matches!(self.part, Part::Reply { .. })
    }
}

/// A parcel that was not taken, with the reason.
///
/// If a parcel from [`post`](crate::worlds::ParcelCommandsExt::post) is refused, at once or later by another
/// process, this message is sent to all followers in the sending world. Without a follower, Bevy's error
/// handler gets a warning.
#[derive(Message, Clone, Debug, PartialEq, Eq, Error, serde::Serialize, serde::Deserialize)]
#[error(
    "packet {} for {:?} of the group {:?} was refused: {reason}",
    parcel.packet.id(),
    parcel.delivery,
    parcel.group
)]
pub struct Refused {
    /// The parcel.
    pub parcel: Parcel,
    /// The reason.
    pub reason: RefusalReason,
}

impl MessageSender {
    /// Takes a copy of a parcel from another world.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] if the inbox is full or closed.
    pub(super) fn receive(&self, parcel: &Parcel) -> Result<(), SendError<()>> {
        let bytes = parcel.packet.payload().len();
        // It allocates memory, so it is made before the inbox is locked.
        let role = match &parcel.part {
            Part::Plain => Role::Plain,
            Part::Request(asker) => Role::Request(ReplyTo::elsewhere(asker.clone(), post_reply)),
            &Part::Reply { token, number } => Role::Reply(Request::elsewhere(token, number)),
        };
        self.put((), bytes, |(), queue| {
            queue.push(parcel.delivery.into(), parcel.packet.clone(), role);
        })
    }
}

/// Posts the reply to a request of an entity of another world.
pub(crate) fn post_reply(sender: &mut World, asker: &RemoteAsker, packet: Packet) {
    let &RemoteAsker {
        key, token, number, ..
    } = asker;
    let mut parcel = Parcel::new(asker.group.clone(), StableKey(key), packet);
    parcel.part = Part::Reply { token, number };
    post(sender, parcel);
}

impl Letter {
    /// Turns the message into a parcel for another group or another world, for example after the world
    /// that had got it has ended. A request stays open at its asker, who gets the reply of the other world.
    ///
    /// # Errors
    ///
    /// Returns the message if it can't be a parcel: it is not a [packet](Self::packet), or it is a request
    /// or a reply between two entities of the world that has ended.
    ///
    /// # Examples
    ///
    /// A supervisor that gives the work of a world that has panicked to another one:
    ///
    /// ```
    /// use bevy_due::{message::Delivery, worlds::WorldGroups};
    ///
    /// fn pass_on(groups: &mut WorldGroups) {
    ///     for world in groups.ended() {
    ///         for message in world.undelivered {
    ///             match message.into_parcel(world.group.clone(), Delivery::InTurn) {
    ///                 Ok(parcel) => groups.post(parcel).unwrap_or_else(|error| eprintln!("{error}")),
    ///                 Err(message) => eprintln!("{message:?} is lost"),
    ///             }
    ///         }
    ///     }
    /// }
    /// # pass_on(&mut WorldGroups::new());
    /// ```
    pub fn into_parcel(
        self,
        group: impl Into<Cow<'static, str>>,
        delivery: impl Into<Delivery<StableKey>>,
    ) -> Result<Parcel, Box<Self>> {
        let (Some(packet), Some(part)) = (self.packet(), Part::of(&self.role)) else {
            return Err(Box::new(self));
        };
        let mut parcel = Parcel::new(group, delivery, packet.clone());
        parcel.part = part;
        Ok(parcel)
    }
}

impl Part {
    /// Returns the role in a parcel, if other worlds know the request.
    fn of(role: &Role) -> Option<Self> {
        Some(match role {
            Role::Plain => Self::Plain,
            Role::Request(reply_to) => Self::Request(reply_to.remote_asker()?.clone()),
            Role::Reply(request) => {
                let (token, number) = request.name()?;
                Self::Reply { token, number }
            }
        })
    }
}
