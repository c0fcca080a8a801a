//! The clocks on which something is due, found in one array for each built-in clock.

use alloc::vec::Vec;

use super::{
    row::{Age, BUILT_IN, ClockKey, Order, built_in_id},
    table::{ClockTable, Scope},
};
use crate::queue::{NEVER, prefetch};

/// When something is due on each clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    /// By the built-in clock at the end of the chain of parents.
    under: [WakesUnder; BUILT_IN.len()],
}

/// When something is due on the clocks under a built-in clock, in the time of that clock. Too early is harmless.
#[derive(Clone, Debug)]
struct WakesUnder {
    /// By key. A clock that is elsewhere never wakes.
    times: Vec<u64>,
    /// No time is earlier than this.
    soonest: u64,
}

/// A clock on which something may be due, in the order in which the clocks of a run go.
pub(crate) type DueClock = (Order, Age, ClockKey);

impl Wakes {
    fn set(&mut self, key: ClockKey, root: ClockKey, time: u64) {
        self.clear(key);
        let (wakes, index) = (&mut self.under[root as usize], key as usize);
        if wakes.times.len() <= index {
            wakes.times.resize(index + 1, NEVER);
        }
        wakes.times[index] = time;
        wakes.soonest = time.min(wakes.soonest);
    }

    pub(super) fn clear(&mut self, key: ClockKey) {
        for wakes in &mut self.under {
            if let Some(time) = wakes.times.get_mut(key as usize) {
                *time = NEVER;
            }
        }
    }
}

impl Default for WakesUnder {
    fn default() -> Self {
        Self {
            times: Vec::new(),
            soonest: NEVER,
        }
    }
}

impl WakesUnder {
    /// Finds the clocks that wake at or before `until`.
    fn search(&mut self, until: u64, mut found: impl FnMut(ClockKey)) {
        let mut find = |first: ClockKey, times: &[u64]| {
            let keys = (first..).zip(times);
            let due = keys.filter(|&(_, &time)| time <= until);
            due.for_each(|(key, _)| found(key));
        };
        let (chunks, rest) = self.times.as_chunks();
        let mut soonest = rest.iter().copied().min().unwrap_or(NEVER);
        for (first, times) in (0..).step_by(4).zip(chunks) {
            // Few clocks wake in one frame, so this looks at four at a time.
            let &[a, b, c, d] = times;
            let earliest = a.min(b).min(c.min(d));
            soonest = soonest.min(earliest);
            if earliest <= until {
                find(first, times);
            }
        }
        find((4 * chunks.len()) as ClockKey, rest);
        self.soonest = soonest;
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
            self.set_wake(key);
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
        if let Some(row) = self.rows.get(key) {
            let root = row.root;
            let time = self.time_on(key, root).unwrap_or(NEVER);
            self.wakes.set(key, root, time);
        }
    }

    /// Returns the time on `root`, which is a clock or drives it, at which something is due on the
    /// clock. It is in the past if something is overdue.
    fn time_on(&self, key: ClockKey, root: ClockKey) -> Option<u64> {
        let mut time = self.rows.get(key)?.look?;
        let mut at = key;
        while at != root {
            time = self.rows.get(at)?.parent_time(time)?;
            at = self.rows.parent(at)?;
        }
        Some(time)
    }

    /// Returns `true` if a deadline may have passed on a clock in a scope.
    pub(crate) fn may_be_due(&self, scope: Scope) -> bool {
        let Scope::Of(cadence) = scope else {
            return true;
        };
        let mut roots = cadence.roots().iter();
        roots.any(|&root| {
            let now = self.rows.get(root).map_or(0, |row| row.time.now);
            self.wakes.under[root as usize].soonest <= now
        })
    }

    /// Finds the clocks in a scope on which a deadline may have passed, in the order in which they
    /// run.
    pub(crate) fn find_due(&mut self, scope: Scope, due: &mut Vec<DueClock>) {
        due.clear();
        match scope {
            Scope::Of(_) if !self.may_be_due(scope) => {}
            Scope::Of(cadence) => {
                for &root in cadence.roots() {
                    let now = self.rows.get(root).map_or(0, |row| row.time.now);
                    let wakes = &mut self.wakes.under[root as usize];
                    wakes.search(now, |key| due.push((0, 0, key)));
                }
                // The cache misses of a loop of its own overlap.
                due.retain_mut(|(order, age, key)| match self.rows.get(*key) {
                    Some(row) => {
                        (*order, *age) = (row.order, row.age);
                        true
                    }
                    None => false,
                });
            }
            Scope::Under(root) => {
                let clocks = self.rows.descendants(root).into_iter().chain([root]);
                due.extend(clocks.filter_map(|key| {
                    let row = self.rows.get(key)?;
                    let is_due = row.look? <= self.reading(key)?.now;
                    is_due.then_some((row.order, row.age, key))
                }));
            }
        }
        due.sort_unstable();
    }

    /// Prefetches the rows of clocks, so that their cache misses overlap.
    pub(crate) fn prefetch(&self, clocks: &[DueClock]) {
        for &(.., key) in clocks {
            if let Some(row) = self.rows.get(key) {
                prefetch((row.time.now, row.past.now, row.look, row.entity, row.driver));
            }
        }
    }

    /// Returns the first clock under `root` on which something will be due, and the time on `root`
    /// until then. Both are wrong if a deadline was set too early.
    pub(crate) fn next_due(&self, root: ClockKey) -> Option<(ClockKey, u64)> {
        let now = self.reading(root)?.now;
        let clocks = [root].into_iter().chain(self.rows.descendants(root));
        let spans = clocks.filter_map(|key| {
            let time = self.time_on(key, root)?;
            Some((key, time.saturating_sub(now)))
        });
        spans.min_by_key(|&(_, span)| span)
    }

    /// Returns the time of Bevy at which something will be due on a built-in clock or its descendants.
    /// It is too early if a deadline was set too early.
    #[cfg(feature = "worlds")]
    pub(crate) fn next_due_on_bevy(&self, root: ClockKey) -> Option<u64> {
        let wakes = self.wakes.under.get(root as usize)?;
        let first = wakes.times.iter().copied().min();
        let row = self.rows.get(root)?;
        row.parent_time(first.filter(|&first| first != NEVER)?)
    }
}
