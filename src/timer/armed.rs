//! What the queue keeps of a timer, and the arithmetic of one firing.

use core::num::NonZeroU64;

use bevy_ecs::entity::Entity;

use super::Timer;

/// A timer in the queue.
#[derive(Debug)]
pub(crate) struct ArmedTimer {
    pub(crate) entity: Entity,
    pub(crate) owner: Entity,
    interval: Option<NonZeroU64>,
    /// Firings up to now.
    pub(crate) count: u64,
    /// Firings at which it ends; zero means never.
    times: u32,
    /// Firings in this run of deadlines that have already passed.
    burst: u32,
}

/// What follows from one firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Firing {
    /// Deadlines up to now that are left out.
    pub(crate) missed: u64,
    /// The deadline after this one, or `None` if this was the last.
    pub(crate) next: Option<u64>,
}

impl ArmedTimer {
    pub(crate) fn new(entity: Entity, owner: Entity, timer: &Timer) -> Self {
        Self {
            entity,
            owner,
            interval: timer.interval,
            count: 0,
            times: timer.max_firings().unwrap_or(0),
            burst: 0,
        }
    }

    /// Serves `deadline`.
    ///
    /// All deadlines that have passed get a firing each, as long as there are no more than
    /// `burst_limit` in one go; the rest are left out, and the timer goes on on its grid:
    ///
    /// ```text
    /// deadlines    |    |    |    |    |    |    |    |
    /// now, limit 3                     ^
    /// firings                          123            |
    ///                                    └ missed: 2  └ next
    /// ```
    pub(crate) fn fire(&mut self, deadline: u64, now: u64, burst_limit: u32) -> Firing {
        self.count += 1;
        let ended = self.times != 0 && self.count >= u64::from(self.times);
        let Some(interval) = self.interval.filter(|_| !ended) else {
            return Firing {
                missed: 0,
                next: None,
            };
        };
        self.burst += 1;
        let mut missed = 0;
        let mut next = deadline.saturating_add(interval.get());
        if next <= now && self.burst >= burst_limit {
            missed = (now - deadline) / interval;
            next = deadline.saturating_add(interval.get().saturating_mul(missed + 1));
        }
        if next > now {
            self.burst = 0;
        }
        Firing {
            missed,
            next: Some(next),
        }
    }
}
