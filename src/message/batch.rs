//! Many messages of one type, each to an entity, without an allocation per message.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{any::Any, ops::ControlFlow};

use bevy_ecs::entity::Entity;

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

    /// Keeps a message whose recipient takes part later.
    fn hold_letter(&mut self, letter: Letter);
}

/// The result of a message to one entity.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    /// The recipient takes part later.
    Early,
    /// A reply to an entity that is disabled.
    Disabled,
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
            if outcome == Outcome::Early {
                courier.hold_letter(Letter::plain(to, payload));
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
}
