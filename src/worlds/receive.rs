//! Parcels that arrive.

use bevy_ecs::world::World;

use super::{
    address::{Address, StableKey},
    parcel::{Parcel, Part, RequestId},
    world_link::post,
};
use crate::message::{MessageSender, Packet, RemoteAsker, ReplyTo, Role, SendError};

impl MessageSender {
    /// Takes a parcel from another world.
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] with the parcel if the inbox is full or closed.
    pub(super) fn receive(&self, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let bytes = parcel.packet.payload().len();
        // It allocates memory, so it is made before the inbox is locked.
        let role = role(&parcel.part);
        self.put(parcel, bytes, |parcel, queue| {
            queue.push(parcel.delivery.into(), parcel.packet, role);
        })
    }

    /// Takes a copy of a parcel from another world.
    pub(super) fn receive_copy(&self, parcel: &Parcel) -> Result<(), SendError<()>> {
        let bytes = parcel.packet.payload().len();
        let role = role(&parcel.part);
        self.put((), bytes, |(), queue| {
            queue.push(parcel.delivery.into(), parcel.packet.clone(), role);
        })
    }
}

fn role(part: &Part) -> Role {
    match part {
        Part::Plain => Role::Plain,
        Part::Request { reply_to, request } => {
            let Address { group, key } = reply_to.clone();
            let &RequestId { token, number } = request;
            let asker = RemoteAsker {
                group,
                key: key.0,
                token,
                number,
            };
            Role::Request(ReplyTo::elsewhere(asker, post_reply))
        }
        &Part::Reply(request) => Role::Reply(request.into()),
    }
}

/// Posts the reply to a request of an entity of another world.
pub(crate) fn post_reply(sender: &mut World, asker: &RemoteAsker, packet: Packet) {
    let &RemoteAsker { token, number, .. } = asker;
    let mut parcel = Parcel::new(asker.group.clone(), StableKey(asker.key), packet);
    parcel.part = Part::Reply(RequestId { token, number });
    post(sender, parcel);
}
