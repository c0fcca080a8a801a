//! Entities whose timers have finished, for the next run to clean up.

use alloc::{collections::BTreeSet, vec::Vec};

use bevy_ecs::entity::Entity;

use super::{Kind, WhenDone};
use crate::{clock::Cadence, double_buffer::DoubleBuffer};

/// Entities whose timers have finished, by the cadence of the run that cleans them up.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedTimers([DoubleBuffer<Ended>; 2]);

/// An entity whose timer or lifetime has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) entity: Entity,
    pub(super) kind: Kind,
    pub(super) when_done: WhenDone,
    /// Whether a handler has panicked at this end in an earlier run.
    pub(super) is_retry: bool,
}

impl Ended {
    pub(super) fn timer(entity: Entity, when_done: WhenDone) -> Self {
        Self {
            entity,
            kind: Kind::Timer,
            when_done,
            is_retry: false,
        }
    }

    pub(super) fn lifetime(entity: Entity) -> Self {
        Self {
            entity,
            kind: Kind::Lifetime,
            when_done: WhenDone::Despawn,
            is_retry: false,
        }
    }
}

impl EndedTimers {
    pub(super) fn is_empty(&self, cadence: Cadence) -> bool {
        self.0[cadence as usize].pending().next().is_none()
    }

    /// Releases the ends of the previous run.
    pub(super) fn swap(&mut self, cadence: Cadence) {
        self.0[cadence as usize].swap();
    }

    /// Takes the next released end.
    pub(super) fn next(&mut self, cadence: Cadence) -> Option<Ended> {
        self.0[cadence as usize].next()
    }

    pub(super) fn push(&mut self, cadence: Cadence, ended: Ended) {
        self.0[cadence as usize].push(ended);
    }

    /// Pushes for both cadences, so that whichever run comes first ends the timer.
    pub(super) fn push_for_any_run(&mut self, ended: Ended) {
        self.push(Cadence::Frame, ended);
        self.push(Cadence::FixedStep, ended);
    }

    /// Returns all ends, with the cadence of the run that cleans them up.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Cadence, Ended)> {
        [Cadence::Frame, Cadence::FixedStep]
            .into_iter()
            .flat_map(|cadence| {
                let ended = self.0[cadence as usize].pending();
                ended.map(move |&ended| (cadence, ended))
            })
    }

    /// Returns the entities whose timers or lifetimes have finished in only one of the two.
    pub(super) fn differences(&self, other: &Self) -> Vec<Entity> {
        let finished = |ends: &Self| {
            let ends = ends.iter();
            let ends = ends.map(|(_, ended)| (ended.entity, ended.kind));
            ends.collect::<BTreeSet<_>>()
        };
        let (here, there) = (finished(self), finished(other));
        let different = here.symmetric_difference(&there);
        different.map(|&(entity, _)| entity).collect()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Ended> {
        self.0.iter_mut().flat_map(DoubleBuffer::iter_mut)
    }

    /// Withdraws the last end of the timer or the lifetime of an entity: it is complete, or a handler
    /// gave the entity another one.
    pub(super) fn take_back(&mut self, cadence: Cadence, entity: Entity, kind: Kind) {
        self.0[cadence as usize].take_last(|ended| ended.entity == entity && ended.kind == kind);
    }
}
