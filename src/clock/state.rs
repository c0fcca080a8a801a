//! The time on a clock as plain data, and the arithmetic of times in nanoseconds.

use core::time::Duration;

use super::speed::Speed;
use crate::queue::NEVER;

/// The time on a clock at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The nanoseconds that have passed, counted from [`START`], always less than [`NEVER`].
    pub(crate) now: u64,
    /// A fraction of a nanosecond, in units of 2^-64.
    pub(super) carry: u64,
    /// The difference between the time shown and the time passed.
    pub(crate) offset: i128,
}

/// The time passed on a clock that starts, 73 years into the `u64`. A clock that is set to a later
/// time can therefore represent deadlines before that time.
const START: u64 = 1 << 61;

impl Reading {
    pub(super) const ZERO: Self = Self {
        now: START,
        carry: 0,
        offset: -(START as i128),
    };

    pub(super) fn shown_now(&self) -> Duration {
        self.shown(self.now)
    }

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

    pub(super) fn set_shown(&mut self, now: Duration) {
        let now = i128::from(saturating_nanos(now).min(NEVER - 1));
        self.offset = now - i128::from(self.now);
    }

    pub(super) fn advance(&mut self, nanos: u64) {
        self.now = self.now.saturating_add(nanos).min(NEVER - 1);
    }

    /// Advances the clock at a rate, as its parent advances by `nanos`.
    pub(super) fn run(&mut self, rate: Speed, nanos: u64) {
        let (by, carry) = rate.scale(nanos, self.carry);
        self.carry = carry;
        self.advance(by);
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

    #[test]
    fn a_clock_stops_short_of_never() {
        let mut clock = Reading::ZERO;
        clock.run(Speed::NORMAL, NEVER);
        assert_eq!(clock.now, NEVER - 1);
        clock.advance(u64::MAX);
        assert_eq!(clock.now, NEVER - 1);
        clock.set_shown(Duration::MAX);
        assert_eq!(clock.shown_now().as_nanos(), u128::from(NEVER - 1));
    }

    #[test]
    fn the_time_shown_can_be_set_back() {
        let mut clock = Reading::ZERO;
        clock.run(Speed::NORMAL, 500);
        clock.set_shown(Duration::from_nanos(20));
        assert_eq!(clock.shown_now().as_nanos(), 20);
        let reading = clock;
        assert_eq!(reading.passed(Duration::from_nanos(30)), START + 510);
        assert_eq!(reading.shown(START + 510).as_nanos(), 30);
        assert_eq!(reading.shown(NEVER), Duration::from_nanos(NEVER));
    }
}
