//! How much memory a buffer keeps while it is empty.

use alloc::collections::VecDeque;

/// The recent maximum of the length of a buffer. It decays to half in some fifty calls of `note`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_the_recent_maximum() {
        let (mut buffer, mut peak) = (VecDeque::new(), RecentPeak::default());
        let mut frame = |items: usize| {
            buffer.extend(0..items);
            peak.note(buffer.len());
            buffer.clear();
            peak.trim(&mut buffer);
            buffer.capacity()
        };
        // A regular burst keeps its memory.
        let full = frame(10_000);
        for _ in 0..20 {
            assert_eq!(frame(10), full);
        }
        assert_eq!(frame(10_000), full);
        for _ in 0..1000 {
            frame(10);
        }
        let capacity = frame(10);
        assert!(capacity < 200, "{capacity}");
    }
}
