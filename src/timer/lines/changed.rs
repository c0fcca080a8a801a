//! The timers that have changed since a mark.

use alloc::vec::Vec;

use bevy_ecs::entity::Entity;

use super::{LinesJournal, LinesMark, TimerLines};
use crate::clock::ChangedClocks;

impl TimerLines {
    /// Adds the entities whose timers or lifetimes have changed since `mark`, at which `journal` began.
    /// Whatever changes about a timer in a queue, its slot is in the journal.
    pub(crate) fn add_changed(
        &self,
        mark: &LinesMark,
        journal: &LinesJournal,
        changed: &mut Vec<Entity>,
    ) {
        for (&clock, journal) in &journal.0 {
            let slots = self
                .get(clock)
                .map(|line| line.queue.changed(&journal.slots));
            for timers in slots.into_iter().flatten() {
                let [before, now] = timers.map(|timer| timer.map(|timer| timer.entity));
                changed.extend(before);
                changed.extend(now.filter(|_| now != before));
            }
        }
        changed.extend(self.pending.differences(&mark.pending));
        changed.extend(self.ended.differences(&mark.ended));
    }

    /// Adds the entities whose timers or lifetimes run on these clocks.
    pub(crate) fn add_running_on(&self, clocks: &ChangedClocks, changed: &mut Vec<Entity>) {
        for clock in clocks.keys() {
            let timers = self.get(clock).map(|line| line.queue.iter());
            let timers = timers.into_iter().flatten();
            changed.extend(timers.map(|(_, _, timer)| timer.entity));
        }
        let pending = self.pending.iter().filter(|&pending| {
            let start = self.pending.start(pending, 0);
            start.is_some_and(|start| clocks.contains_key(start.clock))
        });
        changed.extend(pending.map(|pending| pending.entity));
    }

    /// Returns the entities of the timers whose deadlines were moved. The timers that were moved to other
    /// clocks are among them.
    pub(crate) fn moved(&self) -> impl Iterator<Item = Entity> {
        self.iter().flat_map(|line| {
            let keys = line.rescheduled.keys();
            let timers = keys.filter_map(|key| line.queue.get(key));
            timers.map(|timer| timer.entity)
        })
    }
}
