//! What is near: the bucket whose time it is, and whatever is too close for the wheel.

use alloc::{collections::BinaryHeap, vec::Vec};
use core::{cmp::Reverse, hint::black_box};

use super::{
    bucket::Item,
    slots::{Place, Slots},
};

/// A timer's deadline, as it was when it was pushed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) deadline: u64,
    pub(super) sequence: u64,
    pub(super) index: u32,
    /// Which arming of the timer the entry stands for; if that is past, the entry is dead.
    pub(super) arming: u32,
}

/// The first of what is near.
#[derive(Clone, Copy)]
pub(super) struct First {
    pub(super) deadline: u64,
    pub(super) index: u32,
    in_heap: bool,
}

/// A min-heap for what comes one by one, beside a sorted run for what comes by the bucket.
///
/// Sorting a bucket as a whole is cheaper than to push and pop each of its items. Both hold about
/// a frame's worth, and stay in the cache. An item of the run is found dead by its slot, which
/// says that the timer is in the wheel, at another time or not at all.
pub(super) struct Near {
    heap: BinaryHeap<Reverse<Entry>>,
    run: Vec<Item>,
    /// How much of the run has been popped, and how much is in the cache.
    popped: usize,
    warmed: usize,
    /// When the time of the run begins.
    start: u64,
}

/// So many slots are fetched at a time, for their cache misses to overlap.
const WARM: usize = 16;

impl Near {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            run: Vec::new(),
            popped: 0,
            warmed: 0,
            start: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heap.len() + self.run.len() - self.popped
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }

    /// Takes the bucket whose time begins at `start`. The one before it has been popped to the
    /// end.
    pub(super) fn load<T>(
        &mut self,
        slots: &Slots<T>,
        start: u64,
        fill: impl FnOnce(&mut Vec<Item>),
    ) {
        debug_assert_eq!(self.popped, self.run.len(), "items left");
        self.start = start;
        self.popped = 0;
        self.warmed = 0;
        self.run.clear();
        fill(&mut self.run);
        self.run.sort_unstable();
        for equal in self.run.chunk_by_mut(|a, b| a.time() == b.time()) {
            if equal.len() > 1 {
                equal.sort_unstable_by_key(|item| slots.at(item.index()).sequence);
            }
        }
    }

    pub(super) fn first<T>(&self, slots: &Slots<T>) -> Option<First> {
        let run = self.run.get(self.popped).map(|item| First {
            deadline: self.start + u64::from(item.time()),
            index: item.index(),
            in_heap: false,
        });
        let Some(&Reverse(heap)) = self.heap.peek() else {
            return run;
        };
        let heap_is_first = run.is_none_or(|run| {
            heap.deadline < run.deadline
                || heap.deadline == run.deadline && heap.sequence < slots.at(run.index).sequence
        });
        if !heap_is_first {
            return run;
        }
        Some(First {
            deadline: heap.deadline,
            index: heap.index,
            in_heap: true,
        })
    }

    #[inline]
    pub(super) fn pop(&mut self, first: &First) {
        if first.in_heap {
            self.heap.pop();
        } else {
            self.popped += 1;
        }
    }

    /// Pops the first and pushes another, in one go where both are in the heap.
    #[inline]
    pub(super) fn replace(&mut self, first: &First, entry: Entry) {
        if first.in_heap
            && let Some(mut top) = self.heap.peek_mut()
        {
            *top = Reverse(entry);
            return;
        }
        self.pop(first);
        self.push(entry);
    }

    /// Fetches the slots of what comes next in the run.
    pub(super) fn warm<T>(&mut self, slots: &Slots<T>) {
        if self.popped < self.warmed || self.popped == self.run.len() {
            return;
        }
        let next = self.run[self.popped..].iter().take(WARM);
        self.warmed = self.popped + next.len();
        for item in next {
            black_box(slots.touch(item.index()));
        }
    }

    /// Drops what is dead off the front of both, and says how many. A dead item could be taken
    /// for the timer that has its slot now, and hide those behind it.
    pub(super) fn drop_dead<T>(&mut self, slots: &Slots<T>) -> usize {
        let before = self.len();
        while let Some(Reverse(entry)) = self.heap.peek()
            && !is_entry_alive(slots, entry)
        {
            self.heap.pop();
        }
        while let Some(&item) = self.run.get(self.popped)
            && !is_item_alive(slots, self.start, item)
        {
            self.popped += 1;
        }
        before - self.len()
    }

    /// Drops all that is dead.
    pub(super) fn bury_dead<T>(&mut self, slots: &Slots<T>) {
        self.heap
            .retain(|Reverse(entry)| is_entry_alive(slots, entry));
        self.run.drain(..self.popped);
        self.popped = 0;
        self.warmed = 0;
        let start = self.start;
        self.run.retain(|&item| is_item_alive(slots, start, item));
    }
}

fn is_entry_alive<T>(slots: &Slots<T>, entry: &Entry) -> bool {
    let slot = slots.at(entry.index);
    slot.place == Place::Near
        && slot.sequence == entry.sequence
        && slot.arming == entry.arming
        && slot.deadline == entry.deadline
}

fn is_item_alive<T>(slots: &Slots<T>, start: u64, item: Item) -> bool {
    let slot = slots.at(item.index());
    slot.place == Place::Wheel(0) && slot.deadline == start + u64::from(item.time())
}
