//! A collection that is filled during a frame and swapped at the start of the next run.

use alloc::collections::VecDeque;
use core::mem;

/// Collects items during a frame, and releases them, in order, at the next swap.
///
/// An item that is pushed after the swap waits for the next swap. Handlers can therefore push while
/// the swapped items are processed, and never loop forever. Both buffers keep their memory while
/// they need it.
#[derive(Clone, Debug)]
pub(crate) struct DoubleBuffer<T> {
    pending: VecDeque<T>,
    swapped: VecDeque<T>,
    peak: RecentPeak,
}

/// The recent maximum of the length of a buffer. It decays to half in some fifty swaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentPeak(usize);

impl RecentPeak {
    /// Notes the length of a buffer.
    pub(crate) fn note(&mut self, len: usize) {
        self.0 = len.max(self.0 - self.0.div_ceil(64));
    }

    /// Returns `true` if the buffer was not used for a while.
    pub(crate) fn is_over(&self) -> bool {
        self.0 == 0
    }

    /// Returns `true` if a buffer with this capacity is as large as was needed recently.
    pub(crate) fn is_met_by(&self, capacity: usize) -> bool {
        self.0 <= capacity
    }

    /// Returns the capacity to keep in an empty buffer: less than it has if that is much larger than the
    /// recent maximum.
    pub(crate) fn enough(&self, capacity: usize) -> usize {
        let enough = 4 * self.0.max(16);
        if capacity / 2 > enough {
            enough
        } else {
            capacity
        }
    }

    /// Gives back most of the memory of a buffer that is much larger than the recent maximum.
    pub(crate) fn trim<T>(&self, buffer: &mut VecDeque<T>) {
        buffer.shrink_to(self.enough(buffer.capacity()));
    }
}

impl<T> DoubleBuffer<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.pending.push_back(item);
    }

    /// Removes the most recently pushed item that matches, if any.
    pub(crate) fn take_last(&mut self, matches: impl Fn(&T) -> bool) {
        if let Some(index) = self.pending.iter().rposition(matches) {
            self.pending.remove(index);
        }
    }

    /// Iterates over all items, released or not.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &T> {
        self.swapped.iter().chain(&self.pending)
    }

    /// Iterates over all items, released or not.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.swapped.iter_mut().chain(&mut self.pending)
    }

    /// Releases the pushed items, after any items left over from the previous swap.
    pub(crate) fn swap(&mut self) {
        self.peak.note(self.pending.len());
        if self.swapped.is_empty() {
            self.peak.trim(&mut self.swapped);
            mem::swap(&mut self.pending, &mut self.swapped);
        } else {
            self.swapped.append(&mut self.pending);
        }
    }

    /// Takes the next released item.
    pub(crate) fn next(&mut self) -> Option<T> {
        self.swapped.pop_front()
    }
}

impl<T> Default for DoubleBuffer<T> {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            swapped: VecDeque::new(),
            peak: RecentPeak::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_pushed_after_a_swap_wait_for_the_next() {
        let mut buffer = DoubleBuffer::default();
        buffer.push(1);
        buffer.push(2);
        assert_eq!(buffer.next(), None, "not swapped yet");
        buffer.swap();
        assert_eq!(buffer.next(), Some(1));
        buffer.push(3);
        assert_eq!(buffer.next(), Some(2));
        assert_eq!(buffer.next(), None, "should not loop in place");
        buffer.swap();
        assert_eq!(buffer.next(), Some(3));
    }

    #[test]
    fn memory_follows_the_recent_maximum() {
        let mut buffer = DoubleBuffer::default();
        let mut frame = |items: usize| {
            for item in 0..items {
                buffer.push(item);
            }
            buffer.swap();
            while buffer.next().is_some() {}
            (buffer.pending.capacity(), buffer.swapped.capacity())
        };
        // A regular burst keeps its memory.
        let [before, after] = [frame(10_000), frame(10_000)];
        assert_eq!(before.1, after.0);
        for _ in 0..20 {
            frame(10);
        }
        assert_eq!(frame(10_000).1.max(frame(0).1), after.0.max(after.1));
        for _ in 0..1000 {
            frame(10);
        }
        let (pending, swapped) = frame(10);
        assert!(pending.max(swapped) < 200, "{pending} and {swapped}");
    }

    #[test]
    fn leftover_items_come_first() {
        let mut buffer = DoubleBuffer::default();
        buffer.push(1);
        buffer.swap();
        buffer.push(2);
        buffer.swap();
        assert_eq!([buffer.next(), buffer.next()], [Some(1), Some(2)]);
    }
}
