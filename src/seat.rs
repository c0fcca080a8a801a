//! Where a component sits in the collection that runs it.

use bevy_platform::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The place of a component in the collection that runs it: a row, and a number in that row.
///
/// The three components are immutable, so their hooks see them through a shared reference. That is
/// why a seat consists of atomics. Only hooks and systems with exclusive access to the world write
/// it, so the three parts never disagree.
#[derive(Debug)]
pub(crate) struct Seat {
    row: AtomicU32,
    number_low: AtomicU32,
    number_high: AtomicU32,
}

/// The number in an empty seat. No roster and no timer queue hands it out.
const EMPTY: u64 = u64::MAX;

impl Seat {
    /// Returns the row and the number, or `None` if the seat is empty.
    pub(crate) fn get(&self) -> Option<(u32, u64)> {
        let high = u64::from(self.number_high.load(Relaxed));
        let number = high << 32 | u64::from(self.number_low.load(Relaxed));
        (number != EMPTY).then(|| (self.row.load(Relaxed), number))
    }

    /// Stores a row and a number.
    pub(crate) fn set(&self, row: u32, number: u64) {
        debug_assert!(number != EMPTY, "{number} stands for an empty seat");
        self.row.store(row, Relaxed);
        self.store_number(number);
    }

    /// Empties the seat, and returns what it held.
    pub(crate) fn take(&self) -> Option<(u32, u64)> {
        let held = self.get();
        self.store_number(EMPTY);
        held
    }

    fn store_number(&self, number: u64) {
        self.number_low.store(number as u32, Relaxed);
        self.number_high.store((number >> 32) as u32, Relaxed);
    }
}

impl Default for Seat {
    fn default() -> Self {
        let half = EMPTY as u32;
        Self {
            row: AtomicU32::new(0),
            number_low: AtomicU32::new(half),
            number_high: AtomicU32::new(half),
        }
    }
}

/// A clone of a component has not been inserted yet, so its seat is empty.
impl Clone for Seat {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_holds_what_was_set_until_it_is_taken() {
        let seat = Seat::default();
        assert_eq!(seat.get(), None);
        for number in [0, 7, 1 << 32, EMPTY - 1] {
            seat.set(3, number);
            assert_eq!(seat.get(), Some((3, number)));
            assert_eq!(seat.clone().get(), None, "a clone sits nowhere");
            assert_eq!(seat.take(), Some((3, number)));
            assert_eq!(seat.take(), None);
        }
        assert_eq!(size_of::<Seat>(), 12);
    }
}
