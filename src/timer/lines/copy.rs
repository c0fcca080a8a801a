//! Copies of all timers, to go back to.

use bevy_ecs::entity::MapEntities;
use bevy_ecs::prelude::*;

use super::TimerLines;
use crate::clock::ClockId;

impl TimerLines {
    /// Returns a copy of all timers, under the same keys. It has no written states.
    pub(crate) fn copy(&self) -> Self {
        Self {
            lines: self.lines.clone(),
            pending: self.pending.clone(),
            touched: self.touched.clone(),
            cancelled: self.cancelled.clone(),
            ended: self.ended.clone(),
            stats: self.stats.clone(),
            draws: self.draws,
            armed: self.armed,
            ..Self::new(self.modifiers)
        }
    }

    /// Returns the entities of the timers that have finished, and that the next run ends.
    pub(crate) fn finished(&self) -> impl Iterator<Item = Entity> {
        self.ended.iter().map(|(_, ended)| ended.entity)
    }

    /// Changes the entities of all timers.
    pub(crate) fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        let timers = self.lines.iter_mut();
        for timer in timers.flat_map(|line| line.queue.values_mut()) {
            timer.entity.map_entities(mapper);
            timer.owner.map_entities(mapper);
        }
        for pending in self.pending.iter_mut() {
            pending.entity.map_entities(mapper);
        }
        for ended in self.ended.iter_mut() {
            ended.entity.map_entities(mapper);
        }
        for cancelled in self.cancelled.iter_mut() {
            cancelled.entity.map_entities(mapper);
            cancelled.owner.map_entities(mapper);
            let mut clock = ClockId::from(cancelled.clock);
            clock.map_entities(mapper);
            cancelled.clock = clock.into();
        }
    }
}
