//! Many messages of one type, each to an entity, without an allocation per message.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
#[cfg(feature = "serialize")]
use core::any::type_name;
use core::{any::Any, ops::ControlFlow};

use bevy_ecs::entity::Entity;

#[cfg(feature = "serialize")]
use super::{
    held_letters::{LetterRef, Taken},
    letter::Role,
};
use super::{
    letter::Letter,
    topic::{Payload, Topic, sealed::Sealed},
};

/// Messages of one type, each to an entity, in the order of sending.
pub(super) struct Batch<P>(VecDeque<(Entity, P)>);

/// A [`Batch`] of any type.
pub(super) trait AnyBatch: Any + Send + Sync {
    /// Delivers the messages in order, until the courier stops.
    fn deliver(&mut self, courier: &mut dyn Deliver);

    /// Takes all waiting messages.
    fn into_letters(self: Box<Self>) -> Vec<Letter>;

    /// Calls a function with each waiting message.
    #[cfg(feature = "serialize")]
    fn visit(&self, visit: &mut dyn FnMut(LetterRef));

    /// Takes the messages to these entities.
    #[cfg(feature = "serialize")]
    fn extract(&mut self, is_meant: &dyn Fn(Entity) -> bool, taken: &mut Vec<Taken>);
}

/// Delivers messages to entities.
pub(super) trait Deliver {
    /// Delivers a message to an entity. Breaks if no message may follow for now.
    fn deliver_message(
        &mut self,
        to: Entity,
        topic: Topic,
        message: &dyn Any,
    ) -> ControlFlow<Outcome, Outcome>;

    /// Keeps a message whose recipient takes part later, or is in transit.
    fn hold_letter(&mut self, letter: Letter, outcome: Outcome);
}

/// The result of a message to one entity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    /// The recipient takes part later.
    Early,
    /// A reply to an entity that is disabled.
    Disabled,
    /// The recipient is moving to or from another world.
    InTransit,
    /// A reply to a request that is not open.
    Late,
    Undeliverable,
}

impl<P: Payload> Batch<P> {
    pub(super) fn new(to: Entity, payload: P) -> Self {
        Self([(to, payload)].into())
    }

    pub(super) fn push(&mut self, to: Entity, payload: P) {
        self.0.push_back((to, payload));
    }
}

impl<P: Payload> AnyBatch for Batch<P> {
    fn deliver(&mut self, courier: &mut dyn Deliver) {
        // A message is no longer waiting when it is delivered, so a callback that panics does not
        // get it again.
        while let Some((to, payload)) = self.0.pop_front() {
            let delivered = courier.deliver_message(to, Sealed::topic(&payload), &payload);
            let (ControlFlow::Continue(outcome) | ControlFlow::Break(outcome)) = delivered;
            if let Outcome::Early | Outcome::InTransit = outcome {
                courier.hold_letter(Letter::plain(to, payload), outcome);
            }
            if delivered.is_break() {
                return;
            }
        }
    }

    fn into_letters(self: Box<Self>) -> Vec<Letter> {
        let waiting = self.0.into_iter();
        waiting
            .map(|(to, payload)| Letter::plain(to, payload))
            .collect()
    }

    #[cfg(feature = "serialize")]
    fn visit(&self, visit: &mut dyn FnMut(LetterRef)) {
        for (to, payload) in &self.0 {
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
        let (meant, others): (VecDeque<_>, _) = self.0.drain(..).partition(|(to, _)| is_meant(*to));
        self.0 = others;
        let meant = meant.into_iter();
        taken.extend(meant.map(|(to, payload)| Taken::Letter(to, Letter::plain(to, payload))));
    }
}
