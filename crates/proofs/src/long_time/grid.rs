//! The deadlines that a periodic timer must have.

use bevy_due::TimerFired;

/// The exact deadlines of a periodic timer, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) first: u128,
    pub(super) interval: u128,
    /// The number of firings so far.
    pub(super) count: u64,
}

impl Grid {
    pub(super) fn new(first: u64, interval: u64) -> Self {
        Self {
            first: first.into(),
            interval: interval.into(),
            count: 0,
        }
    }

    /// Returns the next deadline: first + *k* × interval.
    pub(super) fn next(&self) -> u128 {
        self.first + u128::from(self.count) * self.interval
    }

    /// Moves all further deadlines, as a pause does.
    pub(super) fn delay(&mut self, by: u128) {
        self.first += by;
    }

    /// Compares a firing with the next deadline. The clock shows `now`, and all its times are
    /// shifted by `shift`.
    pub(super) fn check(&mut self, fired: &TimerFired, now: u128, shift: u128) {
        let deadline = self.next();
        self.count += 1;
        assert_eq!(
            (fired.deadline().as_nanos(), fired.count(), fired.missed()),
            (deadline + shift, self.count, 0),
            "{fired:?} should be on {self:?}"
        );
        assert_eq!(
            deadline + fired.lateness().as_nanos(),
            now,
            "{fired:?} should say how late it is"
        );
    }

    /// Checks that every deadline up to `now` has been served.
    pub(super) fn check_all_served(&self, now: u128) {
        assert!(self.next() > now, "{self:?} should have fired before {now}");
    }
}
