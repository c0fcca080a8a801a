//! Making a request, and completing it without a reply.

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

#[cfg(feature = "worlds")]
use super::mailbag::send_urgent;
use super::{
    letter::{Delivery, Letter, Role},
    mailbag::{resend, send},
    payload::Payload,
    request::{NoAnswer, ReplyTo, Request},
};
use crate::{
    call::EntityCaller,
    owner::OwnedBy,
    timer::{SurvivesCancelAll, Timer, TimerAction, Unannounced, add_own_handler},
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

/// The state of a request when its reply arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestState {
    /// The asking entity waits for the reply.
    Open,
    /// The entity of the request is disabled, together with the asking entity.
    Disabled,
    /// The request is complete or withdrawn, or another entity made it.
    Closed,
}

/// Makes a request on behalf of an entity, and sends it.
pub(crate) fn ask(
    asker: &mut EntityCommands,
    to: Delivery,
    payload: impl Payload,
    until: Timer,
) -> Request {
    let request = open(asker, until);
    let reply_to = ReplyTo::here(asker.id(), request);
    let letter = Letter::new(to, payload, Role::Request(reply_to.into()));
    let mut commands = asker.commands();
    commands.queue(move |world: &mut World| send(world, letter));
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
        (SurvivesCancelAll, Unannounced, OpenRequest),
    )
}

/// Registers the handler that runs when a request times out.
pub(crate) fn add_time_out_handler(world: &mut World) {
    add_own_handler(world, TIME_OUT, |world, fired| {
        time_out(world, fired.entity());
    });
}

/// Tells the asking entity that a request has timed out.
pub(super) fn time_out(world: &mut World, request: Entity) {
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
    let letter = Letter::new(asker, no_answer, Role::Reply(request));
    match no_answer {
        NoAnswer::TimedOut => resend(world, letter),
        #[cfg(feature = "worlds")]
        NoAnswer::Refused(_) => send_urgent(world, letter),
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

/// Returns the state of a request for a reply to `asker`.
pub(super) fn state_of(request: Entity, asker: Entity, caller: &EntityCaller) -> RequestState {
    let Some(request) = caller.get(request) else {
        return match caller.exists(request) {
            true => RequestState::Disabled,
            false => RequestState::Closed,
        };
    };
    let is_asker = request.get().is_some_and(|&OwnedBy(by)| by == asker);
    match request.contains::<OpenRequest>() && is_asker {
        true => RequestState::Open,
        false => RequestState::Closed,
    }
}

/// Returns the entity that made a request, if the request is open.
#[cfg(feature = "worlds")]
pub(crate) fn asker_of(world: &World, request: Request) -> Option<Entity> {
    let request = world.get_entity(request.entity()?).ok()?;
    let asker = request.get::<OpenRequest>().and(request.get());
    asker.map(|&OwnedBy(asker)| asker)
}
