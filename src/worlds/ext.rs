//! Posting and asking, as methods of Bevy's types.

use bevy_ecs::prelude::*;

use super::{
    address::StableKey,
    parcel::{Parcel, Part},
    world_link::{WorldLink, post},
};
use crate::{
    message::{Mailbag, RefusalReason, RemoteAsker, Request, open, refuse},
    timer::Timer,
};

/// Sends parcels from systems and callbacks.
pub trait ParcelCommandsExt {
    /// Sends a parcel to other worlds.
    ///
    /// If the [link](WorldLink) does not take it, the message [`Refused`](crate::worlds::Refused) is sent
    /// to all followers in this world.
    fn post(&mut self, parcel: Parcel);
}

/// Makes requests to other worlds on behalf of an entity.
pub trait ParcelEntityCommandsExt {
    /// Makes a request to other worlds: sends a parcel, and waits for a reply until the timer
    /// fires, like [`ask`](crate::message::MessageEntityCommandsExt::ask).
    ///
    /// If the link does not take the parcel, the request completes with
    /// [`NoAnswer::Refused`](crate::message::NoAnswer::Refused). The entity needs a [`StableKey`], so that
    /// the reply can find it.
    fn ask_world(&mut self, parcel: Parcel, until: Timer) -> Request;
}

impl ParcelCommandsExt for Commands<'_, '_> {
    fn post(&mut self, parcel: Parcel) {
        self.queue(move |world: &mut World| _ = post(world, parcel));
    }
}

impl ParcelEntityCommandsExt for EntityCommands<'_> {
    fn ask_world(&mut self, mut parcel: Parcel, until: Timer) -> Request {
        let asker = self.id();
        let request = open(self, until);
        self.commands().queue(move |world: &mut World| {
            let mailbag = world.get_resource_mut::<Mailbag>();
            let (Some(request_entity), Some(mut mailbag)) = (request.entity(), mailbag) else {
                return;
            };
            let (token, number) = mailbag.directory.name(request_entity);
            let key = world.get::<StableKey>(asker);
            let reason = match (key, world.get_resource::<WorldLink>()) {
                (Some(key), Some(link)) => {
                    parcel.part = Part::Request(RemoteAsker {
                        group: link.group.clone(),
                        key: key.0,
                        token,
                        number,
                    });
                    let taken_by = post(world, parcel);
                    if let Some(taken_by) = taken_by
                        && let Ok(mut request) = world.get_entity_mut(request_entity)
                    {
                        request.insert(taken_by);
                    }
                    return;
                }
                (None, _) => RefusalReason::NoKey,
                (_, None) => RefusalReason::NoLink,
            };
            refuse(world, asker, request, reason);
        });
        request
    }
}
