//! The statistics of a run.

use super::TimerFired;
use crate::clock::{Cadence, Scope};

/// The statistics of one run.
///
/// [`ArmedTimers::last_run`](crate::ArmedTimers::last_run) and
/// [`fast_forward`](crate::DueWorldExt::fast_forward) return these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// The number of timers and lifetimes armed.
    pub armed: u64,
    /// The number of firings, and of lifetimes that ended.
    pub fired: u64,
    /// The number of deadlines that passed without a firing.
    pub missed: u64,
    /// The number of timers cancelled since the previous run.
    pub cancelled: u64,
}

impl RunStats {
    #[inline]
    pub(super) fn count(&mut self, fired: &TimerFired) {
        self.fired += 1;
        self.missed += fired.missed();
    }

    /// Adds the statistics of another run.
    pub(crate) fn add(&mut self, run: Self) {
        self.armed += run.armed;
        self.fired += run.fired;
        self.missed += run.missed;
        self.cancelled += run.cancelled;
    }
}

/// The statistics of the last run of each cadence, and of the last step of a fast-forward.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimerStats {
    runs: [RunStats; 3],
    /// The number of timers armed since the last run.
    pub(super) armed: u64,
}

impl TimerStats {
    pub(super) fn get(&self, scope: Scope) -> RunStats {
        self.runs[index(scope)]
    }

    pub(super) fn get_mut(&mut self, scope: Scope) -> &mut RunStats {
        &mut self.runs[index(scope)]
    }
}

fn index(scope: Scope) -> usize {
    match scope {
        Scope::Of(Cadence::Frame) => 0,
        Scope::Of(Cadence::FixedStep) => 1,
        Scope::Under(_) => 2,
    }
}
