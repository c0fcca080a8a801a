//! The batches that the other process has yet to confirm.

use alloc::collections::VecDeque;

/// The batches that were sent, and that the other process has yet to confirm.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// The number of frames that were sent with each batch and before, and the length of the batch.
    batches: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Flight {
    /// Returns `true` if there is room for another batch. It may be longer than the room: the other process
    /// confirms soon only what is a good part of the bound.
    pub(super) fn has_room(&self, bound: usize) -> bool {
        self.bytes == 0 || self.bytes < bound
    }

    pub(super) fn start(&mut self, sent: u64, bytes: usize) {
        self.batches.push_back((sent, bytes));
        self.bytes += bytes;
    }

    /// Notes that the other process has received this number of frames.
    pub(super) fn land(&mut self, received: u64) {
        while let Some((_, bytes)) = self.batches.pop_front_if(|(sent, _)| *sent <= received) {
            self.bytes -= bytes;
        }
    }
}
