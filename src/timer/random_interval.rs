//! Random intervals: a timer that draws each of its intervals anew.

use core::num::NonZeroU64;

use super::{
    MissedTicks, Timer,
    armed::{ArmedTimer, Served},
    settings::mix,
};

/// The intervals of one armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct RandomInterval {
    /// The difference between the longest and the shortest interval.
    span: u64,
    /// The state of the random numbers.
    state: u64,
    /// The interval that was drawn last.
    pub(super) wait: u64,
}

impl RandomInterval {
    /// Returns the intervals of a timer, or `None` if they are all equal.
    pub(super) fn of(timer: &Timer, seed: impl FnOnce() -> u64) -> Option<Self> {
        let span = timer.interval_span()?.get();
        Some(Self {
            span,
            state: seed(),
            wait: 0,
        })
    }

    fn draw(&mut self, shortest: NonZeroU64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let extra = scale(mix(self.state), self.span);
        self.wait = shortest.get().saturating_add(extra);
        self.wait
    }
}

/// Scales a random number to `0..=max`.
pub(super) fn scale(random: u64, max: u64) -> u64 {
    ((u128::from(random) * (u128::from(max) + 1)) >> 64) as u64
}

impl ArmedTimer {
    /// Handles `deadline` like [`fire`](Self::fire), with a random interval to the next one.
    ///
    /// Without a grid, the deadlines that are skipped are not known. They are counted in average
    /// intervals, and the next interval starts now.
    pub(super) fn fire_random(
        &mut self,
        deadline: u64,
        now: u64,
        burst_limit: u32,
        intervals: &mut RandomInterval,
    ) -> Served {
        let Some(shortest) = self.count_firing() else {
            return Served {
                missed: 0,
                next: None,
            };
        };
        let interval = intervals.draw(shortest);
        let next = deadline.saturating_add(interval);
        let is_late = next <= now;
        let is_burst = self.missed_ticks == MissedTicks::Burst;
        self.burst = if is_late && is_burst {
            self.burst + 1
        } else {
            0
        };
        let is_served = match self.missed_ticks {
            MissedTicks::Burst => !is_late || self.burst < burst_limit,
            MissedTicks::Skip => !is_late,
            MissedTicks::Delay => false,
        };
        if is_served {
            return Served {
                missed: 0,
                next: Some(next),
            };
        }
        self.burst = 0;
        let average = shortest.get().saturating_add(intervals.span / 2);
        let missed = match is_late {
            true => (now.saturating_sub(deadline) / average).max(1),
            false => 0,
        };
        Served {
            missed,
            next: Some(now.saturating_add(interval)),
        }
    }
}
