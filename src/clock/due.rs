//! The clocks on which something is due, found in one array.

use alloc::vec::Vec;

use super::{
    row::{Age, BUILT_IN, ClockKey, Order, built_in_id},
    table::{ClockTable, Scope},
};
use crate::queue::NEVER;

/// When something is due on each clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    /// By key.
    wakes: Vec<Wake>,
    /// No wake under a built-in clock is earlier than this.
    soonest: [u64; BUILT_IN.len()],
}

/// A clock on which something may be due, in the order in which the clocks of a run go.
pub(crate) type DueClock = (Order, Age, ClockKey);

/// The time on the built-in clock at the end of the chain of parents at which something is due on a
/// clock. Too early is harmless.
#[derive(Clone, Copy, Debug)]
struct Wake {
    time: u64,
    root: ClockKey,
}

impl Wakes {
    fn set(&mut self, key: ClockKey, wake: Wake) {
        let index = key as usize;
        if self.wakes.len() <= index {
            let never = Wake {
                time: NEVER,
                root: 0,
            };
            self.wakes.resize(index + 1, never);
        }
        self.wakes[index] = wake;
        let soonest = &mut self.soonest[wake.root as usize];
        *soonest = wake.time.min(*soonest);
    }

    pub(super) fn clear(&mut self, key: ClockKey) {
        if let Some(wake) = self.wakes.get_mut(key as usize) {
            wake.time = NEVER;
        }
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
            // A wake of zero would be no later than the time of a clock that is not in the search.
            let time = self.time_on(key, root).map_or(NEVER, |time| time.max(1));
            self.wakes.set(key, Wake { time, root });
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
            self.wakes.soonest[root as usize] <= now
        })
    }

    /// Finds the clocks in a scope on which a deadline may have passed, in the order in which they
    /// run.
    pub(crate) fn find_due(&mut self, scope: Scope, due: &mut Vec<DueClock>) {
        due.clear();
        match scope {
            Scope::Of(_) if !self.may_be_due(scope) => {}
            Scope::Of(cadence) => {
                let mut until = [0; BUILT_IN.len()];
                for &root in cadence.roots() {
                    until[root as usize] = self.rows.get(root).map_or(0, |row| row.time.now);
                }
                self.search(until, due);
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

    /// Finds the clocks whose wakes are not later than these times on the built-in clocks.
    fn search(&mut self, until: [u64; BUILT_IN.len()], due: &mut Vec<DueClock>) {
        let mut soonest = [NEVER; BUILT_IN.len()];
        for (key, &Wake { time, root }) in (0..).zip(&self.wakes.wakes) {
            let root = root as usize;
            soonest[root] = soonest[root].min(time);
            if time <= until[root]
                && let Some(row) = self.rows.get(key)
            {
                due.push((row.order, row.age, key));
            }
        }
        self.wakes.soonest = soonest;
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
        let wakes = self.wakes.wakes.iter().filter(|wake| wake.root == root);
        let first = wakes.map(|wake| wake.time).min();
        let row = self.rows.get(root)?;
        row.parent_time(first.filter(|&first| first != NEVER)?)
    }
}
