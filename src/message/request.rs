//! Requests: making them, replying, and completing them without a reply.

use alloc::borrow::Cow;
use core::{
    any::{Any, type_name},
    fmt,
};

use bevy_ecs::prelude::*;
use bevy_platform::sync::Arc;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;
use thiserror::Error;

#[cfg(feature = "worlds")]
use super::send::send_urgently;
use super::{
    component::MessageContext,
    mail::{Packet, Payload, Recipient, Role},
    send::send_anyway,
};
use crate::{
    owner::OwnedBy,
    timer::{OpenRequest, Timer},
};

/// Identifies a request that an entity [made](super::MessageEntityCommandsExt::ask).
///
/// No two requests are equal. Each open request has an entity, one of the [`Owned`](crate::Owned)
/// entities of the asking entity. Despawn that entity to withdraw the request: a reply that arrives
/// later is dropped, and counted in [`MessageStats::late`](super::MessageStats::late).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// Proves that another world knows the request, if that world made it.
    token: Option<u64>,
    /// The bits of the entity in the world that made it.
    number: u64,
}

impl Request {
    /// Creates the request that `entity` of this world stands for.
    pub(crate) fn here(entity: Entity) -> Self {
        Self {
            token: None,
            number: entity.to_bits(),
        }
    }

    /// Creates a request that was made in another world.
    #[cfg(any(feature = "worlds", feature = "serialize"))]
    pub(crate) fn elsewhere(token: u64, number: u64) -> Self {
        let token = Some(token);
        Self { token, number }
    }

    /// Returns the entity of the request, if the request was made in this world.
    #[must_use]
    pub fn entity(self) -> Option<Entity> {
        match self.token {
            Some(_) => None,
            None => Entity::try_from_bits(self.number),
        }
    }

    /// Returns the token and the number of a request that was made in another world.
    pub(crate) fn name(self) -> Option<(u64, u64)> {
        self.token.map(|token| (token, self.number))
    }

    /// Changes the name of the entity of a request that was made in this world.
    pub(crate) fn rename(&mut self, name: &dyn Fn(Entity) -> Entity) {
        if let Some(entity) = self.entity() {
            *self = Self::here(name(entity));
        }
    }
}

/// Where to send the reply to a request. Store it to reply later.
///
/// # Examples
///
/// A waiter who passes a request on to the kitchen:
///
/// ```
/// use std::collections::HashMap;
/// use bevy_due::{
///     Timer,
///     message::{MessageCommandsExt, MessageEntityCommandsExt, ReplyTo, Request},
///     prelude::*,
/// };
/// use bevy_ecs::prelude::*;
///
/// #[derive(Message)]
/// struct Order;
/// #[derive(Message, Clone)]
/// struct Meal;
///
/// /// The guest for each request to the kitchen.
/// #[derive(Component, Default)]
/// struct Pending(HashMap<Request, ReplyTo>);
///
/// fn waiter(kitchen: Entity) -> impl Bundle {
///     let follows = MessageComponent::new()
///         .on(move |mut me, _: &Order| {
///             let Some(guest) = me.reply_to().cloned() else { return };
///             let waiter = me.entity.id();
///             let request = me.commands.entity(waiter).ask(kitchen, Order, Timer::after(60.0));
///             me.entity.get_mut::<Pending>().unwrap().0.insert(request, guest);
///         })
///         .on(|mut me, meal: &Meal| {
///             let Some(request) = me.request() else { return };
///             let guest = me.entity.get_mut::<Pending>().unwrap().0.remove(&request);
///             if let Some(guest) = guest {
///                 me.commands.reply(guest, meal.clone());
///             }
///         });
///     (follows, Pending::default())
/// }
/// # let mut world = World::new();
/// # let kitchen = world.spawn_empty().id();
/// # world.spawn(waiter(kitchen));
/// ```
#[derive(Clone)]
pub struct ReplyTo {
    pub(super) request: Request,
    pub(crate) route: Route,
}

