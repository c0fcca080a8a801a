//! The clocks on which something is due, found in one tree for each time line.

use alloc::vec::Vec;

use super::{
    row::{Age, BUILT_IN, ClockKey, Driver, MANUAL, VIRTUAL, built_in_id},
    table::{ClockTable, Scope},
    wakes::Wakes,
};
use crate::queue::{NEVER, prefetch};

/// When something is due on each clock, in the time of the clock at the top of its time line.
///
/// Each built-in clock has a time line, and so has a clock that is fast-forwarded. Manual clocks and those below share
/// one, on which no time passes. A clock is on one of them.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeLines {
    wakes: [Wakes; LINES],
    /// The clock on an entity that is fast-forwarded, if any. The clocks below it follow it alone.
    pub(super) forward: Option<ClockKey>,
    /// Whether the clock was stopped when its fast-forward began, so that it runs nevertheless.
    pub(super) was_stopped: bool,
}

const LINES: usize = BUILT_IN.len() + 2;

/// Returns the number of the time line with this clock at its top.
fn line(top: ClockKey) -> usize {
    match top {
        MANUAL => LINES - 1,
        top => (top as usize).min(LINES - 2),
    }
}

/// A clock on which something may be due, in the order in which the clocks of a run go.
pub(crate) type DueClock = (Age, ClockKey);

impl TimeLines {
    /// Returns the time line with this clock at its top.
    #[inline]
    pub(super) fn under(&self, top: ClockKey) -> &Wakes {
        &self.wakes[line(top)]
    }

    /// Sets the time of a clock on the line that it is on.
    fn move_on(&mut self, key: ClockKey, top: ClockKey, time: u64) {
        self.wakes[line(top)].set(key, time);
    }

    /// Puts a clock on a line.
    fn set(&mut self, key: ClockKey, top: ClockKey, time: u64) {
        let line = line(top);
        for (nth, wakes) in self.wakes.iter_mut().enumerate() {
            wakes.set(key, if nth == line { time } else { NEVER });
        }
    }

    pub(super) fn clear(&mut self, key: ClockKey) {
        self.set(key, MANUAL, NEVER);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.wakes.iter_mut().for_each(|wakes| wakes.truncate(len));
    }
}

impl ClockTable {
    /// Sets the time on a clock at which to look at its queue again: the first deadline, or earlier. Returns
    /// `true` if this is a change.
    pub(crate) fn set_look(&mut self, key: ClockKey, look: Option<u64>) -> bool {
        let Some(row) = self.rows.get_mut(key) else {
            return false;
        };
        let is_changed = row.look != look;
        row.look = look;
        if is_changed {
            let (top, time) = self.wake(key);
            self.lines.move_on(key, top, time.unwrap_or(NEVER));
        }
        is_changed
    }

    /// Sets the wakes of a clock and of its descendants.
    pub(super) fn set_wakes(&mut self, key: ClockKey) {
        self.set_wake(key);
        // A change of a built-in clock moves nothing on its own time line.
        if built_in_id(key).is_none() {
            for clock in self.rows.descendants(key) {
                self.set_wake(clock);
            }
        }
    }

    fn set_wake(&mut self, key: ClockKey) {
        let (top, time) = self.wake(key);
        self.lines.set(key, top, time.unwrap_or(NEVER));
    }

    /// Returns the top of the time line of a clock, and the time there at which something is due on the clock. It is in
    /// the past if something is overdue.
    fn wake(&self, key: ClockKey) -> (ClockKey, Option<u64>) {
        let mut time = self.rows.get(key).and_then(|row| row.look);
        let mut at = key;
        loop {
            let Some(row) = self.rows.get(at) else {
                return (at, None);
            };
            if row.driver == Driver::Bevy || self.lines.forward == Some(at) {
                return (at, time);
            }
            time = time.and_then(|time| row.parent_time(time));
            match row.driver {
                Driver::Clock(parent) => at = parent,
                // It stands still until its parent has a clock.
                Driver::Missing => return (row.root, None),
                // Nothing moves it but itself, so it is due now or not at all.
                Driver::Bevy | Driver::Manual => return (row.root, time),
            }
        }
    }

    /// Returns `true` if a deadline may have passed on a clock in a scope.
    pub(crate) fn may_be_due(&self, scope: Scope) -> bool {
        let mut tops = scope.tops().iter();
        tops.any(|&top| {
            let soonest = self.lines.under(top).soonest();
            soonest <= self.time_passed(top) || self.is_due_in_frame(top)
        })
    }

    fn time_passed(&self, top: ClockKey) -> u64 {
        // No time passes on the line of manual clocks.
        self.reading(top).map_or(0, |time| time.now)
    }

    /// Finds the clocks in a scope on which a deadline may have passed, in the order in which they
    /// run.
    pub(crate) fn find_due(&self, scope: Scope, due: &mut Vec<DueClock>) {
        due.clear();
        for &top in scope.tops() {
            let wakes = self.lines.under(top);
            wakes.search(self.time_passed(top), |key| due.push((0, key)));
        }
        // The cache misses of a loop of its own overlap.
        due.retain_mut(|(age, key)| {
            let row = self.rows.get(*key);
            row.map(|row| *age = row.age).is_some()
        });
        due.sort_unstable();
    }

    /// Prefetches the rows of clocks, so that their cache misses overlap.
    pub(crate) fn prefetch(&self, clocks: &[DueClock]) {
        for &(_, key) in clocks {
            if let Some(row) = self.rows.get(key) {
                prefetch((row.time.now, row.look, row.rate, row.driver, row.past.round));
            }
        }
    }

    /// Returns the first clock on the time line under `top` on which something will be due, and the time on `top`
    /// until then. If the queue of that clock names an early time to look at it again, nothing may be due by then.
    pub(crate) fn next_due(&self, top: ClockKey) -> Option<(ClockKey, u64)> {
        let (key, time) = self.lines.under(top).first()?;
        Some((key, time.saturating_sub(self.time_passed(top))))
    }

    /// Returns the time of Bevy at which something will be due on a built-in clock or its descendants.
    /// It is too early if a deadline was set too early.
    #[cfg(feature = "worlds")]
    pub(crate) fn next_due_on_bevy(&self, root: ClockKey) -> Option<u64> {
        let (_, first) = self.lines.under(root).first()?;
        self.rows.get(root)?.parent_time(first)
    }

    /// Gives a clock a time line of its own, so that it can be fast-forwarded with the clocks below it.
    pub(crate) fn begin_forward(&mut self, key: ClockKey, is_game_stopped: bool) {
        self.lines.was_stopped = self.stands_still(key, is_game_stopped);
        if built_in_id(key).is_none() {
            self.settle(key);
            self.lines.forward = Some(key);
            self.set_wakes(key);
        }
    }

    /// Returns `true` unless a clock that is fast-forwarded is gone, or has stopped on the way.
    pub(crate) fn is_forward_running(
        &self,
        key: ClockKey,
        age: Age,
        is_game_stopped: bool,
    ) -> bool {
        let may_run = || self.lines.was_stopped || !self.stands_still(key, is_game_stopped);
        self.rows.get_of_age(key, age).is_some() && may_run()
    }

    fn stands_still(&self, key: ClockKey, is_game_stopped: bool) -> bool {
        self.is_stopped(key) || key == VIRTUAL && is_game_stopped
    }

    /// Returns the clock that was fast-forwarded to the time line of its parent.
    pub(crate) fn end_forward(&mut self) {
        if let Some(key) = self.lines.forward.take() {
            self.settle(key);
            self.set_wakes(key);
        }
    }
}
