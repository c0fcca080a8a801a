//! Slack: a timer chooses the slot in its window in which the fewest others wait.

use super::{Model, clock::FRAME, clocks::Nth, timers::Timer};
use crate::entry::Named;

impl Model {
    /// A timer that waits and has not chosen yet chooses its deadline in the window that begins at
    /// its deadline. `before` is the choice before, and `last` the deadline before. The new deadline is
    /// in a later slot, if the window has one.
    pub(super) fn choose(&mut self, at: usize, before: u64, last: Option<u64>) {
        let timer = &self.timers[at];
        let Some(clock) = timer
            .clock
            .filter(|_| timer.slack > 0 && !timer.is_halted())
        else {
            return;
        };
        if timer.is_pending() {
            return;
        }
        let start = timer.deadline;
        let end = start.saturating_add(timer.slack - 1).min(u64::MAX - 1);
        let later = last.map_or(start, |last| {
            self.start_of(clock, self.slot(clock, last) + 1)
        });
        let first = start.max(later.min(end));
        let slots = self.slot(clock, first)..=self.slot(clock, end);
        let emptiest = slots.min_by_key(|&slot| (self.others_in(at, clock, slot), slot));
        let chosen = emptiest.map_or(first, |slot| self.start_of(clock, slot).max(first));
        let timer = &mut self.timers[at];
        let shift = chosen - start;
        (timer.deadline, timer.shift) = (chosen, Some(shift));
        timer.wait = timer.wait.saturating_add(shift).saturating_sub(before);
    }

    /// Returns the number of other timers that count in a slot.
    fn others_in(&self, at: usize, clock: Nth, slot: i128) -> usize {
        let others = self.timers.iter().enumerate().filter(|&(of, _)| of != at);
        let others = others.map(|(_, timer)| timer);
        let counts = |timer: &&Timer| {
            let is_here = timer.clock == Some(clock) && !timer.is_pending();
            is_here && timer.shift.is_some() && !timer.is_halted()
        };
        let others = others.filter(counts);
        others
            .filter(|timer| self.slot(clock, timer.deadline) == slot)
            .count()
    }

    /// Returns the slot in which a deadline lies, as the clock shows it.
    fn slot(&self, clock: Nth, deadline: u64) -> i128 {
        let shown = i128::from(deadline) + self.clocks.live(clock).offset;
        shown.div_euclid(self.slot_length(clock))
    }

    fn start_of(&self, clock: Nth, slot: i128) -> u64 {
        let shown = slot * self.slot_length(clock);
        u64::try_from(shown - self.clocks.live(clock).offset).unwrap_or(0)
    }

    fn slot_length(&self, clock: Nth) -> i128 {
        match self.clocks.all[clock].name {
            Named::Frames => i128::from(FRAME),
            _ => 1_000_000_000 / 64,
        }
    }
}

impl Timer {
    fn is_halted(&self) -> bool {
        self.paused_at.is_some() || self.is_held
    }
}
