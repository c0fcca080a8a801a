//! Parcels that arrive.

use bevy_ecs::world::World;

use super::{
    address::{Address, StableKey},
    link::post,
    parcel::{Parcel, Part, RequestId},
};
use crate::message::{Letter, MessageSender, Packet, RemoteAsker, ReplyTo, Role, SendError};

impl MessageSender {
    /// Takes a parcel from another world: the receiving end of a [`Link`](crate::Link).
    ///
    /// # Errors
    ///
    /// Returns [`SendError`] with the parcel if the inbox is full or closed.
    pub fn receive(&self, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let bytes = parcel.packet.payload().len();
        self.put_letter(parcel, bytes, into_letter)
    }
}

fn into_letter(parcel: Parcel) -> Letter {
    let role = match parcel.part {
        Part::Plain => Role::Plain,
        Part::Request { reply_to, request } => {
            let Address { group, key } = reply_to;
            let RequestId { world, number } = request;
            let asker = RemoteAsker {
                group,
                key: key.0,
                world,
                number,
            };
            Role::Request(ReplyTo::elsewhere(asker, post_reply).into())
        }
        Part::Reply(request) => Role::Reply(request.into()),
    };
    Letter::new(parcel.delivery, parcel.packet, role)
}

/// Posts the reply to a request of an entity of another world.
pub(crate) fn post_reply(sender: &mut World, asker: &RemoteAsker, packet: Packet) {
    let &RemoteAsker { world, number, .. } = asker;
    let mut parcel = Parcel::new(asker.group.clone(), StableKey(asker.key), packet);
    parcel.part = Part::Reply(RequestId { world, number });
    post(sender, parcel);
}
