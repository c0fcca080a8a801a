//! Many messages of one type, each to an entity, without an allocation per message.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::any::Any;

use bevy_ecs::entity::Entity;

use super::{
    letter::Letter,
    topic::{Payload, Topic, sealed::Sealed},
};

/// Messages of one type, each to an entity, in the order of sending.
pub(super) struct Batch<P> {
    waiting: VecDeque<(Entity, P)>,
    /// The message that is being delivered. It is no longer waiting, so a callback that panics does
    /// not get it again.
    current: Option<(Entity, P)>,
}

/// A [`Batch`] of any type.
pub(super) trait AnyBatch: Any + Send + Sync {
    /// Makes the next message the current one, and returns it with its recipient.
    fn next(&mut self) -> Option<(Entity, Topic, &dyn Any)>;

    /// Takes the current message.
    fn take_current(&mut self) -> Option<Letter>;

    /// Takes all waiting messages.
    fn into_letters(self: Box<Self>) -> Vec<Letter>;
}

impl<P: Payload> Batch<P> {
    pub(super) fn new(to: Entity, payload: P) -> Self {
        Self {
            waiting: [(to, payload)].into(),
            current: None,
        }
    }

    pub(super) fn push(&mut self, to: Entity, payload: P) {
        self.waiting.push_back((to, payload));
    }
}

impl<P: Payload> AnyBatch for Batch<P> {
    fn next(&mut self) -> Option<(Entity, Topic, &dyn Any)> {
        self.current = self.waiting.pop_front();
        let (to, payload) = self.current.as_ref()?;
        Some((*to, Sealed::topic(payload), payload))
    }

    fn take_current(&mut self) -> Option<Letter> {
        let (to, payload) = self.current.take()?;
        Some(Letter::plain(to, payload))
    }

    fn into_letters(self: Box<Self>) -> Vec<Letter> {
        let waiting = self.waiting.into_iter();
        waiting
            .map(|(to, payload)| Letter::plain(to, payload))
            .collect()
    }
}
