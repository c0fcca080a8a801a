//! A timer in a bucket, in eight bytes.

/// A timer in a bucket.
///
/// The upper half holds the lower half of its deadline, and the lower half holds the index of its
/// slot. A bucket of the ring is at most 2^32 wide, so all its deadlines have the same upper half.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item(u64);

impl Item {
    #[inline]
    pub(super) fn new(deadline: u64, index: u32) -> Self {
        Self(deadline << 32 | u64::from(index))
    }

    /// Returns a number that grows with the deadline and the sequence inside a bucket of the ring.
    ///
    /// It has room for four billion sequences. Later ones are equal.
    #[inline]
    pub(super) fn rank(self, sequence: u64) -> u64 {
        let upper = self.0 & !u64::from(u32::MAX);
        upper | sequence.min(u32::MAX.into())
    }

    /// Returns the lower half of the deadline.
    #[inline]
    pub(super) fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}
