//! The collection that is filled during a frame and swapped at the start of the next run.

use alloc::vec::{Drain, Vec};
use core::mem;

/// Takes what is added or removed during a frame, and gives it out in one swap.
///
/// What is pushed after a swap waits for the next one, so a handler that adds can't loop in
/// place. Both buffers keep their memory.
#[derive(Debug)]
pub(crate) struct DeferredBuffer<T> {
    pending: Vec<T>,
    swapped: Vec<T>,
}

impl<T> DeferredBuffer<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.pending.push(item);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Hands out what has been pushed since the last swap, in order.
    pub(crate) fn swap(&mut self) -> Drain<'_, T> {
        mem::swap(&mut self.pending, &mut self.swapped);
        self.swapped.drain(..)
    }
}

impl<T> Default for DeferredBuffer<T> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            swapped: Vec::new(),
        }
    }
}
