//! What is near: the bucket whose time it is, and whatever is too close for the wheel.

use alloc::vec::Vec;

use super::{
    bucket::{Item, prefetch},
    heap::{Entry, Heap},
    slots::{Place, Slots},
};

/// The first of what is near.
#[derive(Clone, Copy)]
pub(super) struct First {
    pub(super) deadline: u64,
    pub(super) index: u32,
    pub(super) in_heap: bool,
}

/// A min-heap for what comes one by one, beside a sorted run for what comes by the bucket.
///
/// Sorting a bucket as a whole is cheaper than to push and pop each of its items. Both hold about
/// a frame's worth, and stay in the cache. An item of the run whose timer is cancelled or armed
/// anew is dead. Its slot shows it: the timer is at another time, in another place or not there.
pub(super) struct Near {
    pub(super) heap: Heap,
    /// Its first item that has not been popped is alive.
    run: Vec<Item>,
    /// How much of the run has been popped, and how much is in the cache.
    popped: usize,
    prefetched: usize,
    /// How many items of the run are dead.
    dead: usize,
    /// When the time of the run begins.
    start: u64,
}

/// So many slots are fetched at a time, for their cache misses to overlap.
const PREFETCH: usize = 16;

impl Near {
    pub(super) fn new() -> Self {
        Self {
            heap: Heap::new(),
            run: Vec::new(),
            popped: 0,
            prefetched: 0,
            dead: 0,
            start: 0,
        }
    }

    /// Whether nothing is left of the run.
    #[inline]
    pub(super) fn has_run_out(&self) -> bool {
        self.popped == self.run.len()
    }

    /// Takes the bucket whose time begins at `start`. The one before it has been popped to the
    /// end.
    pub(super) fn load<T>(
        &mut self,
        slots: &Slots<T>,
        start: u64,
        fill: impl FnOnce(&mut Vec<Item>),
    ) {
        debug_assert!(self.has_run_out(), "items left");
        self.start = start;
        self.popped = 0;
        self.prefetched = 0;
        fill(&mut self.run);
        self.run.sort_unstable();
        for equal in self.run.chunk_by_mut(|a, b| a.time() == b.time()) {
            if equal.len() > 1 {
                equal.sort_unstable_by_key(|item| slots.at(item.index()).sequence);
            }
        }
    }

    #[inline]
    pub(super) fn first<T>(&self, slots: &Slots<T>) -> Option<First> {
        let run = self.run.get(self.popped).map(|item| First {
            deadline: self.deadline_of(*item),
            index: item.index(),
            in_heap: false,
        });
        let Some(heap) = self.heap.first() else {
            return run;
        };
        if let Some(First {
            deadline, index, ..
        }) = run
            && (Entry { deadline, index }).is_before(heap, slots)
        {
            return run;
        }
        Some(First {
            deadline: heap.deadline,
            index: heap.index,
            in_heap: true,
        })
    }

    /// Goes on with the run behind its first item.
    #[inline]
    pub(super) fn pop_run<T>(&mut self, slots: &Slots<T>) -> usize {
        self.popped += 1;
        self.skip_dead(slots)
    }

    /// Takes note that an item of the run is dead.
    pub(super) fn note_dead<T>(&mut self, slots: &Slots<T>) -> usize {
        self.dead += 1;
        self.skip_dead(slots)
    }

    /// Fetches the slots of what comes next in the run, if it is time for that, which it returns.
    #[inline]
    pub(super) fn prefetch<T>(&mut self, slots: &Slots<T>) -> bool {
        if self.popped < self.prefetched || self.has_run_out() {
            return false;
        }
        let next = self.run[self.popped..].iter().take(PREFETCH);
        self.prefetched = self.popped + next.len();
        for item in next {
            prefetch(slots.at(item.index()).sequence);
        }
        true
    }

    /// Skips what is dead at the front of the run, and says how many. A dead item could be taken
    /// for the timer that has its slot now, and hide those behind it.
    #[inline]
    fn skip_dead<T>(&mut self, slots: &Slots<T>) -> usize {
        let mut skipped = 0;
        while self.dead > 0
            && let Some(&item) = self.run.get(self.popped)
            && !self.is_alive(slots, item)
        {
            self.dead -= 1;
            self.popped += 1;
            skipped += 1;
        }
        skipped
    }

    /// Nothing that is due in the time of the run enters a bucket any more, so an item's timer is
    /// still in the bucket that the run was, or the item is dead.
    fn is_alive<T>(&self, slots: &Slots<T>, item: Item) -> bool {
        let slot = slots.at(item.index());
        slot.deadline == self.deadline_of(item) && matches!(slot.place(), Place::Bucket(_))
    }

    #[inline]
    fn deadline_of(&self, item: Item) -> u64 {
        self.start + u64::from(item.time())
    }
}
