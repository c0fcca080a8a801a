//! The collection that is filled during a frame and swapped at the start of the next run.

use alloc::collections::VecDeque;
use core::mem;

/// Takes what is added or removed during a frame, and gives it out, in order, after one swap.
///
/// What is pushed after the swap waits for the next one, so handlers that run while the swapped
/// items are worked through can add, and can't loop in place. Both buffers keep their memory.
#[derive(Debug)]
pub(crate) struct DeferredBuffer<T> {
    pending: VecDeque<T>,
    swapped: VecDeque<T>,
}

impl<T> DeferredBuffer<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.pending.push_back(item);
    }

    /// Pushes all of these, and leaves room for others.
    pub(crate) fn append(&mut self, items: &mut VecDeque<T>) {
        if self.pending.is_empty() {
            mem::swap(&mut self.pending, items);
        } else {
            self.pending.append(items);
        }
    }

    /// What waits for the next swap, or is left of the last one.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &T> {
        self.swapped.iter().chain(&self.pending)
    }

    /// Makes what has been pushed available. What was left of the swap before stays first.
    pub(crate) fn swap(&mut self) {
        if self.swapped.is_empty() {
            mem::swap(&mut self.pending, &mut self.swapped);
        } else {
            self.swapped.append(&mut self.pending);
        }
    }

    /// Takes the next of what has been swapped.
    pub(crate) fn next(&mut self) -> Option<T> {
        self.swapped.pop_front()
    }

    /// Puts back what has been swapped: it comes first with the next swap.
    pub(crate) fn put_back(&mut self, item: T) {
        self.swapped.push_back(item);
    }

    /// How much is left of what has been swapped.
    pub(crate) fn len(&self) -> usize {
        self.swapped.len()
    }

    /// Takes all that is left of what has been swapped.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.swapped.drain(..)
    }

    /// Whether nothing is left of what has been swapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.swapped.is_empty()
    }
}

impl<T> Default for DeferredBuffer<T> {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            swapped: VecDeque::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_after_a_swap_waits_for_the_next() {
        let mut buffer = DeferredBuffer::default();
        buffer.push(1);
        buffer.push(2);
        assert_eq!(buffer.next(), None, "nothing has been swapped yet");
        buffer.swap();
        assert_eq!(buffer.next(), Some(1));
        buffer.push(3);
        assert_eq!(buffer.next(), Some(2));
        assert_eq!(buffer.next(), None, "should not loop in place");
        buffer.swap();
        assert_eq!(buffer.next(), Some(3));
    }

    #[test]
    fn what_is_left_over_comes_first() {
        let mut buffer = DeferredBuffer::default();
        buffer.push(1);
        buffer.swap();
        buffer.push(2);
        buffer.swap();
        assert!(buffer.drain().eq([1, 2]));
    }
}
