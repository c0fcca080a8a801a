//! A slab of timers in pages, addressed by index, with generations that detect stale keys.

use alloc::vec::Vec;
use core::{hint::black_box, mem};

use super::{NEVER, pages::Pages, vacant::Vacant};

/// A key that identifies one timer of one [`TimerQueue`](super::TimerQueue).
///
/// The queue reuses slots but never keys: the key of a removed timer is invalid forever, even after the
/// queue has given its memory back.
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

    /// Pretends that the slot was used for many timers.
    #[cfg(test)]
    pub(super) fn age_to(&mut self, generation: u32) {
        self.generation = generation;
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

pub(super) struct Slots<T> {
    slots: Pages<Slot<T>>,
    /// The number of timers.
    len: usize,
    /// The indices of the vacant slots.
    vacant: Vacant,
    /// The generation of a new slot. No slot that was given back has had it, so no key is reused.
    floor: u32,
    /// The number of pages to give back.
    spare_pages: usize,
}

/// The maximum number of timers in a queue.
///
/// Places in the heap and in buckets have 31 bits, and a bucket may leave most of its last chunk
/// unused.
const MAX_TIMERS: u32 = 1 << 30;

/// A slot with a later generation is never given back, so that a new slot always has two billion generations
/// left.
const MAX_FLOOR: u32 = 1 << 31;

/// An empty queue may keep so many slots.
const FEW: usize = 64;

/// A first page of so many slots does not become shorter while it has timers.
const SHORT: usize = if cfg!(test) { 2 } else { FEW };

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Pages::new(),
            len: 0,
            vacant: Vacant::new(),
            floor: 0,
            spare_pages: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
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
        let slots = &self.slots;
        let vacant = self.vacant.pop(|index| prefetch(slots[index].generation));
        match vacant {
            Some(index) => index,
            None => self.add_slots(),
        }
    }

    /// Adds slots, and takes one of them.
    #[cold]
    fn add_slots(&mut self) -> u32 {
        let floor = self.floor;
        // A stale item does not match a new slot.
        let added = self.slots.grow(|| Slot {
            sequence: 0,
            deadline: NEVER,
            place: Place::Idle.pack(),
            generation: floor,
            value: None,
        });
        let index = added.start;
        assert!(index < MAX_TIMERS, "the queue already holds 2^30 timers");
        self.vacant.extend(index + 1..added.end);
        index
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
        let slots = self
            .slots
            .pieces()
            .flat_map(|(first, piece)| (first..).zip(piece));
        slots
            .filter(|(_, slot)| slot.value.is_some())
            .map(|(index, slot)| (slot.key(index), slot))
    }

    /// Looks for slots that were not needed since the last look, which are given back from now on.
    pub(super) fn look(&mut self) {
        if self.slots.has_pages() {
            self.spare_pages = self.vacant.look();
        } else {
            self.shorten_start();
            self.vacant.look();
        }
    }

    pub(super) fn has_spare_pages(&self) -> bool {
        self.spare_pages > 0
    }

    /// Gives back one page of slots that were not needed.
    pub(super) fn free_page(&mut self) {
        let spare = mem::take(&mut self.spare_pages);
        let page = self.vacant.vacant_page().filter(|_| spare > 0);
        let Some((page, slots)) = page.and_then(|page| Some((page, self.slots.page(page)?))) else {
            return;
        };
        match self.floor_above(slots) {
            None => self.vacant.pin(page),
            Some(floor) => {
                self.floor = floor;
                self.slots.remove(page);
                self.vacant.forget_page(page);
                if self.slots.has_pages() {
                    self.spare_pages = spare - 1;
                } else {
                    self.vacant.gather();
                }
            }
        }
    }

    /// Gives back the first page if none of its slots were needed since the last look, or half of it. It is the
    /// only page.
    fn shorten_start(&mut self) {
        let (slots, unused) = (self.slots.start(), self.vacant.unused());
        let len = match unused.len() {
            0 => return,
            unused if unused == slots.len() => 0,
            unused if unused >= slots.len() * 3 / 4 && slots.len() > SHORT => slots.len() / 2,
            _ => return,
        };
        let above = unused.iter().filter(|&&index| index as usize >= len);
        if above.count() < slots.len() - len {
            self.vacant.prefer_below(len as u32);
        } else if let Some(floor) = self.floor_above(&slots[len..]) {
            self.floor = floor;
            self.slots.shorten_start(len);
            self.vacant.keep_below(len as u32);
        }
    }

    /// Returns the floor once these vacant slots are gone, unless they have to stay.
    fn floor_above(&self, slots: &[Slot<T>]) -> Option<u32> {
        let generations = slots.iter().map(|slot| slot.generation);
        let floor = generations.fold(self.floor, u32::max);
        (floor <= MAX_FLOOR).then_some(floor)
    }

    /// Returns the floor of a queue that takes the place of this one, or `None` if it must stay: it has
    /// timers, or more slots than can be given back at once.
    pub(super) fn last_floor(&self) -> Option<u32> {
        let slots = self.slots.start();
        let is_vacant = !self.slots.has_pages() && self.vacant.len() == slots.len();
        self.floor_above(slots).filter(|_| is_vacant)
    }

    /// Returns `true` if there are few slots.
    pub(super) fn is_short(&self) -> bool {
        !self.slots.has_pages() && self.slots.start().len() <= FEW
    }

    /// Sets the generation from which on all keys are new. All slots are vacant.
    pub(super) fn raise_floor(&mut self, floor: u32) {
        self.floor = floor.max(self.floor);
        for slot in self.slots.start_mut() {
            slot.generation = floor.max(slot.generation);
        }
    }

    /// Returns the slot at `index`, which may have been given back.
    #[inline]
    pub(super) fn find(&self, index: u32) -> Option<&Slot<T>> {
        self.slots.get(index as usize)
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
}
