//! Sources of time that are set back: Bevy's `Time` was replaced, or it is loaded.
//!
//! The time of a clock follows from its source while the source goes forward. When the source is set
//! back, the table sets back each clock under it.

use core::mem;

use super::{
    readings::{TimeSource, elapsed},
    row::{Cadence, ClockKey},
    table::Table,
};

impl Table {
    /// Returns `true` if a source was set back since the last run. Until then, its clocks have
    /// followed it forward.
    pub(super) fn prepare_set_back(&mut self, cadence: Cadence, times: &impl TimeSource) -> bool {
        let mut is_set_back = false;
        for &root in Self::built_in(cadence) {
            let row = self.get(root);
            let now = row.and_then(|row| elapsed(row.source, times));
            if row.is_some_and(|row| now.is_some_and(|now| now < row.seen)) {
                is_set_back = true;
                for clock in self.descendants(root) {
                    self.settle(clock);
                }
            }
        }
        is_set_back
    }

    /// Sets back the descendants of a clock that was set back.
    pub(super) fn set_back_under(&mut self, root: ClockKey) {
        let clocks = self.descendants(root);
        for &clock in &clocks {
            let now = self.source_now(clock);
            if let (Some(row), Some(now)) = (self.get_mut(clock), now) {
                row.set_back_to(now);
            }
        }
        for clock in clocks {
            self.reschedule(clock);
        }
    }

    /// Sets back the clocks that were added when their source was ahead of this run.
    pub(super) fn set_back_ahead(&mut self, cadence: Cadence) {
        let mut ahead = mem::take(&mut self.ahead);
        ahead.retain(|&(key, age)| {
            let row = self.get_of_age(key, age);
            match row.map(|row| row.cadence) {
                Some(of) if of == cadence => self.set_back_if_ahead(key),
                Some(_) => return true,
                None => {}
            }
            false
        });
        self.ahead = ahead;
    }

    fn set_back_if_ahead(&mut self, key: ClockKey) {
        if let Some(now) = self.source_now(key)
            && let Some(row) = self.get_mut(key)
            && now < row.seen
        {
            row.set_back_to(now);
            let cadence = row.cadence as usize;
            // The readings taken so far are out of date.
            self.counters.epochs[cadence] += 1;
            self.reschedule(key);
            self.set_back_under(key);
        }
    }
}
