//! The near timers: the bucket whose time has come, and timers with deadlines before the wheel.

use alloc::vec::Vec;

use super::{
    NEVER,
    bucket::prefetch,
    heap::{Entry, Heap},
    item::Item,
    slots::{Place, Slots},
    sort::sort,
};

/// The earliest near timer, or a deadline of [`NEVER`] if there is none.
#[derive(Clone, Copy)]
pub(crate) struct First {
    pub(super) deadline: u64,
    pub(super) index: u32,
    pub(super) in_heap: bool,
}

/// A min-heap for timers that arrive one by one, and a sorted run for timers that arrive as a
/// bucket.
///
/// Sorting a whole bucket is cheaper than pushing and popping each of its items. The heap and the
/// run hold about one frame's worth of timers each, and stay in the cache.
///
/// An item of the run is stale once its timer is cancelled or re-armed. Its slot shows this: the
/// slot is vacant, or it has another deadline or another place.
pub(super) struct Near {
    pub(super) heap: Heap,
    /// The first item that has not been popped is never stale.
    run: Vec<Item>,
    /// Kept for its memory: items while they are sorted.
    spare: Vec<Item>,
    /// The number of items popped, and the number of items whose slots have been prefetched.
    popped: usize,
    prefetched: usize,
    /// The number of stale items in the run.
    stale: usize,
    /// The upper half of the deadlines in the run. The lower half is zero.
    upper_half: u64,
}

/// The number of slots prefetched at a time, so that their cache misses overlap.
const PREFETCH_BATCH: usize = 16;

impl Near {
    pub(super) fn new() -> Self {
        Self {
            heap: Heap::new(),
            run: Vec::new(),
            spare: Vec::new(),
            popped: 0,
            prefetched: 0,
            stale: 0,
            upper_half: 0,
        }
    }

    /// Returns `true` if all items of the run have been popped.
    #[inline]
    pub(super) fn is_run_exhausted(&self) -> bool {
        self.popped == self.run.len()
    }

    /// Replaces the run with a bucket that starts at `start`. The previous run must be exhausted.
    ///
    /// Sorts the bucket if it has `unsorted_bits`, which is the exponent of its width.
    pub(super) fn load_run<T>(
        &mut self,
        slots: &Slots<T>,
        start: u64,
        unsorted_bits: Option<u32>,
        fill: impl FnOnce(&mut Vec<Item>),
    ) {
        debug_assert!(
            self.is_run_exhausted(),
            "{} items of the run have not been popped",
            self.run.len() - self.popped
        );
        self.upper_half = start & !u64::from(u32::MAX);
        self.popped = 0;
        self.prefetched = 0;
        fill(&mut self.run);
        if let Some(width_bits) = unsorted_bits {
            let sequence = |item: Item| slots.at(item.index()).sequence;
            sort(&mut self.run, &mut self.spare, width_bits, sequence);
        }
    }

    #[inline]
    pub(super) fn first<T>(&self, slots: &Slots<T>) -> First {
        let (deadline, index) = match self.run.get(self.popped) {
            Some(item) => (self.deadline_of(*item), item.index()),
            None => (NEVER, 0),
        };
        match self.heap.first() {
            Some(heap) if !(Entry { deadline, index }).is_before(heap, slots) => First {
                deadline: heap.deadline,
                index: heap.index,
                in_heap: true,
            },
            _ => First {
                deadline,
                index,
                in_heap: false,
            },
        }
    }

    /// Returns the deadline of the earliest near timer.
    pub(super) fn first_deadline<T>(&self, slots: &Slots<T>) -> Option<u64> {
        let deadline = self.first(slots).deadline;
        (deadline != NEVER).then_some(deadline)
    }

    /// Pops the first item of the run, and returns the number of stale items skipped after it.
    #[inline]
    pub(super) fn advance_run<T>(&mut self, slots: &Slots<T>) -> usize {
        self.popped += 1;
        match self.stale {
            0 => 0,
            _ => self.skip_stale(slots),
        }
    }

    /// Counts one more item of the run as stale, and returns the number of stale items skipped.
    pub(super) fn count_stale<T>(&mut self, slots: &Slots<T>) -> usize {
        self.stale += 1;
        self.skip_stale(slots)
    }

    /// Returns `true` if the last batch of prefetched slots is used up.
    #[inline]
    pub(super) fn is_prefetch_due(&self) -> bool {
        self.popped >= self.prefetched && !self.is_run_exhausted()
    }

    /// Prefetches the slots of the next items of the run.
    pub(super) fn prefetch<T>(&mut self, slots: &Slots<T>) {
        let next = self.run[self.popped..].iter().take(PREFETCH_BATCH);
        self.prefetched = self.popped + next.len();
        for item in next {
            prefetch(slots.at(item.index()).sequence);
        }
    }

    /// Skips stale items at the front of the run and returns their number.
    ///
    /// If one stayed there, it could be mistaken for the timer that uses its slot now, and hide the
    /// items behind it.
    #[inline(never)]
    fn skip_stale<T>(&mut self, slots: &Slots<T>) -> usize {
        let mut skipped = 0;
        while self.stale > 0
            && let Some(&item) = self.run.get(self.popped)
            && !self.is_current(slots, item)
        {
            self.stale -= 1;
            self.popped += 1;
            skipped += 1;
        }
        skipped
    }

    /// Returns `true` if `item` is not stale.
    ///
    /// A timer armed for a deadline within the run goes to the heap, never to a bucket. So a slot
    /// with the item's deadline and a place in a bucket still belongs to the item.
    fn is_current<T>(&self, slots: &Slots<T>, item: Item) -> bool {
        let slot = slots.at(item.index());
        slot.deadline == self.deadline_of(item) && matches!(slot.place(), Place::Bucket(_))
    }

    #[inline]
    fn deadline_of(&self, item: Item) -> u64 {
        self.upper_half | u64::from(item.time())
    }
}
