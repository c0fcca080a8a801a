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
    /// Returns `true` if there is room for a batch of this length. A batch that is larger than the bound
    /// can fly alone.
    pub(super) fn has_room(&self, bytes: usize, bound: usize) -> bool {
        self.bytes == 0 || self.bytes + bytes <= bound
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
