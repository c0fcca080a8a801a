//! Many messages of one type, each to an entity, without an allocation per message.

use alloc::{
    boxed::Box,
    vec::{self, Vec},
};
#[cfg(feature = "serialize")]
use core::any::type_name;
use core::{any::Any, mem};

use bevy_ecs::entity::Entity;

use super::{
    calls::Calls,
    letter::Letter,
    payload::{Payload, sealed::Sealed},
    topic::Topic,
};
#[cfg(feature = "serialize")]
use super::{
    held_letters::{LetterRef, Taken},
    letter::Role,
};

/// Messages of one type, each to an entity, in the order of sending.
pub(super) struct Batch<P> {
    sent: Vec<(Entity, P)>,
    /// The messages that are being delivered. No message is sent from then on.
    due: vec::IntoIter<(Entity, P)>,
    /// The message that could not be delivered.
    missed: Option<(Entity, P)>,
}

/// A [`Batch`] of any type.
pub(super) trait AnyBatch: Any + Send + Sync {
    /// Returns the topic of the next message.
    fn topic(&self) -> Option<Topic>;

    /// Delivers messages of the topic of these calls, until a callback issues commands or an entity
    /// can't be called. Returns that entity.
    fn deliver(&mut self, calls: &mut Calls) -> Option<Entity>;

    /// Takes the message to the entity that could not be called, as a letter.
    fn take_missed(&mut self) -> Option<Letter>;

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
        let mut batch = Self::with_capacity(1);
        batch.push(to, payload);
        batch
    }

    /// Creates an empty batch with room for this many messages.
    pub(super) fn with_capacity(messages: usize) -> Self {
        Self {
            sent: Vec::with_capacity(messages),
            due: vec::IntoIter::default(),
            missed: None,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.sent.capacity()
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < self.sent.capacity()
    }

    #[inline]
    pub(super) fn push(&mut self, to: Entity, payload: P) {
        self.sent.push((to, payload));
    }

    /// Iterates over the waiting messages.
    fn waiting(&self) -> impl Iterator<Item = &(Entity, P)> {
        self.due.as_slice().iter().chain(&self.sent)
    }
}

impl<P: Payload> AnyBatch for Batch<P> {
    fn topic(&self) -> Option<Topic> {
        let (_, payload) = self.waiting().next()?;
        Some(Sealed::topic(payload))
    }

    fn deliver(&mut self, calls: &mut Calls) -> Option<Entity> {
        self.missed = None;
        if self.due.len() == 0 {
            self.due = mem::take(&mut self.sent).into_iter();
        }
        let topic = calls.topic;
        while let Some((_, payload)) = self.due.as_slice().first()
            && Sealed::topic(payload) == topic
            // It no longer waits, so a callback that panics does not get it again.
            && let Some((to, payload)) = self.due.next()
        {
            if !calls.call(to, &payload) {
                self.missed = Some((to, payload));
                return Some(to);
            }
            if calls.has_commands() {
                break;
            }
        }
        None
    }

    fn take_missed(&mut self) -> Option<Letter> {
        let (to, payload) = self.missed.take()?;
        Some(Letter::plain(to, payload))
    }

    fn into_letters(self: Box<Self>) -> Vec<Letter> {
        let waiting = self.due.chain(self.sent);
        let letters = waiting.map(|(to, payload)| Letter::plain(to, payload));
        letters.collect()
    }

    #[cfg(feature = "serialize")]
    fn visit(&self, visit: &mut dyn FnMut(LetterRef)) {
        for (to, payload) in self.waiting() {
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
        let waiting = mem::take(&mut self.due).chain(mem::take(&mut self.sent));
        let (meant, others): (Vec<_>, _) = waiting.partition(|(to, _)| is_meant(*to));
        self.sent = others;
        let meant = meant.into_iter();
        taken.extend(meant.map(|(to, payload)| Taken::Letter(to, Letter::plain(to, payload))));
    }
}
