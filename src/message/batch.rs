//! Many messages of one type, each to an entity, without an allocation per message.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::any::Any;
#[cfg(feature = "serialize")]
use core::any::type_name;

use bevy_ecs::entity::Entity;

#[cfg(feature = "serialize")]
use super::{
    held_letters::{LetterRef, Taken},
    letter::Role,
};
use super::{
    letter::Letter,
    payload::{Payload, sealed::Sealed},
    topic::Topic,
};

/// Messages of one type, each to an entity, in the order of sending.
pub(super) struct Batch<P> {
    waiting: VecDeque<(Entity, P)>,
    /// The message that is being delivered. It no longer waits, so a callback that panics does not get
    /// it again.
    current: Option<(Entity, P)>,
}

/// A [`Batch`] of any type.
pub(super) trait AnyBatch: Any + Send + Sync {
    /// Returns the topic of the next message.
    fn topic(&self) -> Option<Topic>;

    /// Takes the next message if it has this topic. The message before it is dropped.
    fn next(&mut self, topic: Topic) -> Option<(Entity, &dyn Any)>;

    /// Returns the message that was taken last as a letter.
    fn take_current(&mut self) -> Option<Letter>;

    /// Drops the message that was taken last.
    fn drop_current(&mut self);

    /// Takes all waiting messages.
    fn into_letters(self: Box<Self>) -> Vec<Letter>;

    /// Calls a function with each waiting message.
    #[cfg(feature = "serialize")]
    fn visit(&self, visit: &mut dyn FnMut(LetterRef));

    /// Takes the messages to these entities.
    #[cfg(feature = "serialize")]
    fn extract(&mut self, is_meant: &dyn Fn(Entity) -> bool, taken: &mut Vec<Taken>);
}

impl<P: Payload> Batch<P> {
    pub(super) fn new(to: Entity, payload: P) -> Self {
        Self {
            waiting: [(to, payload)].into(),
            current: None,
        }
    }

    /// Creates an empty batch with room for this many messages.
    pub(super) fn with_capacity(messages: usize) -> Self {
        Self {
            waiting: VecDeque::with_capacity(messages),
            current: None,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.waiting.capacity()
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < self.waiting.capacity()
    }

    pub(super) fn push(&mut self, to: Entity, payload: P) {
        self.waiting.push_back((to, payload));
    }
}

impl<P: Payload> AnyBatch for Batch<P> {
    fn topic(&self) -> Option<Topic> {
        let (_, payload) = self.waiting.front()?;
        Some(Sealed::topic(payload))
    }

    fn next(&mut self, topic: Topic) -> Option<(Entity, &dyn Any)> {
        let is_next = |(_, payload): &mut (Entity, P)| Sealed::topic(payload) == topic;
        self.current = self.waiting.pop_front_if(is_next);
        let (to, payload) = self.current.as_ref()?;
        Some((*to, payload))
    }

    fn take_current(&mut self) -> Option<Letter> {
        let (to, payload) = self.current.take()?;
        Some(Letter::plain(to, payload))
    }

    fn drop_current(&mut self) {
        self.current = None;
    }

    fn into_letters(self: Box<Self>) -> Vec<Letter> {
        let waiting = self.waiting.into_iter();
        waiting
            .map(|(to, payload)| Letter::plain(to, payload))
            .collect()
    }

    #[cfg(feature = "serialize")]
    fn visit(&self, visit: &mut dyn FnMut(LetterRef)) {
        for (to, payload) in &self.waiting {
            visit(LetterRef {
                to: (*to).into(),
                name: type_name::<P>(),
                payload,
                role: &Role::Plain,
            });
        }
    }

    #[cfg(feature = "serialize")]
    fn extract(&mut self, is_meant: &dyn Fn(Entity) -> bool, taken: &mut Vec<Taken>) {
        let waiting = self.waiting.drain(..);
        let (meant, others): (VecDeque<_>, _) = waiting.partition(|(to, _)| is_meant(*to));
        self.waiting = others;
        let meant = meant.into_iter();
        taken.extend(meant.map(|(to, payload)| Taken::Letter(to, Letter::plain(to, payload))));
    }
}
