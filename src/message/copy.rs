//! A copy of all messages on their way, to go back to.

use core::mem;

use bevy_ecs::prelude::*;

use super::{followers::Turns, mailbag::Mailbag, queue::Queue, sender::Inbox};

/// The messages of a world that were on their way at one moment, and whose turn it was then. They share
/// their contents with the messages in the world, so that a message needs neither `Clone` nor a codec.
#[derive(Default)]
pub(crate) struct MailCopy {
    replies: Queue,
    queue: Queue,
    turns: Turns,
}

impl MailCopy {
    /// Copies all messages that have been sent, also from other threads.
    pub(crate) fn of(world: &mut World) -> Self {
        Inbox::move_to_mailbag(world);
        let mut copy = Self::default();
        if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
            copy.turns = mailbag.followers.turns();
            mailbag.replies.share();
            mailbag.queue.share();
            copy.replies = mailbag.replies.copy(&|entity| entity);
            copy.queue = mailbag.queue.copy(&|entity| entity);
        }
        copy
    }

    /// Throws away all messages on their way, and puts these in their place. Entities may have other names
    /// by now. What other threads have sent since the last frame stays.
    pub(crate) fn put_back(&self, world: &mut World, latest: &dyn Fn(Entity) -> Entity) {
        let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
            return;
        };
        mailbag.followers.set_turns(&self.turns);
        let discarded = mailbag.queue.extract(&|_| true);
        let replies = mem::replace(&mut mailbag.replies, self.replies.copy(latest));
        mailbag.queue.append(&mut self.queue.copy(latest));
        mailbag.is_urgent = true;
        // They are dropped last, because a destructor of the game may panic.
        drop((discarded, replies));
    }
}
