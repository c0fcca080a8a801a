//! A slab of timers in pages, addressed by index, with generations that detect stale keys.

use alloc::{boxed::Box, vec::Vec};
use core::{
    hint::black_box,
    iter, mem,
    ops::{Index, IndexMut},
};

use super::NEVER;

/// A key that identifies one timer of one [`TimerQueue`](super::TimerQueue).
///
/// The queue reuses slots but never keys: the key of a removed timer is invalid forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    pub(super) fn index(self) -> u32 {
        self.index
    }

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// Where in the queue a timer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The timer is idle.
    Idle,
    /// The timer is at this position of the heap.
    Heap(u32),
    /// The timer is at this address in a bucket of the wheel. Once its bucket is the sorted list of the
    /// near timers, the address is meaningless.
    Bucket(u32),
}

impl Place {
    const IDLE: u32 = u32::MAX;
    const HEAP: u32 = 1 << 31;

    /// Returns the place in four bytes.
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::Idle => Self::IDLE,
            Self::Heap(position) => Self::HEAP | position,
            Self::Bucket(address) => address,
        }
    }

    #[inline]
    fn unpack(packed: u32) -> Self {
        match packed {
            Self::IDLE => Self::Idle,
            position if position >= Self::HEAP => Self::Heap(position - Self::HEAP),
            address => Self::Bucket(address),
        }
    }
}

/// A timer, or a vacant slot. A timer of this crate fills one cache line.
#[repr(align(64))]
pub(super) struct Slot<T> {
    pub(super) sequence: u64,
    /// The deadline the timer waits for, or will wait for once it is released.
    pub(super) deadline: u64,
    /// A [`Place`] in four bytes.
    place: u32,
    generation: u32,
    pub(super) value: Option<T>,
}

const OCCUPIED: &str = "a timer in the queue has a value";

/// The number of vacant slots that are prefetched at a time.
const PREFETCH_BATCH: usize = 16;

/// The slots that became vacant last are still in the cache: a quarter of a megabyte of them.
const WARM: usize = 4096;

impl<T> Slot<T> {
    #[inline]
    pub(super) fn place(&self) -> Place {
        Place::unpack(self.place)
    }

    #[inline]
    pub(super) fn set_place(&mut self, place: Place) {
        self.place = place.pack();
    }

    /// Returns the value of the timer that is known to be in this slot.
    #[inline]
    pub(super) fn timer(&self) -> &T {
        self.value.as_ref().expect(OCCUPIED)
    }

    #[inline]
    pub(super) fn timer_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(OCCUPIED)
    }

    /// Returns the key of the timer in this slot, which has this index.
    #[inline]
    pub(super) fn key(&self, index: u32) -> Key {
        Key {
            index,
            generation: self.generation,
        }
    }
}

/// A slot that has not been in use. A stale item does not match it.
impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            sequence: 0,
            deadline: NEVER,
            place: Place::Idle.pack(),
            generation: 0,
            value: None,
        }
    }
}

pub(super) struct Slots<T> {
    /// The slots that have been in use.
    slots: Pages<Slot<T>>,
    /// The number of timers.
    len: usize,
    /// The indices of the vacant slots, the one that became vacant last at the end.
    vacant: Pages<u32>,
    /// The number of vacant slots, from the first one on, that are probably not in the cache.
    cold: usize,
}

