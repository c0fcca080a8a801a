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

/// Returns the end at which a time that moves by `nanos` saturates.
#[cold]
fn saturated(time: u64, nanos: i128) -> u64 {
    match nanos < 0 && time != NEVER {
        true => 0,
        false => NEVER,
    }
}

/// Moves a time by `nanos` and saturates at both ends. [`NEVER`] stays [`NEVER`].
pub(crate) fn shift(time: u64, nanos: i128) -> u64 {
    match u64::try_from(i128::from(time) + nanos) {
        Ok(moved) if time != NEVER => moved,
        _ => saturated(time, nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_saturates_at_both_ends() {
        const LATE: u64 = NEVER - 1;
        assert_eq!((shift(5, 3), shift(5, -5)), (8, 0));
        assert_eq!((shift(5, -6), shift(0, i128::from(i64::MIN))), (0, 0));
        assert_eq!((shift(LATE, 1), shift(LATE, 2)), (NEVER, NEVER));
        assert_eq!(shift(5, i128::from(LATE)), NEVER);
        assert_eq!((shift(NEVER, -1), shift(NEVER, 1)), (NEVER, NEVER));
    }
}
