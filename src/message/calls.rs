//! The calls for messages of one topic, each to an entity.

use core::any::Any;

use bevy_ecs::entity::Entity;

use super::{
    context::Incoming, followers::Following, letter::Role, room::Room, stats::MessageStats,
    topic::Topic,
};
use crate::{call::EntityCaller, clock::ClockTable};

/// Calls the callbacks of entities for messages of one topic.
///
/// A batch knows the type of its messages, and makes the calls in one loop.
pub(super) struct Calls<'a, 'w, 's> {
    pub(super) topic: Topic,
    pub(super) following: Option<&'a Following>,
    /// The place after the follower that was called last. Most systems send in the order of the
    /// followers, so the next message is likely to go there.
    pub(super) next: usize,
    /// The lowest number of a follower that does not take part yet.
    pub(super) joined: u64,
    pub(super) caller: &'a mut EntityCaller<'w, 's>,
    pub(super) clocks: &'a ClockTable,
    pub(super) room: &'a mut Room,
    pub(super) stats: &'a mut MessageStats,
}

impl Calls<'_, '_, '_> {
    /// Calls an entity. Returns `false` if it does not follow the topic yet, or is gone or disabled.
    #[inline]
    pub(super) fn call(&mut self, to: Entity, message: &dyn Any) -> bool {
        // Given back first, because the callback may panic.
        self.room.give_back(1);
        let follower = self
            .following
            .and_then(|it| it.find(to, self.joined, self.next));
        let Some((place, follower)) = follower else {
            return false;
        };
        self.next = place + 1;
        let incoming = Incoming {
            topic: self.topic,
            message,
            role: &Role::Plain,
            clocks: self.clocks,
        };
        let is_called = follower.call(self.caller, incoming);
        self.stats.delivered += u64::from(is_called);
        is_called
    }

    /// Returns `true` if a callback has issued commands. They must be applied before the next call.
    #[inline]
    pub(super) fn has_commands(&self) -> bool {
        self.caller.has_commands()
    }
}
