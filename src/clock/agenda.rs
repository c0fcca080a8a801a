//! The clocks on which something is due, found without a look at the others.
//!
//! Each clock keeps the times at which its children have something to do, on its own time line. A
//! change of speed or a pause of a clock therefore moves one entry, in the plan of its parent.

use alloc::vec::Vec;

use super::{
    row::{Age, ClockKey, Row},
    table::Table,
};

impl Table {
    /// Sets the first deadline on a clock. Too early is harmless.
    pub(super) fn set_deadline(&mut self, key: ClockKey, deadline: Option<u64>) {
        if let Some(row) = self.get_mut(key) {
            row.plan.deadline = deadline;
        }
        self.reschedule(key);
    }

    /// Moves the entry of a clock in the plan of its parent, and so on up to the root.
    pub(super) fn reschedule(&mut self, mut key: ClockKey) {
        while let Some(parent) = self.parent(key) {
            let Some(row) = self.get_mut(key) else {
                return;
            };
            let entry = row.wakes().and_then(|time| row.parent_time(time));
            let before = core::mem::replace(&mut row.plan.entry, entry);
            if before == entry {
                return;
            }
            if let Some(row) = self.get_mut(parent) {
                if let Some(before) = before {
                    row.plan.children.remove(&(before, key));
                }
                if let Some(entry) = entry {
                    row.plan.children.insert((entry, key));
                }
            }
            key = parent;
        }
    }

    /// Finds the clocks under these roots on which a deadline may have passed, in the order in which
    /// they run.
    pub(super) fn find_due(&mut self, roots: &[ClockKey], due: &mut Vec<(Age, ClockKey)>) {
        self.order_loaded();
        due.clear();
        if !roots.iter().any(|&root| self.has_passed(root)) {
            return;
        }
        let mut found = core::mem::take(&mut self.found);
        let mut to_visit = core::mem::take(&mut self.to_visit);
        to_visit.extend(roots);
        while let Some(key) = to_visit.pop() {
            let Some(reading) = self.run_reading(key).filter(|reading| !reading.stopped) else {
                continue;
            };
            let Some(row) = self.get(key) else {
                continue;
            };
            let is_due = row.plan.deadline.is_some_and(|time| time <= reading.now);
            if is_due {
                found.push((row.order, row.age, key));
            }
            let children = row.plan.children.iter();
            let passed = children.take_while(|&&(time, _)| time <= reading.now);
            to_visit.extend(passed.map(|&(_, child)| child));
        }
        self.to_visit = to_visit;
        found.sort_unstable();
        due.extend(found.drain(..).map(|(_, age, key)| (age, key)));
        self.found = found;
    }

    /// Returns `true` if a deadline on a clock or its descendants may have passed.
    fn has_passed(&mut self, key: ClockKey) -> bool {
        let Some(reading) = self.run_reading(key) else {
            return false;
        };
        let wakes = self.get(key).and_then(Row::wakes);
        wakes.is_some_and(|time| time <= reading.now)
    }

    /// Returns the first clock under `root` on which something will be due, and the time on `root`
    /// until then.
    pub(super) fn next_due(&mut self, root: ClockKey) -> Option<(ClockKey, u64)> {
        let now = self.run_reading(root)?.now;
        let time = self.get(root)?.wakes()?;
        let mut at = root;
        loop {
            let row = self.get(at)?;
            let first = row.plan.children.first().copied();
            match first {
                Some((time, child)) if row.plan.deadline.is_none_or(|own| time < own) => at = child,
                _ => return Some((at, time.saturating_sub(now))),
            }
        }
    }

    /// Returns the time on the source of a clock at which something will be due on the clock or its
    /// descendants. Something that is overdue is due at a time in the past.
    #[cfg(feature = "worlds")]
    pub(super) fn next_due_on_source(&self, key: ClockKey) -> Option<u64> {
        let row = self.get(key)?;
        row.parent_time(row.wakes()?)
    }
}
