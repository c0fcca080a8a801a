//! Where an update component sits.

use crate::{clock::Cadence, seat::Seat};

/// The place of an update component: the cadence of its clock, and its number.
#[derive(Clone, Debug, Default)]
pub(super) struct UpdateSeat(Seat);

impl UpdateSeat {
    /// Returns `true` if the component has no place.
    pub(super) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    pub(super) fn set(&self, cadence: Cadence, number: u64) {
        self.0.set(cadence as u32, number);
    }

    /// Empties the seat, and returns what it held.
    pub(super) fn take(&self) -> Option<(Cadence, u64)> {
        const FIXED_STEP: u32 = Cadence::FixedStep as u32;
        let (row, number) = self.0.take()?;
        let cadence = match row {
            FIXED_STEP => Cadence::FixedStep,
            _ => Cadence::Frame,
        };
        Some((cadence, number))
    }
}
