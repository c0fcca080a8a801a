//! The mailbag: everything in a world that waits for its delivery, its bound, and whom it reaches.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::prelude::*;
use bevy_platform::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{
    deliver::MessageStats,
    directory::Directory,
    followers::Followers,
    queue::{Letter, Queue},
};

/// The messages of a world that are on their way, and whom they reach.
#[derive(Resource, Default)]
pub(crate) struct Mailbag {
    pub(crate) followers: Followers,
    pub(crate) directory: Directory,
    pub(super) queue: Queue,
    /// An empty queue, with the memory for the next outbox of an observer.
    pub(super) spare: Queue,
    /// Replies to entities that are disabled.
    pub(super) replies: Queue,
    /// The number of messages that can wait.
    pub(super) capacity: usize,
    /// The number of messages for which outboxes have room. They reserve it before they take a message, because
    /// systems that run in parallel share the bound.
    reserved: AtomicUsize,
    /// Whether the next run should not wait, because of a message that was sent as urgent.
    pub(super) is_urgent: bool,
    /// The current counters. The resource `MessageStats` shows them after each delivery.
    pub(super) stats: MessageStats,
}

/// The number of messages for which an outbox reserves room at once: each access to the shared counter takes
/// as long as a few dozen instructions.
const SOME: usize = 64;

impl Mailbag {
    /// Creates an empty bag with room for this many messages.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Returns the number of messages, functions and notes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() + self.replies.len()
    }

    /// Returns `true` if a run has nothing to deliver, to keep or to give back.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_idle() && self.replies.len() == 0 && !self.is_urgent
    }

    /// Returns `true` if the next run should not wait: an urgent message was sent, or a panic has
    /// interrupted the delivery.
    #[cfg(feature = "worlds")]
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent || self.queue.has_released()
    }

    /// Returns `true` if there is room for another message.
    pub(super) fn has_room(&self) -> bool {
        self.waiting() + self.reserved.load(Relaxed) < self.capacity
    }

    /// Reserves room for one message or, while less than half of the room is taken, for several. Returns
    /// their number, which is zero if there is no room.
    #[cold]
    pub(super) fn reserve(&self) -> usize {
        let waiting = self.waiting();
        let take = |messages: usize, capacity: usize| {
            let take = |reserved| {
                let reserved = reserved + messages;
                (waiting + reserved <= capacity).then_some(reserved)
            };
            self.reserved.fetch_update(Relaxed, Relaxed, take).is_ok()
        };
        match take(SOME, self.capacity / 2) {
            true => SOME,
            false => usize::from(take(1, self.capacity)),
        }
    }

    /// Gives back reserved room. The messages that took it are in the queue by now.
    pub(super) fn release_room(&mut self, messages: usize) {
        *self.reserved.get_mut() -= messages;
    }

    /// Releases all items for delivery. The held ones come first.
    pub(super) fn release(&mut self) {
        self.is_urgent = false;
        if self.replies.len() > 0 {
            self.queue.put_first(mem::take(&mut self.replies));
        }
        self.queue.release();
    }

    /// Takes all undelivered messages.
    pub(super) fn hand_back(&mut self) -> Vec<Letter> {
        self.release();
        self.queue.extract(&|_| true)
    }
}
