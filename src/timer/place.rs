//! The place of a timer: pending, in the queue of a clock, or nowhere.

use crate::{clock::ClockKey, queue::Key};

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
