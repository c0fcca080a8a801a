//! The state of a clock as plain data.

use core::time::Duration;

use super::{
    id::ClockId,
    reading::{Reading, saturating_nanos, shift},
    speed::Speed,
};
use crate::queue::NEVER;

/// The settings of a clock, and its time at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockState {
    pub(super) parent: ClockId,
    pub(super) speed: Speed,
    pub(super) paused: bool,
    /// The nanoseconds that have passed, counted from [`START`], always less than [`NEVER`].
    pub(super) now: u64,
    /// A fraction of a nanosecond, in units of 2^-64.
    pub(super) carry: u64,
    /// The difference between the time shown and the time passed.
    pub(super) offset: i128,
}

/// The reading at which a clock starts, 73 years into the `u64`. A clock that is set to a later
/// time can therefore represent deadlines before that time.
pub(super) const START: u64 = 1 << 61;

impl ClockState {
    pub(super) fn new(parent: ClockId) -> Self {
        Self {
            parent,
            speed: Speed::NORMAL,
            paused: false,
            now: START,
            carry: 0,
            offset: -i128::from(START),
        }
    }

    pub(super) fn shown(&self) -> Duration {
        Duration::from_nanos(shift(self.now, self.offset))
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

    /// Sets the clock back at a rate, as its parent is set back by `nanos`.
    pub(super) fn run_back(&mut self, rate: Speed, nanos: u64) {
        let (by, _) = rate.scale(nanos, 0);
        self.now = self.now.saturating_sub(by);
    }

    pub(super) fn read(&self, stopped: bool) -> Reading {
        Reading {
            now: self.now,
            stopped,
            offset: self.offset,
        }
    }
}

/// Two clocks are equal if they show the same time and advance in the same way.
impl PartialEq for ClockState {
    fn eq(&self, other: &Self) -> bool {
        let state = |clock: &Self| (clock.parent, clock.speed, clock.paused, clock.carry);
        state(self) == state(other) && self.shown() == other.shown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stops_short_of_never() {
        let mut clock = ClockState::new(ClockId::Virtual);
        clock.run(Speed::NORMAL, NEVER);
        assert_eq!(clock.now, NEVER - 1);
        clock.advance(u64::MAX);
        assert_eq!(clock.now, NEVER - 1);
        clock.set_shown(Duration::MAX);
        assert_eq!(clock.shown().as_nanos(), u128::from(NEVER - 1));
    }

    #[test]
    fn a_clock_follows_its_parent_back() {
        let double = Speed::try_from(2.0).expect("a good speed");
        let mut clock = ClockState::new(ClockId::Virtual);
        clock.run(double, 100);
        clock.run_back(double, 30);
        assert_eq!(clock.now, START + 140);
        clock.run(double, 10);
        assert_eq!(clock.now, START + 160);
    }

    #[test]
    fn the_time_shown_can_be_set_back() {
        let mut clock = ClockState::new(ClockId::Virtual);
        clock.run(Speed::NORMAL, 500);
        clock.set_shown(Duration::from_nanos(20));
        assert_eq!(clock.shown().as_nanos(), 20);
        let reading = clock.read(false);
        assert_eq!(reading.passed(Duration::from_nanos(30)), START + 510);
        assert_eq!(reading.shown(START + 510).as_nanos(), 30);
        assert_eq!(reading.shown(NEVER), Duration::from_nanos(NEVER));
    }
}
