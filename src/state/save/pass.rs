//! Time that passes for saved timers.

use bevy_ecs::{entity::EntityHashSet, prelude::*};

use super::SavedTimers;
use crate::{
    clock::ClockId,
    owner::OwnedBy,
    pause::{Pauses, stops},
    state::part::Part,
    timer::Arms,
};

impl SavedTimers {
    /// Lets time pass on the clocks of all timers that are neither paused nor on a saved clock.
    pub(crate) fn pass(&mut self, passed: impl Fn(ClockId) -> u64) {
        let clocks: EntityHashSet = self.clocks().map(|(clock, _)| clock).collect();
        let passed = |clock| match clock {
            ClockId::Own(clock) if clocks.contains(&clock) => 0,
            clock => passed(clock),
        };
        let paused = self.paused();
        for saved in &mut self.0.entities {
            let (mut owner, mut pauses) = (None, None);
            for part in &saved.parts {
                match part {
                    Part::OwnedBy(OwnedBy(by)) => owner = Some(*by),
                    Part::Pauses(Pauses(target)) => pauses = Some(*target),
                    _ => {}
                }
            }
            let is_paused = |entity| paused.contains(&entity);
            if stops(saved.entity, owner, is_paused, |owner| {
                pauses == Some(owner)
            }) {
                continue;
            }
            for part in &mut saved.parts {
                match part {
                    Part::Timer(timer) => timer.pass(passed),
                    Part::DespawnAfter(lifetime) => lifetime.pass(passed),
                    _ => {}
                }
            }
        }
    }

    /// Returns `true` if all timers of a world were saved, with the state that belongs to no entity.
    pub(crate) fn is_whole_world(&self) -> bool {
        self.0.world.is_some()
    }

    /// Returns the entities that are open requests.
    pub(crate) fn requests(&self) -> EntityHashSet {
        let requests = self.0.entities.iter();
        let requests = requests.filter(|saved| saved.has(|it| matches!(it, Part::OpenRequest)));
        requests.map(|saved| saved.entity).collect()
    }

    /// Returns the entities with a saved clock, and the parents of these clocks.
    pub(crate) fn clocks(&self) -> impl Iterator<Item = (Entity, ClockId)> {
        let clocks = self.0.entities.iter();
        clocks.filter_map(|saved| Some((saved.entity, saved.clock_parent()?)))
    }

    /// Returns the entities that have a pause.
    fn paused(&self) -> EntityHashSet {
        let parts = self.0.entities.iter();
        let parts = parts.flat_map(|saved| saved.parts.iter().map(|part| (saved.entity, part)));
        let paused = parts.filter_map(|(entity, part)| match part {
            Part::Paused | Part::Disabled => Some(entity),
            Part::Pauses(Pauses(target)) => Some(*target),
            _ => None,
        });
        paused.collect()
    }
}
