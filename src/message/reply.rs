//! Replying to a request.

use core::any::Any;

use bevy_ecs::prelude::*;

use super::{
    context::MessageContext,
    letter::{Letter, Role},
    mailbag::resend,
    packet::Packet,
    payload::Payload,
    request::{ReplyError, ReplyTo, Route},
};

impl MessageContext<'_> {
    /// Replies to this request.
    ///
    /// # Errors
    ///
    /// Returns [`ReplyError`] if the message is not a request, or if the request comes from another
    /// world and `payload` is not a [`Packet`](super::Packet).
    pub fn reply(&mut self, payload: impl Payload) -> Result<(), ReplyError> {
        let reply_to = self.role.reply_to().ok_or(ReplyError::NotARequest)?;
        reply_to.check(&payload)?;
        reply(&mut self.commands, reply_to.clone(), payload);
        Ok(())
    }
}

/// Sends a reply to the entity that made the request.
pub(crate) fn reply(commands: &mut Commands, reply_to: ReplyTo, reply: impl Payload) {
    match reply_to.route {
        Route::Here(asker) => {
            let letter = Letter::new(asker, reply, Role::Reply(reply_to.request));
            commands.queue(move |world: &mut World| resend(world, letter));
        }
        Route::Elsewhere(ref asker, post) => {
            let (asker, checked) = (asker.clone(), reply_to.check(&reply));
            let reply: &dyn Any = &reply;
            let packet = reply.downcast_ref::<Packet>().cloned();
            commands.queue(move |world: &mut World| -> Result {
                checked?;
                if let Some(packet) = packet {
                    post(world, &asker, packet);
                }
                Ok(())
            });
        }
    }
}
