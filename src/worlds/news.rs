//! The news that a world gets: about other processes, and about its own parcels.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};

use bevy_ecs::prelude::*;

use super::{
    parcel::{Parcel, Refused},
    remote::SessionId,
};
use crate::{
    message::{
        Mailbag, Recipient, RefusalReason, Request, Role, Topic, asker_of, refuse, send_urgently,
    },
    owner::OwnedBy,
    report::report,
    timer::OpenRequest,
};

/// The message that another process has come, is suspected, or is gone.
///
/// It goes to all followers in each world of this process. A world that joins later gets it for each
/// process that is there. When a process goes, the open requests that
/// it has taken complete with [`NoAnswer::Refused`](crate::message::NoAnswer::Refused) and [`RefusalReason::PeerLost`].
///
/// [`WorldGroups::running`](crate::worlds::WorldGroups::running) counts the worlds of processes that are
/// [`Up`](Liveness::Up).
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct PeerChanged {
    /// The name that the link has given to the process.
    pub name: Arc<str>,
    /// How the process is now.
    pub liveness: Liveness,
}

/// Whether another process is alive, as far as this one can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Liveness {
    /// It has answered recently, and its worlds and keys are known here.
    Up,
    /// Nothing has been heard of it for a while. It gets parcels in turn only if no other process and no
    /// world here can take them. It may come back.
    Suspect,
    /// It has left or died, or can't be reached. If it comes back, it starts a new connection.
    Down,
}

/// The message that a group has room again, after it has refused a parcel of this world with
/// [`RefusalReason::Full`].
///
/// It goes to all followers in the world that has sent the parcel.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct HasRoom {
    /// The name of the group.
    pub group: Cow<'static, str>,
}

/// The process that has taken a request, if another one has. It is on the entity of the request.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitedFrom {
    /// Another process alone, by this connection.
    One(SessionId),
    /// Another process, and others. Each of them may reply.
    Several,
}

/// Completes the open requests that a process has taken by a connection.
pub(super) fn fail_requests(world: &mut World, session: SessionId) {
    let Some(mut requests) = world.try_query::<(Entity, &AwaitedFrom, &OwnedBy)>() else {
        return;
    };
    let requests = requests.iter(world);
    let taken = requests.filter(|(_, by, _)| **by == AwaitedFrom::One(session));
    let taken: Vec<_> = taken.map(|(request, _, by)| (request, by.0)).collect();
    for (request, asker) in taken {
        if world.get::<OpenRequest>(request).is_some() {
            let request = Request::here(request);
            refuse(world, asker, request, RefusalReason::PeerLost);
        }
    }
}

/// Sends a message to all followers in a world, if there are any.
pub(super) fn tell_world<M: Message>(world: &mut World, message: M) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    let is_followed = mailbag.is_some_and(|it| it.followers.is_followed(Topic::of::<M>()));
    if is_followed {
        send_urgently(world, Recipient::All, message, Role::Plain);
    }
    is_followed
}

/// Reports a refusal to the entity that made the request, or else to all followers of [`Refused`].
pub(super) fn report_refusal(world: &mut World, refused: Refused) {
    if let Some(request) = refused.parcel.request()
        && let Some(mailbag) = world.get_resource::<Mailbag>()
        && let request = mailbag.directory.resolve(request)
        && let Some(asker) = asker_of(world, request)
        && let Some(open) = request.entity()
    {
        // Worlds that have taken the parcel may still reply.
        if refused.reason == RefusalReason::InPart {
            world.entity_mut(open).insert(AwaitedFrom::Several);
        } else if world.get(open) != Some(&AwaitedFrom::Several) {
            refuse(world, asker, request, refused.reason);
        }
        return;
    }
    if !tell_world(world, refused.clone()) {
        report::<Parcel>(world, BevyError::warning(refused));
    }
}
