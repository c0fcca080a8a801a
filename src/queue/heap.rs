//! A min-heap of deadlines in which every timer knows its place, so that any can be taken out.

use alloc::vec::Vec;

use super::slots::{Place, Slots};

/// A timer's deadline. Which of two equal ones is first, their slots say.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) deadline: u64,
    pub(super) index: u32,
}

impl Entry {
    #[inline]
    pub(super) fn is_before<T>(self, other: Self, slots: &Slots<T>) -> bool {
        self.deadline < other.deadline
            || self.deadline == other.deadline
                && slots.at(self.index).sequence < slots.at(other.index).sequence
    }
}

/// How many children an entry has. Four entries are 64 bytes, and the heap is half as high as with
/// two.
const CHILDREN: usize = 4;

pub(super) struct Heap {
    entries: Vec<Entry>,
}

impl Heap {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        self.entries.first().copied()
    }

    pub(super) fn push<T>(&mut self, slots: &mut Slots<T>, entry: Entry) {
        self.entries.push(entry);
        self.rise(slots, self.entries.len() - 1, entry);
    }

    /// Puts `entry` where the first was.
    pub(super) fn replace_first<T>(&mut self, slots: &mut Slots<T>, entry: Entry) {
        self.sink(slots, 0, entry);
    }

    /// Takes out what is at `position`.
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, position: usize) {
        let last = self.entries.pop().expect("the timer is on the heap");
        if position == self.entries.len() {
            return;
        }
        if position > 0 && last.is_before(self.entries[(position - 1) / CHILDREN], slots) {
            self.rise(slots, position, last);
        } else {
            self.sink(slots, position, last);
        }
    }

    /// Puts `entry` at `position`, or above it if it is before what is there.
    fn rise<T>(&mut self, slots: &mut Slots<T>, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if !entry.is_before(self.entries[parent], slots) {
                break;
            }
            self.put(slots, position, self.entries[parent]);
            position = parent;
        }
        self.put(slots, position, entry);
    }

    /// Puts `entry` at `position`, or below it if it is after what is there.
    fn sink<T>(&mut self, slots: &mut Slots<T>, mut position: usize, entry: Entry) {
        while let Some(child) = self.first_child(slots, position) {
            let first = self.entries[child];
            if !first.is_before(entry, slots) {
                break;
            }
            self.put(slots, position, first);
            position = child;
        }
        self.put(slots, position, entry);
    }

    /// The position of the first of an entry's children.
    #[inline]
    fn first_child<T>(&self, slots: &Slots<T>, position: usize) -> Option<usize> {
        let child = position * CHILDREN + 1;
        let children = self.entries.get(child..)?;
        if let Some(children) = children.first_chunk::<CHILDREN>() {
            // Which child is first can't be foretold, so there must be no branch to mispredict.
            let [a, b, c, d] = children.each_ref().map(|child| child.deadline);
            let (left, right) = (a.min(b), c.min(d));
            if a != b && c != d && left != right {
                let of_left = usize::from(b < a);
                let of_right = 2 + usize::from(d < c);
                return Some(child + if right < left { of_right } else { of_left });
            }
        }
        (child..self.entries.len().min(child + CHILDREN)).reduce(|first, other| {
            if self.entries[other].is_before(self.entries[first], slots) {
                other
            } else {
                first
            }
        })
    }

    #[inline]
    fn put<T>(&mut self, slots: &mut Slots<T>, position: usize, entry: Entry) {
        self.entries[position] = entry;
        slots.set_place(entry.index, Place::Heap(position as u32));
    }
}
