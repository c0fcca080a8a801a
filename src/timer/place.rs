//! The place of a timer: in the queue of a clock, or nowhere.

use super::{
    TimerState,
    saving::sheet::{self, NotWritten},
};
use crate::{clock::ClockKey, queue::Key, seat::Seat};

/// The place of a timer: the clock in whose queue it is, and its key there.
pub(crate) type Place = (ClockKey, Key);

/// The seat of a component that arms a timer.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimerSeat(Seat);

/// The queue of the timers whose clock did not exist when they were inserted. They wait there for the
/// next swap. No clock has this key.
pub(crate) const NO_CLOCK: ClockKey = ClockKey::MAX;

/// The seat rows that mark a cancelled timer, and a place that is written down with a state. No clock has
/// these keys.
const REPORTED: ClockKey = ClockKey::MAX - 1;
const WRITTEN: ClockKey = ClockKey::MAX - 2;

impl TimerSeat {
    /// Returns the place of a timer that is armed, or was armed until its last firing.
    pub(super) fn place(&self) -> Option<Place> {
        match self.0.get()? {
            (REPORTED, _) => None,
            (WRITTEN, page) => sheet::place(page),
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

    /// Notes where the state of the timer has been written.
    pub(super) fn write(&self, page: u64) {
        self.0.set(WRITTEN, page);
    }

    /// Forgets the written state, because the timer changes.
    pub(super) fn unwrite(&self) {
        if let Some((WRITTEN, page)) = self.0.get() {
            self.move_to(sheet::place(page));
        }
    }

    /// Notes that this is the seat of a copy whose state is missing.
    #[cfg(feature = "bevy_reflect")]
    pub(super) fn leave_unwritten(&self) {
        self.0.set(WRITTEN, sheet::NO_PAGE);
    }

    /// Returns the state that was written, if it still holds, or `None` if no state was written.
    pub(super) fn written(&self) -> Option<Result<TimerState, NotWritten>> {
        match self.0.get() {
            Some((WRITTEN, page)) => Some(sheet::state(page)),
            _ => None,
        }
    }
}
