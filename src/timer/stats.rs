//! The statistics of a run.

use super::TimerFired;
use crate::clock::{Cadence, Scope};

/// The statistics of one run.
///
/// [`ArmedTimers::last_run`](crate::ArmedTimers::last_run) and
/// [`fast_forward`](crate::DueWorldExt::fast_forward) return these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// The number of timers armed.
    pub armed: u64,
    /// The number of firings.
    pub fired: u64,
    /// The number of deadlines that passed without a firing.
    pub missed: u64,
    /// The number of timers cancelled since the previous run.
    pub cancelled: u64,
}

impl RunStats {
    pub(super) fn count(&mut self, fired: &TimerFired) {
        self.fired += 1;
        self.missed += fired.missed();
    }

    /// Adds the statistics of another run.
    pub(super) fn add(&mut self, run: Self) {
        self.armed += run.armed;
        self.fired += run.fired;
        self.missed += run.missed;
        self.cancelled += run.cancelled;
    }
}

/// The statistics of the last run of each cadence.
#[derive(Debug, Default)]
pub(crate) struct TimerStats([RunStats; 2]);

impl TimerStats {
    pub(super) fn get(&self, cadence: Cadence) -> RunStats {
        self.0[cadence as usize]
    }

    /// Publishes the statistics of a run. A fast-forward returns its own statistics instead.
    pub(super) fn set(&mut self, scope: Scope, stats: RunStats) {
        if let Scope::Of(cadence) = scope {
            self.0[cadence as usize] = stats;
        }
    }
}
