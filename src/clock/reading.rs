//! Readings of a clock, and the arithmetic of times in nanoseconds.

use core::time::Duration;

use crate::queue::NEVER;

/// The reading of a clock at the start of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The nanoseconds that have passed, always less than [`NEVER`].
    pub(crate) now: u64,
    /// Whether the clock is stopped, so that nothing may fire.
    pub(crate) stopped: bool,
    /// The difference between the time shown and the time passed.
    pub(crate) offset: i128,
}

impl Reading {
    /// Returns the time that the clock shows when `passed` nanoseconds have passed.
    pub(crate) fn shown(&self, passed: u64) -> Duration {
        Duration::from_nanos(self.shown_nanos(passed))
    }

    /// Returns the time that the clock shows when `passed` nanoseconds have passed, in nanoseconds.
    pub(crate) fn shown_nanos(&self, passed: u64) -> u64 {
        shift(passed, self.offset)
    }

    /// Returns how many nanoseconds have passed when the clock shows `shown`.
    pub(crate) fn passed(&self, shown: Duration) -> u64 {
        shift(saturating_nanos(shown), -self.offset)
    }
}

/// Converts a duration to nanoseconds, at most [`NEVER`].
pub(crate) fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

/// Moves a time by `nanos` and saturates at both ends. [`NEVER`] stays [`NEVER`].
pub(crate) fn shift(time: u64, nanos: i128) -> u64 {
    match time {
        NEVER => NEVER,
        time => u64::try_from((i128::from(time) + nanos).max(0)).unwrap_or(NEVER),
    }
}