/// The maximum number of timers in a queue.
///
/// Places in the heap and in buckets have 31 bits, and a bucket may leave most of its last chunk
/// unused.
const MAX_TIMERS: u32 = 1 << 30;

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Pages::new(),
            len: 0,
            vacant: Pages::new(),
            cold: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts an idle timer into a vacant slot, and returns its key and its slot.
    #[inline(always)]
    pub(super) fn insert(&mut self, sequence: u64, deadline: u64, value: T) -> (Key, &mut Slot<T>) {
        let index = self.vacant_slot();
        self.len += 1;
        let slot = &mut self.slots[index];
        slot.sequence = sequence;
        slot.deadline = deadline;
        slot.set_place(Place::Idle);
        slot.value = Some(value);
        (slot.key(index), slot)
    }

    /// Takes a vacant slot, or adds one, and returns its index.
    #[inline]
    fn vacant_slot(&mut self) -> u32 {
        if let Some(index) = self.vacant.pop() {
            if self.vacant.len() <= self.cold {
                self.prefetch_vacant();
            }
            return index;
        }
        let index = self.slots.len() as u32;
        assert!(index < MAX_TIMERS, "the queue already holds 2^30 timers");
        self.slots.push(Slot::default());
        index
    }

    /// Prefetches the slots that are taken next, so that their cache misses overlap. Without this, a
    /// new timer takes three times as long after many timers were cancelled.
    #[inline(never)]
    fn prefetch_vacant(&mut self) {
        let end = self.vacant.len();
        self.cold = end.saturating_sub(PREFETCH_BATCH);
        for nth in self.cold..end {
            let index = self.vacant[nth as u32];
            prefetch(self.slots[index].generation);
        }
    }

    /// Removes the value of a timer after `read` has seen it. Its key becomes invalid, but its slot is not
    /// vacant until [`vacate`](Self::vacate), because the heap or a bucket still refers to it.
    #[inline]
    pub(super) fn take<Out>(
        &mut self,
        key: Key,
        read: impl FnOnce(&mut Slot<T>) -> Out,
    ) -> Option<(Out, &Slot<T>)> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation || slot.value.is_none() {
            return None;
        }
        let out = read(slot);
        slot.value = None;
        self.len -= 1;
        Some((out, slot))
    }

    /// Makes a slot vacant after its value was taken.
    #[inline]
    pub(super) fn vacate(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        debug_assert!(slot.value.is_none(), "slot {index} holds a timer");
        // A stale item of this timer must not match the slot by its deadline.
        slot.deadline = NEVER;
        // A slot without generations left is retired, so that no key is ever reused.
        if slot.generation == u32::MAX {
            return;
        }
        slot.generation += 1;
        self.vacant.push(index);
        self.cold = self.cold.max(self.vacant.len().saturating_sub(WARM));
    }

    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&Slot<T>> {
        self.slots
            .get(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Slot<T>> {
        self.slots
            .get_mut(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, u64, &T)> {
        self.occupied()
            .filter_map(|(key, slot)| Some((key, slot.deadline, slot.value.as_ref()?)))
    }

    /// Returns the deadlines, sequences and keys of the timers that wait for a deadline at or
    /// before `until`, and of the idle ones that count as waiting.
    pub(super) fn waiting_until(
        &self,
        until: u64,
        counts: impl Fn(Key) -> bool,
    ) -> Vec<(u64, u64, Key)> {
        let waits = |key, slot: &Slot<T>| slot.place() != Place::Idle || counts(key);
        self.occupied()
            .filter(|(_, slot)| slot.deadline <= until && slot.deadline != NEVER)
            .filter(|&(key, slot)| waits(key, slot))
            .map(|(key, slot)| (slot.deadline, slot.sequence, key))
            .collect()
    }

    fn occupied(&self) -> impl Iterator<Item = (Key, &Slot<T>)> {
        let slots = (0..self.slots.len() as u32).map(|index| (index, &self.slots[index]));
        slots
            .filter(|(_, slot)| slot.value.is_some())
            .map(|(index, slot)| (slot.key(index), slot))
    }

    /// Prefetches the first slot.
    #[inline]
    pub(super) fn prefetch_start(&self) {
        prefetch(self.slots.get(0).map(|slot| slot.sequence));
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Slot<T> {
        &self.slots[index]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.slots[index]
    }
}

/// In test builds, even a short list has several pages.
const PAGE: usize = if cfg!(test) { 8 } else { 2048 };

/// An array in fixed-size pages. The unused rest of a page holds default items.
///
/// Pushing allocates a page now and then, and copies nothing. Only the first page grows like a
/// `Vec`, so that a short list stays small. The compiler knows the size of the other pages, so an
/// index takes one check.
pub(super) struct Pages<T> {
    /// The first page until it is full.
    start: Vec<T>,
    pages: Vec<Box<[T; PAGE]>>,
    len: usize,
}

impl<T> Pages<T> {
    pub(super) fn new() -> Self {
        Self {
            start: Vec::new(),
            pages: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the item at `index`, which may be past the end.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match self.pages.get(index / PAGE) {
            Some(page) => Some(&page[index % PAGE]),
            None => self.start.get(index),
        }
    }

    /// Returns the item at `index`, which may be behind the end.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        match self.pages.get_mut(index / PAGE) {
            Some(page) => Some(&mut page[index % PAGE]),
            None => self.start.get_mut(index),
        }
    }
}

impl<T: Copy> Pages<T> {
    /// Removes and returns the last item.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        Some(self[self.len as u32])
    }
}

impl<T: Default> Pages<T> {
    #[inline]
    pub(super) fn push(&mut self, item: T) {
        let len = self.len;
        match self.get_mut(len) {
            Some(place) => *place = item,
            None => {
                self.grow();
                self[len as u32] = item;
            }
        }
        self.len = len + 1;
    }

    #[cold]
    fn grow(&mut self) {
        if self.pages.is_empty() {
            let len = (2 * self.start.len()).max(4);
            self.start.resize_with(len, T::default);
            if len < PAGE {
                return;
            }
        }
        let page = match mem::take(&mut self.start) {
            start if start.is_empty() => iter::repeat_with(T::default).take(PAGE).collect(),
            start => start.into_boxed_slice(),
        };
        self.pages.extend(Box::try_from(page).ok());
    }
}

impl<T> Index<u32> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        let index = index as usize;
        match self.pages.get(index / PAGE) {
            Some(page) => &page[index % PAGE],
            None => &self.start[index],
        }
    }
}

