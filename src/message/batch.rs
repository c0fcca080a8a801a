//! Many messages of one type to entities, without an allocation for each.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::any::Any;

use bevy_ecs::entity::Entity;

use super::{
    Letter, Payload,
    dispatch::{Called, LetterRef, call},
    letter::Regarding,
    packet::sealed::Sealed,
};
use crate::call::EntityCaller;

/// Messages of one type to entities, in the order of sending.
pub(super) struct Batch<P>(VecDeque<(Entity, P)>);

/// A [`Batch`] of some type.
pub(super) trait AnyBatch: Any + Send + Sync {
    /// Calls the function of an entity for the next one, and puts that into `rest` if it is still
    /// needed.
    fn call_next(
        &mut self,
        caller: &mut EntityCaller,
        not_yet: u64,
        rest: &mut Option<Letter>,
    ) -> Option<Called>;

    fn into_letters(self: Box<Self>) -> Vec<Letter>;
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
    fn call_next(
        &mut self,
        caller: &mut EntityCaller,
        not_yet: u64,
        rest: &mut Option<Letter>,
    ) -> Option<Called> {
        let (to, payload) = self.0.pop_front()?;
        let letter = LetterRef {
            topic: Sealed::topic(&payload),
            message: &payload,
            regarding: &Regarding::Nothing,
        };
        let called = call(caller, to, not_yet, &letter);
        if matches!(called, Called::System(_) | Called::NotYet) {
            *rest = Some(Letter::new(to, payload, Regarding::Nothing));
        }
        Some(called)
    }

    fn into_letters(self: Box<Self>) -> Vec<Letter> {
        let letters = self.0.into_iter();
        letters
            .map(|(to, payload)| Letter::new(to, payload, Regarding::Nothing))
            .collect()
    }
}
