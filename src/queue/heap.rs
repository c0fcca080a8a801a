//! A min-heap of deadlines that can remove any timer, because each slot stores its position.

use alloc::vec::Vec;

use super::{
    shrink,
    slots::{Place, Slots, prefetch},
};

/// The deadline of a timer. The slots break ties between equal deadlines.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) deadline: u64,
    pub(super) index: u32,
}

impl Entry {
    #[inline]
    pub(super) fn is_before<T>(self, other: Self, slots: &Slots<T>) -> bool {
        self.deadline < other.deadline
            || self.deadline == other.deadline && self.is_older(other, slots)
    }

    #[inline(never)]
    fn is_older<T>(self, other: Self, slots: &Slots<T>) -> bool {
        slots.at(self.index).sequence < slots.at(other.index).sequence
    }
}

/// The number of children per entry.
///
/// Four entries fill a cache line of 64 bytes, and the heap is half as high as a binary heap.
const ARITY: usize = 4;

pub(super) struct Heap {
    entries: Vec<Entry>,
    /// The maximum length since the last [`look`](Self::look).
    peak: usize,
}

impl Heap {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            peak: 0,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    pub(super) fn push<T>(&mut self, slots: &mut Slots<T>, entry: Entry) {
        self.entries.push(entry);
        self.peak = self.peak.max(self.entries.len());
        self.sift_up(slots, self.entries.len() - 1, entry);
    }

    /// Returns the maximum length since the last [`look`](Self::look).
    pub(super) fn peak(&self) -> usize {
        self.peak
    }

    /// Gives back the memory that was not needed since the last look.
    pub(super) fn look(&mut self) {
        shrink(&mut self.entries, self.peak);
        self.peak = self.len();
    }

    /// Prefetches the slots of the first entry and of its children.
    #[inline]
    pub(super) fn prefetch<T>(&self, slots: &Slots<T>) {
        for entry in self.entries.iter().take(1 + ARITY) {
            prefetch(slots.at(entry.index).sequence);
        }
    }

    /// Replaces the first entry with `entry`.
    pub(super) fn replace_first<T>(&mut self, slots: &mut Slots<T>, entry: Entry) {
        self.sift_down(slots, 0, entry);
    }

    /// Removes the entry at `position`.
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, position: usize) {
        let last = self.entries.pop().expect("the timer is on the heap");
        if position == self.entries.len() {
            return;
        }
        if position > 0 && last.is_before(self.entries[(position - 1) / ARITY], slots) {
            self.sift_up(slots, position, last);
        } else {
            self.sift_down(slots, position, last);
        }
    }

    /// Puts `entry` at `position` and moves it up past all later entries.
    fn sift_up<T>(&mut self, slots: &mut Slots<T>, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if !entry.is_before(self.entries[parent], slots) {
                break;
            }
            self.put(slots, position, self.entries[parent]);
            position = parent;
        }
        self.put(slots, position, entry);
    }

    /// Puts `entry` at `position` and moves it down past all earlier entries.
    fn sift_down<T>(&mut self, slots: &mut Slots<T>, mut position: usize, entry: Entry) {
        while let Some((child, first)) = self.earliest_child(slots, position) {
            if !first.is_before(entry, slots) {
                break;
            }
            self.put(slots, position, first);
            position = child;
        }
        self.put(slots, position, entry);
    }

    /// Returns the earliest child of the entry at `position`, and its position.
    #[inline]
    fn earliest_child<T>(&self, slots: &Slots<T>, position: usize) -> Option<(usize, Entry)> {
        let child = position * ARITY + 1;
        let children = self.entries.get(child..)?;
        if let Some(children) = children.first_chunk::<ARITY>() {
            // The earliest child is unpredictable, so this path avoids branches on the comparison.
            let [a, b, c, d] = children.each_ref().map(|child| child.deadline);
            let (left, right) = (a.min(b), c.min(d));
            if a != b && c != d && left != right {
                let of_left = usize::from(b < a);
                let of_right = 2 + usize::from(d < c);
                let nth = if right < left { of_right } else { of_left };
                return Some((child + nth, children[nth % ARITY]));
            }
        }
        self.earliest_from(slots, child)
    }

    /// Returns the earliest of the siblings from position `child` on, and its position.
    #[inline(never)]
    fn earliest_from<T>(&self, slots: &Slots<T>, child: usize) -> Option<(usize, Entry)> {
        let siblings = self.entries.iter().copied().enumerate().skip(child);
        siblings.take(ARITY).reduce(|first, other| {
            if other.1.is_before(first.1, slots) {
                other
            } else {
                first
            }
        })
    }

    #[inline]
    fn put<T>(&mut self, slots: &mut Slots<T>, position: usize, entry: Entry) {
        self.entries[position] = entry;
        slots
            .at_mut(entry.index)
            .set_place(Place::Heap(position as u32));
    }
}
