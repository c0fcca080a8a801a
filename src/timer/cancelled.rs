//! The cancellations since the last run.

use alloc::vec::Vec;

use bevy_ecs::message::Messages;

use super::TimerCancelled;

/// Cancellations in the order in which they happened, to be written as messages in the next run.
#[derive(Debug, Default)]
pub(crate) struct Cancellations {
    pending: Vec<TimerCancelled>,
    /// The number of cancellations written so far.
    written: u64,
}

impl Cancellations {
    /// Adds a cancellation, and returns its number.
    pub(super) fn push(&mut self, cancelled: TimerCancelled) -> u64 {
        self.pending.push(cancelled);
        self.written + self.pending.len() as u64 - 1
    }

    /// Returns the cancellation with this number, unless it is written.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut TimerCancelled> {
        let index = number.checked_sub(self.written)?;
        self.pending.get_mut(usize::try_from(index).ok()?)
    }

    /// Writes all cancellations, and returns their number.
    pub(super) fn write(&mut self, messages: &mut Messages<TimerCancelled>) -> u64 {
        let cancelled = self.pending.len() as u64;
        if cancelled > 0 {
            messages.write_batch(self.pending.drain(..));
            self.written += cancelled;
        }
        cancelled
    }
}