/// The route of a reply to the asking entity.
#[derive(Clone)]
pub(crate) enum Route {
    Here(Entity),
    #[cfg_attr(
        not(feature = "worlds"),
        allow(dead_code, reason = "there is no other world")
    )]
    Elsewhere(Arc<RemoteAsker>, PostReply),
}

/// An entity of another world that has made a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    any(feature = "serialize", feature = "worlds"),
    derive(serde::Serialize, serde::Deserialize)
)]
pub(crate) struct RemoteAsker {
    /// The group and the key of the entity.
    pub(crate) group: Cow<'static, str>,
    pub(crate) key: u64,
    /// A random-looking number that only the asking world can compute. Whoever knows it can reply.
    pub(crate) token: u64,
    /// The number of the request in the asking world. Worlds that are built alike give their requests
    /// the same numbers.
    pub(crate) number: u64,
}

/// Posts the reply to a request from another world.
pub(crate) type PostReply = fn(&mut World, &RemoteAsker, Packet);

impl ReplyTo {
    pub(crate) fn here(asker: Entity, request: Request) -> Self {
        let route = Route::Here(asker);
        Self { request, route }
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> Request {
        self.request
    }

    /// Returns the asker, if it is an entity of another world.
    #[cfg(feature = "worlds")]
    pub(crate) fn remote_asker(&self) -> Option<&RemoteAsker> {
        match &self.route {
            Route::Here(_) => None,
            Route::Elsewhere(asker, _) => Some(asker),
        }
    }

    #[cfg(feature = "worlds")]
    pub(crate) fn elsewhere(asker: RemoteAsker, post: PostReply) -> Self {
        let RemoteAsker { token, number, .. } = asker;
        Self {
            request: Request::elsewhere(token, number),
            route: Route::Elsewhere(Arc::new(asker), post),
        }
    }
}

impl PartialEq for ReplyTo {
    fn eq(&self, other: &Self) -> bool {
        self.request == other.request
    }
}

impl Eq for ReplyTo {}

impl fmt::Debug for ReplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyTo")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// The reason why a [`reply`](super::MessageContext::reply) is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// The message is not a request.
    #[error("the message is not a request: send it with `ask`")]
    NotARequest,
    /// The request comes from another world, so the reply must be a [`Packet`]. This is the type of
    /// the reply.
    #[error("a reply to another world must be a packet, not a {0}")]
    NotAPacket(&'static str),
}

/// The message that completes a request without a reply.
///
/// It goes to the asking entity, which follows it like any other message.
/// [`MessageContext::request`](super::MessageContext::request) returns the request that it
/// completes.
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::message",
    reflect(Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
#[doc(alias = "timeout")]
#[non_exhaustive]
pub enum NoAnswer {
    /// The deadline of the request was reached, or its clock is gone. A later reply is dropped.
    TimedOut,
    /// The request could not be sent to the other world.
    #[cfg(feature = "worlds")]
    Refused(RefusalReason),
}

/// The reason why a parcel to other worlds was refused.
#[cfg(feature = "worlds")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::message",
    reflect(Clone, Debug, PartialEq, Hash)
)]
#[derive(serde::Serialize, serde::Deserialize)]
pub enum RefusalReason {
    /// This world has no link to others.
    #[error("this world has no link to others: insert a `WorldLink`")]
    NoLink,
    /// The group does not exist, or none of its worlds is running.
    #[error("no world of this group runs")]
    UnknownGroup,
    /// No entity of the group has this key, as far as this process knows. Another process may have it in a world
    /// that [announces](crate::worlds::WorldLink::announce_only) only one key.
    #[error(
        "no entity of the group has this key, or it is in a world of another process that announces only one \
         key: send to that key, see `WorldLink::announce_only`"
    )]
    UnknownKey,
    /// The inbox of the receiving world is full, or too much waits for its process. The world that sent
    /// the parcel gets [`HasRoom`](crate::worlds::link::HasRoom) when that is over.
    #[error(
        "the inbox of the receiving world, or the queue of its process, is full: send again after \
         `HasRoom`, or raise `DuePlugin::inbox_capacity`, `inbox_bytes` or `PeerSettings::queue_bytes`"
    )]
    Full,
    /// Some worlds of the group refused the parcel, and others accepted it. If you send the parcel
    /// again, the others get it twice.
    #[error("only some worlds of the group took the parcel")]
    InPart,
    /// The asking entity has no [`StableKey`](crate::worlds::StableKey), so a reply could not find it.
    #[error("the asking entity has no stable key: insert a `StableKey`")]
    NoKey,
    /// The payload is longer than
    /// [`PeerSettings::parcel_bytes`](crate::worlds::link::PeerSettings::parcel_bytes).
    #[error(
        "the payload is too large for the link: send it in parts, or raise \
         `PeerSettings::parcel_bytes`"
    )]
    TooLarge,
    /// The process that had taken the parcel became unreachable. It may have received the parcel.
    #[error("the process that had taken the parcel became unreachable")]
    PeerLost,
    /// The other process does not take this parcel from this one.
    #[error("the other process does not permit this parcel")]
    Forbidden,
}

