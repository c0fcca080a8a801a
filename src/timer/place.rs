//! The components that arm a timer, and the place of that timer: pending, in the queue of a clock,
//! or nowhere.

use bevy_ecs::prelude::*;

use super::{Kind, random_interval::RandomInterval};
use crate::{
    clock::{ClockId, ClockKey, Reading},
    queue::Key,
    seat::Seat,
};

/// A component that arms a timer when it is inserted.
pub(crate) trait Arms: Component {
    const KIND: Kind;
    /// The component in an error message.
    const NAME: &'static str;

    fn seat(&self) -> &TimerSeat;

    /// Returns the clock that the component names.
    fn clock(&self) -> Option<ClockId>;

    /// Returns `true` if a random delay is added to the delay.
    fn has_jitter(&self) -> bool;

    /// Returns the random intervals of the timer, if any.
    fn intervals(&self, seed: impl FnOnce() -> u64) -> Option<RandomInterval> {
        _ = seed;
        None
    }

    /// Starts the delay at this reading of the clock, and returns the deadline.
    fn start(&self, reading: Reading, random: u64) -> u64;
}

/// The seat of a component that arms a timer.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimerSeat(Seat);

/// The place of a timer.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// Never armed, or cancelled for good.
    Nowhere,
    /// Inserted since the last swap, at this index.
    Pending(usize),
    /// Armed on a clock, under a key in that clock's queue.
    Armed(ClockKey, Key),
    /// Cancelled, and about to be removed or replaced. Holds the number of the report.
    Reported(u64),
}

/// The seat rows that mark [`Place::Pending`] and [`Place::Reported`]. No clock has these keys.
const PENDING: ClockKey = ClockKey::MAX - 1;
const REPORTED: ClockKey = ClockKey::MAX;

impl TimerSeat {
    pub(super) fn place(&self) -> Place {
        match self.0.get() {
            None => Place::Nowhere,
            Some((PENDING, index)) => Place::Pending(index as usize),
            Some((REPORTED, number)) => Place::Reported(number),
            Some((clock, key)) => Place::Armed(clock, Key::from_bits(key)),
        }
    }

    /// Returns the clock and the key of a timer that is armed, or was armed until its last firing.
    pub(super) fn armed(&self) -> Option<(ClockKey, Key)> {
        match self.place() {
            Place::Armed(clock, key) => Some((clock, key)),
            Place::Nowhere | Place::Pending(_) | Place::Reported(_) => None,
        }
    }

    pub(super) fn move_to(&self, place: Place) {
        match place {
            Place::Nowhere => _ = self.0.take(),
            Place::Pending(index) => self.0.set(PENDING, index as u64),
            Place::Armed(clock, key) => self.0.set(clock, key.to_bits()),
            Place::Reported(number) => self.0.set(REPORTED, number),
        }
    }
}
