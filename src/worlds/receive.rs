//! Parcels that arrive.

use alloc::boxed::Box;

use bevy_ecs::world::World;

use super::{
    address::Address,
    link::post,
    parcel::{Parcel, Part, RequestId},
};
use crate::message::{Letter, MessageSender, Packet, PostReply, ReplyTo, Role, SendError};

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
            let reply_to = ReplyTo::elsewhere(request.into(), posting_to(reply_to, request));
            Role::Request(reply_to.into())
        }
        Part::Reply(request) => Role::Reply(request.into()),
    };
    Letter::new(parcel.delivery, parcel.packet, role)
}

/// Returns a function that posts the reply to a request.
fn posting_to(Address { group, key }: Address, request: RequestId) -> Box<PostReply> {
    Box::new(move |world: &mut World, packet: Packet| {
        let mut parcel = Parcel::new(group.clone(), key, packet);
        parcel.part = Part::Reply(request);
        post(world, parcel);
    })
}
