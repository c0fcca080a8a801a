//! The cancellations since the last run.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::message::Messages;

use super::{
    TimerCancelled,
    suspects::{RearmWatch, Rearmed},
};

/// Cancellations in the order in which they happened, to be written as messages in the next run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellations {
    pending: Vec<TimerCancelled>,
    /// The cancellations written in the last run, which observers may not have seen yet.
    written: Vec<TimerCancelled>,
    /// The number of the first pending cancellation.
    first_pending: u64,
    pub(super) rearmed: RearmWatch,
}

impl Cancellations {
    /// Adds a cancellation, and returns its number.
    pub(super) fn push(&mut self, cancelled: TimerCancelled) -> u64 {
        self.pending.push(cancelled);
        self.first_pending + self.pending.len() as u64 - 1
    }

    /// Returns the cancellation with this number, unless it was written before the last run.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut TimerCancelled> {
        let written = self.written.len() as u64;
        let index = (number + written).checked_sub(self.first_pending)?;
        match index.checked_sub(written) {
            Some(index) => self.pending.get_mut(usize::try_from(index).ok()?),
            None => self.written.get_mut(usize::try_from(index).ok()?),
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TimerCancelled> {
        self.written.iter_mut().chain(&mut self.pending)
    }

    /// Returns the number of cancellations that have not been written.
    pub(super) fn len(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Writes all cancellations in this frame. Returns a timer that was re-armed in many frames in a row,
    /// if there is one.
    pub(super) fn write(
        &mut self,
        messages: &mut Messages<TimerCancelled>,
        frame: u64,
    ) -> Option<Rearmed> {
        self.first_pending += self.len();
        self.written.clear();
        mem::swap(&mut self.pending, &mut self.written);
        messages.write_batch(self.written.iter().copied());
        self.rearmed.note(frame, &self.written);
        self.rearmed.suspect(frame)
    }
}
