//! Entities whose timers have finished, for the next run to clean up.

use bevy_ecs::entity::Entity;

use super::WhenDone;
use crate::{clock::Cadence, double_buffer::DoubleBuffer};

/// Entities whose timers have finished, by the cadence of the run that cleans them up.
#[derive(Debug, Default)]
pub(super) struct EndedTimers([DoubleBuffer<Ended>; 2]);

/// An entity whose timer has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) entity: Entity,
    pub(super) when_done: WhenDone,
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

    /// Withdraws the last end of an entity, because a handler gave the entity another timer.
    pub(super) fn take_back(&mut self, cadence: Cadence, entity: Entity) {
        self.0[cadence as usize].take_last(|ended| ended.entity == entity);
    }
}
