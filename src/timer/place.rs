//! The place of a timer: in the queue of a clock, or nowhere.

use crate::{clock::ClockKey, queue::Key, seat::Seat};

/// The place of a timer: the clock in whose queue it is, and its key there.
pub(crate) type Place = (ClockKey, Key);

/// The seat of a component that arms a timer.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimerSeat(Seat);

/// The queue of the timers whose clock did not exist when they were inserted. They wait there for the
/// next swap. No clock has this key.
pub(crate) const NO_CLOCK: ClockKey = ClockKey::MAX;

/// The seat row that marks a cancelled timer. No clock has this key.
const REPORTED: ClockKey = ClockKey::MAX - 1;

impl TimerSeat {
    /// Returns the place of a timer that is armed, or was armed until its last firing.
    pub(super) fn place(&self) -> Option<Place> {
        match self.0.get()? {
            (REPORTED, _) => None,
            (clock, key) => Some((clock, Key::from_bits(key))),
        }
    }

    pub(super) fn move_to(&self, place: Option<Place>) {
        match place {
            None => _ = self.0.take(),
            Some((clock, key)) => self.0.set(clock, key.to_bits()),
        }
    }

    /// Notes the number of the report of a timer that is cancelled, and about to be removed or replaced.
    pub(super) fn report(&self, number: u64) {
        self.0.set(REPORTED, number);
    }

    pub(super) fn reported(&self) -> Option<u64> {
        let (row, number) = self.0.get()?;
        (row == REPORTED).then_some(number)
    }
}