/// Opens a request on behalf of an entity. Its entity exists until the reply or [`NoAnswer`] is delivered.
pub(crate) fn open(asker: &mut EntityCommands, until: Timer) -> Request {
    let owner = OwnedBy(asker.id());
    let mut commands = asker.commands();
    let request = commands.spawn((owner, OpenRequest(until)));
    Request::here(request.id())
}

/// Tells the asking entity that a request has timed out.
pub(crate) fn report_time_out(world: &mut World, request: Entity) {
    match world.get::<OwnedBy>(request) {
        Some(&OwnedBy(asker)) => {
            let role = Role::Reply(Request::here(request));
            send_anyway(world, Recipient::Entity(asker), NoAnswer::TimedOut, role);
        }
        // The request no longer has an asking entity.
        None => _ = world.try_despawn(request),
    }
}

/// Tells the asking entity that a request has been refused.
#[cfg(feature = "worlds")]
pub(crate) fn refuse(world: &mut World, asker: Entity, request: Request, reason: RefusalReason) {
    let (to, role) = (Recipient::Entity(asker), Role::Reply(request));
    send_urgently(world, to, NoAnswer::Refused(reason), role);
}

/// Returns the entity that made a request, if the request is open.
#[cfg(feature = "worlds")]
pub(crate) fn asker_of(world: &World, request: Request) -> Option<Entity> {
    let request = world.get_entity(request.entity()?).ok()?;
    let asker = request.get::<OpenRequest>().and(request.get());
    asker.map(|&OwnedBy(asker)| asker)
}

impl MessageContext<'_> {
    /// Replies to this request.
    ///
    /// # Errors
    ///
    /// Returns [`ReplyError`] if the message is not a request, or if the request comes from another
    /// world and `payload` is not a [`Packet`](super::Packet).
    pub fn reply(&mut self, payload: impl Payload) -> Result<(), ReplyError> {
        let reply_to = self.role.reply_to().ok_or(ReplyError::NotARequest)?;
        if let Route::Elsewhere(..) = reply_to.route {
            as_packet(&payload)?;
        }
        reply(&mut self.commands, reply_to.clone(), payload);
        Ok(())
    }
}

/// Sends a reply to the entity that made the request.
pub(super) fn reply(commands: &mut Commands, reply_to: ReplyTo, reply: impl Payload) {
    let request = reply_to.request();
    match reply_to.route {
        Route::Here(asker) => commands.queue(move |world: &mut World| {
            let to = Recipient::Entity(asker);
            send_anyway(world, to, reply, Role::Reply(request));
        }),
        Route::Elsewhere(asker, post) => commands.queue(move |world: &mut World| -> Result {
            let packet = as_packet(&reply)?.clone();
            post(world, &asker, packet);
            Ok(())
        }),
    }
}

/// Returns a reply that can go to another world.
fn as_packet<P: Payload>(reply: &P) -> Result<&Packet, ReplyError> {
    let packet = (reply as &dyn Any).downcast_ref();
    packet.ok_or(ReplyError::NotAPacket(type_name::<P>()))
}
