//! Sources of time that are set back: Bevy's `Time` was replaced, or it is loaded.
//!
//! The time of a clock follows from its source while the source goes forward. When the source is set
//! back, the table sets back each clock under it.

use core::mem;

use super::{
    row::{Cadence, ClockKey},
    table::Table,
};

impl Table {
    /// Settles the descendants of the built-in clocks whose source shows an earlier time than in the
    /// last run. Until then, they have followed it forward.
    pub(super) fn prepare_set_back(&mut self, roots: impl Iterator<Item = (ClockKey, u64)>) {
        for (root, now) in roots {
            if self.get(root).is_some_and(|row| now < row.seen) {
                for clock in self.descendants(root) {
                    self.settle(clock);
                }
            }
        }
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
        if self.ahead.is_empty() {
            return;
        }
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
