//! Making requests, and completing them: with a reply or without one.

#[cfg(feature = "serialize")]
use alloc::vec::Vec;
use core::any::Any;

#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashSet;
use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

#[cfg(feature = "worlds")]
use super::send::send_urgent;
use super::{
    component::MessageContext,
    mail::{Delivery, Role},
    payload::{Packet, Payload},
    request::{NoAnswer, ReplyError, ReplyTo, Request, Route},
    send::{send_anyway, send_or_report},
};
#[cfg(feature = "serialize")]
use super::{
    mail::MailRef, mailbag::Mailbag, queue::Letter, request::Origin, transit::visit_letters,
};
use crate::{
    call::EntityCaller,
    owner::OwnedBy,
    timer::{CrateTimer, Timer, TimerAction, add_own_handler},
};

/// The name of the handler that runs when a request times out. It is saved with the request.
const TIME_OUT: &str = "bevy_due: request timed out";

/// Marks the entity of a request that is open.
#[derive(Component, Clone, Copy)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone)
)]
pub(crate) struct OpenRequest;

/// Makes a request on behalf of an entity, and sends it.
pub(crate) fn ask(
    asker: &mut EntityCommands,
    to: Delivery,
    payload: impl Payload,
    until: Timer,
) -> Request {
    let request = open(asker, until);
    let reply_to = ReplyTo::here(asker.id(), request);
    let mut commands = asker.commands();
    commands.queue(move |world: &mut World| {
        send_or_report(world, to, payload, Role::Request(reply_to))
    });
    request
}

/// Opens a request on behalf of an entity.
pub(crate) fn open(asker: &mut EntityCommands, until: Timer) -> Request {
    let asked_by = asker.id();
    let mut commands = asker.commands();
    Request::here(commands.spawn(open_request(asked_by, until)).id())
}

/// Returns the components of an open request. Its entity exists until the reply or [`NoAnswer`] is
/// delivered.
fn open_request(asker: Entity, until: Timer) -> impl Bundle {
    let until = until.keep_when_done().act_without_clock();
    (
        OwnedBy(asker),
        (until, TimerAction::named(TIME_OUT)),
        (CrateTimer::Request, OpenRequest),
    )
}

/// Registers the handler that runs when a request times out.
pub(crate) fn add_time_out_handler(world: &mut World) {
    add_own_handler(world, TIME_OUT, |world, fired| {
        time_out(world, fired.entity());
    });
}

/// Tells the asking entity that a request has timed out.
fn time_out(world: &mut World, request: Entity) {
    match world.get::<OwnedBy>(request) {
        Some(&OwnedBy(asker)) => {
            give_up(world, asker, Request::here(request), NoAnswer::TimedOut);
        }
        // The request no longer has an asking entity.
        None => _ = world.despawn(request),
    }
}

/// Completes a request without a reply.
pub(crate) fn give_up(world: &mut World, asker: Entity, request: Request, no_answer: NoAnswer) {
    let role = Role::Reply(request);
    match no_answer {
        NoAnswer::TimedOut => send_anyway(world, asker, no_answer, role),
        #[cfg(feature = "worlds")]
        NoAnswer::Refused(_) => send_urgent(world, asker, no_answer, role),
    }
}

/// Returns the entity that waits for the reply to a request. It is not the one that asked if a restore has
/// spawned that one again.
pub(super) fn asker_now(asker: Entity, request: Entity, caller: &EntityCaller) -> Entity {
    let by = caller.get(request).and_then(|request| request.get());
    match by {
        Some(&OwnedBy(by)) if !caller.exists(asker) => by,
        _ => asker,
    }
}

/// Returns `true` if an entity waits for the reply to a request. A request that is disabled together with
/// that entity stays open.
pub(super) fn is_open(request: Entity, asker: Entity, caller: &EntityCaller) -> bool {
    match caller.get(request) {
        Some(request) => {
            request.contains::<OpenRequest>() && request.get() == Some(&OwnedBy(asker))
        }
        None => caller.exists(request),
    }
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
        let reply_to = self
            .incoming
            .role
            .reply_to()
            .ok_or(ReplyError::NotARequest)?;
        reply_to.check(&payload)?;
        reply(&mut self.commands, reply_to.clone(), payload);
        Ok(())
    }
}

/// Sends a reply to the entity that made the request.
pub(super) fn reply(commands: &mut Commands, reply_to: ReplyTo, reply: impl Payload) {
    let checked = reply_to.check(&reply);
    let request = reply_to.request();
    match reply_to.route {
        Route::Here(asker) => commands.queue(move |world: &mut World| {
            send_anyway(world, asker, reply, Role::Reply(request));
        }),
        Route::Elsewhere(asker, post) => commands.queue(move |world: &mut World| -> Result {
            checked?;
            let reply: &dyn Any = &reply;
            if let Some(packet) = reply.downcast_ref::<Packet>() {
                post(world, &asker, packet.clone());
            }
            Ok(())
        }),
    }
}

/// Returns the requests that have timed out, although their asking entities do not know yet. In the
/// order of delivery.
#[cfg(feature = "serialize")]
pub(crate) fn timed_out(world: &World) -> Vec<Entity> {
    let (mut requests, mut seen) = (Vec::new(), EntityHashSet::default());
    let mut add = |letter: MailRef| {
        if let &Role::Reply(Request(Origin::Here(request))) = letter.role
            && let Some(NoAnswer::TimedOut) = letter.payload.downcast_ref()
            // A periodic timer may have fired again.
            && seen.insert(request)
        {
            requests.push(request);
        }
    };
    let mailbag = world.get_resource::<Mailbag>();
    let mut held: Vec<_> = mailbag.into_iter().flat_map(|it| &it.transit).collect();
    held.sort_unstable_by_key(|&(&root, _)| root);
    let held = held.into_iter().flat_map(|(_, held)| held.letters());
    held.filter_map(Letter::get).for_each(&mut add);
    visit_letters(world, &|_| true, |_, letter| add(letter));
    requests
}

/// Sends [`NoAnswer`] for a request that has timed out in the world that was saved.
#[cfg(feature = "serialize")]
pub(crate) fn time_out_again(world: &mut World, request: Entity) {
    if world.get::<OpenRequest>(request).is_some() {
        time_out(world, request);
    }
}
