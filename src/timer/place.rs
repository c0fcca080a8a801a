//! The place of a timer: in the queue of a clock, or nowhere.

use super::{
    TimerState,
    saving::sheet::{self, NotWritten},
};
use crate::{clock::ClockKey, queue::Key, seat::Seat};

/// The place of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Never armed, or cancelled for good.
    Nowhere,
    /// In the queue of a clock, under this key.
    Armed(ClockKey, Key),
    /// Cancelled, and about to be removed or replaced. Holds the number of the report.
    Reported(u64),
}

/// The seat of a component that arms a timer.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimerSeat(Seat);

/// The queue of the timers whose clock did not exist when they were inserted. They wait there for the
/// next swap. No clock has this key.
pub(crate) const NO_CLOCK: ClockKey = ClockKey::MAX;

/// The seat rows that mark [`Place::Reported`], and a place that is written down with a state. No clock
/// has these keys.
const REPORTED: ClockKey = ClockKey::MAX - 1;
const WRITTEN: ClockKey = ClockKey::MAX - 2;

impl TimerSeat {
    pub(super) fn place(&self) -> Place {
        match self.0.get() {
            None => Place::Nowhere,
            Some((REPORTED, number)) => Place::Reported(number),
            Some((WRITTEN, page)) => sheet::place(page),
            Some((clock, key)) => Place::Armed(clock, Key::from_bits(key)),
        }
    }

    /// Returns the clock and the key of a timer that is armed, or was armed until its last firing.
    pub(super) fn armed(&self) -> Option<(ClockKey, Key)> {
        match self.place() {
            Place::Armed(clock, key) => Some((clock, key)),
            Place::Nowhere | Place::Reported(_) => None,
        }
    }

    pub(super) fn move_to(&self, place: Place) {
        match place {
            Place::Nowhere => _ = self.0.take(),
            Place::Armed(clock, key) => self.0.set(clock, key.to_bits()),
            Place::Reported(number) => self.0.set(REPORTED, number),
        }
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
    #[cfg_attr(
        not(feature = "serialize"),
        allow(dead_code, reason = "only saving uses all of it")
    )]
    pub(super) fn written(&self) -> Option<Result<TimerState, NotWritten>> {
        match self.0.get() {
            Some((WRITTEN, page)) => Some(sheet::state(page)),
            _ => None,
        }
    }
}