impl<T> IndexMut<u32> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        let index = index as usize;
        match self.pages.get_mut(index / PAGE) {
            Some(page) => &mut page[index % PAGE],
            None => &mut self.start[index],
        }
    }
}

/// Reads a value ahead of need, so that many cache misses overlap.
///
/// Without `unsafe` there is no prefetch instruction.
#[inline]
pub(crate) fn prefetch<T>(read: T) {
    black_box(read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_slot_has_a_new_key() {
        let mut slots = Slots::new();
        let old = slots.insert(0, 0, 'a').0;
        slots.take(old, |_| ());
        slots.vacate(old.index);
        let new = slots.insert(1, 0, 'b').0;
        assert_eq!(old.index, new.index, "the slot should be reused");
        assert!(slots.get(old).is_none(), "a stale key should find nothing");
        assert!(
            slots.take(old, |_| ()).is_none(),
            "a stale key should take nothing"
        );
        assert_eq!(slots.at(new.index).value, Some('b'));
    }

    #[test]
    fn a_slot_that_runs_out_of_generations_is_retired() {
        let mut slots = Slots::new();
        let key = slots.insert(0, 0, ()).0;
        slots.at_mut(0).generation = u32::MAX;
        let last = Key {
            generation: u32::MAX,
            ..key
        };
        assert!(slots.take(last, |_| ()).is_some());
        slots.vacate(last.index);
        assert!(slots.get(last).is_none());
        let next = slots.insert(1, 0, ()).0;
        assert_ne!(next.index, key.index, "the old slot should not come back");
    }

    #[test]
    fn a_key_round_trips_through_its_bits() {
        let key = Key {
            index: 7,
            generation: 9,
        };
        assert_eq!(Key::from_bits(key.to_bits()), key);
    }

    #[test]
    fn a_list_spans_many_pages() {
        let mut list = Pages::new();
        for item in 0..3 * PAGE as u32 + 1 {
            assert_eq!(list.len(), item as usize);
            list.push(item);
        }
        assert!((0..3 * PAGE as u32 + 1).all(|item| list[item] == item));
        assert_eq!(list.get(4 * PAGE), None);
    }

    #[test]
    fn a_short_list_grows_with_its_items() {
        let mut list = Pages::new();
        for len in 1..=PAGE {
            list.push(());
            let room = (len.next_power_of_two()).max(4);
            assert!(list.get(room - 1).is_some(), "{len} items");
            assert!(list.get(room).is_none(), "{len} items");
        }
    }
}
