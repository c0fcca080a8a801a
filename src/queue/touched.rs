//! A count of the work of a queue.

/// Counts entries in the tests of this crate. Otherwise it takes no space and no time.
#[derive(Default)]
pub(super) struct Touched {
    #[cfg(test)]
    count: u64,
}

impl Touched {
    #[inline(always)]
    pub(super) fn add(&mut self, _entries: u64) {
        #[cfg(test)]
        {
            self.count += _entries;
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
