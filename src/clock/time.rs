//! The time on a clock and its speed as plain data, and their exact arithmetic in nanoseconds.

use core::time::Duration;

use super::id::ClockError;
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

/// The latest time passed to which a clock can jump: 36 years before the end of time. Beyond, only the time shown
/// jumps.
const LAST_JUMP: u64 = NEVER - (1 << 60);

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

    /// Advances the clock at once. It stops short of the end of time, so that it can go on after a leap.
    pub(super) fn jump(&mut self, nanos: u64) {
        let by = nanos.min(LAST_JUMP.saturating_sub(self.now));
        self.offset += i128::from(nanos - by);
        self.now += by;
        // The time shown saturates, too.
        self.offset = self
            .offset
            .min(i128::from(NEVER - 1) - i128::from(self.now));
    }

    /// Advances the clock at once until it shows `now`, unless it shows a later time.
    pub(super) fn jump_to(&mut self, now: Duration) {
        self.jump(saturating_nanos(now.saturating_sub(self.shown_now())));
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

/// The nanoseconds of a clock per nanosecond of its parent, in units of 2^-64.
///
/// Every `f64` of at least 2^-11 is exact. A smaller one is rounded so finely that a clock takes
/// more than 584 years to be off by a nanosecond. Only zero is rounded to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Speed(u128);

const ONE: f64 = (1_u128 << 64) as f64;

impl Speed {
    pub(super) const ZERO: Self = Self(0);
    pub(super) const NORMAL: Self = Self(1 << 64);

    pub(super) fn ratio(self) -> f64 {
        self.0 as f64 / ONE
    }

    /// Returns this speed times a factor, which is finite and not negative.
    pub(super) fn times(self, factor: f64) -> Self {
        if factor == 1.0 {
            return self;
        }
        // A product that overflows is as fast as it gets.
        let ratio = (self.ratio() * factor).min(f64::MAX);
        Self::try_from(ratio).unwrap_or(self)
    }

    /// Returns how far a clock advances while its parent advances by `nanos`, and the fraction of a
    /// nanosecond, in units of 2^-64, to carry over.
    pub(super) fn scale(self, nanos: u64, carry: u64) -> (u64, u64) {
        let nanos = u128::from(nanos);
        let (whole, fraction) = (self.0 >> 64, self.0 & u128::from(u64::MAX));
        let parts = nanos * fraction + u128::from(carry);
        let scaled = (nanos * whole).saturating_add(parts >> 64);
        (u64::try_from(scaled).unwrap_or(u64::MAX), parts as u64)
    }

    /// Returns how far the parent advances while the clock advances by `nanos`, or `None` if that
    /// takes forever, as it does for a speed of zero.
    pub(super) fn unscale(self, nanos: u64, carry: u64) -> Option<u64> {
        if self == Self::NORMAL && carry == 0 {
            return Some(nanos);
        }
        let parts = (u128::from(nanos) << 64).saturating_sub(u128::from(carry));
        let needed = match self.0 {
            0 => return None,
            speed => parts.div_ceil(speed),
        };
        u64::try_from(needed).ok()
    }
}

impl TryFrom<f64> for Speed {
    type Error = ClockError;

    fn try_from(ratio: f64) -> Result<Self, ClockError> {
        if !ratio.is_finite() || ratio < 0.0 {
            return Err(ClockError::InvalidSpeed(ratio));
        }
        // The cast saturates. A clock that is 2^64 times as fast can't get any faster.
        let exact = ratio * ONE;
        let whole = exact as u128;
        let is_slow = whole == 0 && ratio > 0.0;
        Ok(Self(whole.saturating_add(u128::from(
            is_slow || exact - whole as f64 >= 0.5,
        ))))
    }
}

#[cfg(test)]
mod tests {
    use std::prelude::rust_2024::*;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_speed_is_kept_exactly() {
        for ratio in [0.0, 0.1, 1.0 / 3.0, 1.0, 60.0, 1e18] {
            assert_eq!(Speed::try_from(ratio).map(Speed::ratio), Ok(ratio));
        }
        for bad in [-0.5, f64::INFINITY, f64::NAN] {
            assert!(Speed::try_from(bad).is_err());
        }
        assert!(Speed::try_from(f64::MAX).is_ok());
    }

    #[test]
    fn a_speed_above_zero_is_never_rounded_to_zero() {
        let unit = 1.0 / ONE;
        for ratio in [f64::MIN_POSITIVE, unit / 4.0, unit] {
            assert_eq!(Speed::try_from(ratio), Ok(Speed(1)));
        }
        assert_eq!(Speed::try_from(1.5 * unit), Ok(Speed(2)));
        assert_eq!(Speed::try_from(0.0), Ok(Speed(0)));
    }

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

    proptest! {
        #[test]
        fn small_steps_lead_as_far_as_one(
            ratio in 0.0..100.0,
            steps in prop::collection::vec(0..1_000_000_000_u64, 0..100),
        ) {
            let speed = Speed::try_from(ratio).expect("a good speed");
            let (mut gone, mut carry) = (0, 0);
            for &step in &steps {
                let (by, carried) = speed.scale(step, carry);
                (gone, carry) = (gone + by, carried);
            }
            assert_eq!((gone, carry), speed.scale(steps.iter().sum(), 0));
        }

        #[test]
        fn unscaling_gives_the_shortest_span_that_is_long_enough(
            ratio in 0.001..1000.0,
            nanos in 0..1_u64 << 40,
            carry: u64,
        ) {
            let speed = Speed::try_from(ratio).expect("a good speed");
            let needed = speed.unscale(nanos, carry).expect("a speed above zero");
            assert!(speed.scale(needed, carry).0 >= nanos);
            assert!(needed == 0 || speed.scale(needed - 1, carry).0 < nanos);
        }
    }
}
