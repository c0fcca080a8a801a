//! A slab of timers, addressed by index, with generations that detect stale keys.

mod undo;
mod vacant;

use alloc::{boxed::Box, vec::Vec};

use super::{NEVER, bucket::prefetch, pages::Pages};
use undo::Watch;
pub(crate) use undo::{SlotJournal, SlotMark};
use vacant::VacantSlots;

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
    /// The timer is at this address in a bucket of the wheel. Once its bucket is the run of the
    /// near timers, the address is meaningless.
    Bucket(u32),
}

/// A [`Place`] in four bytes.
#[derive(Clone, Copy)]
struct PackedPlace(u32);

impl PackedPlace {
    const IDLE: u32 = u32::MAX;
    const HEAP: u32 = 1 << 31;

    #[inline]
    fn place(self) -> Place {
        match self.0 {
            Self::IDLE => Place::Idle,
            position if position >= Self::HEAP => Place::Heap(position - Self::HEAP),
            address => Place::Bucket(address),
        }
    }
}

impl From<Place> for PackedPlace {
    #[inline]
    fn from(place: Place) -> Self {
        match place {
            Place::Idle => Self(Self::IDLE),
            Place::Heap(position) => Self(Self::HEAP | position),
            Place::Bucket(address) => Self(address),
        }
    }
}

/// A timer, or a vacant slot. A timer of this crate fills one cache line.
#[repr(align(64))]
pub(super) struct Slot<T> {
    pub(super) sequence: u64,
    /// The deadline the timer waits for, or will wait for once it is released.
    pub(super) deadline: u64,
    place: PackedPlace,
    generation: u32,
    value: Option<T>,
}

impl<T> Slot<T> {
    #[inline]
    pub(super) fn place(&self) -> Place {
        self.place.place()
    }

    #[inline]
    pub(super) fn set_place(&mut self, place: Place) {
        self.place = place.into();
    }
}

/// A slot that has not been in use. A stale item does not match it.
impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            sequence: 0,
            deadline: NEVER,
            place: Place::Idle.into(),
            generation: 0,
            value: None,
        }
    }
}

pub(super) struct Slots<T> {
    /// The slots that have been in use.
    slots: Pages<Slot<T>>,
    vacant: VacantSlots,
    len: usize,
    /// The journal, if the queue keeps one.
    watch: Option<Box<Watch<T>>>,
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
            vacant: VacantSlots::new(),
            len: 0,
            watch: None,
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
        let generation = slot.generation;
        (Key { index, generation }, slot)
    }

    /// Takes a vacant slot, or adds one, and returns its index.
    #[inline]
    fn vacant_slot(&mut self) -> u32 {
        if let Some(index) = self.vacant.pop() {
            self.note(index);
            if self.vacant.is_cold() {
                self.prefetch_vacant();
            }
            return index;
        }
        let index = self.slots.len() as u32;
        assert!(index < MAX_TIMERS, "the queue already holds 2^30 timers");
        self.note(index);
        self.slots.push(Slot::default());
        index
    }

    /// Prefetches the slots that are taken next, so that their cache misses overlap.
    #[inline(never)]
    fn prefetch_vacant(&mut self) {
        for index in self.vacant.warm_up() {
            prefetch(self.slots[index].generation);
        }
    }

    /// Removes the value of a timer. Its key becomes invalid, but its slot is not vacant until
    /// [`vacate`](Self::vacate), because the heap or a bucket still refers to it.
    #[inline]
    pub(super) fn take(&mut self, key: Key) -> Option<(T, &Slot<T>)> {
        self.note_timer(key);
        let len = self.len;
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation != key.generation {
            return None;
        }
        let value = slot.value.take()?;
        self.len = len - 1;
        Some((value, slot))
    }

    /// Makes a slot vacant after its value was taken.
    #[inline]
    pub(super) fn vacate(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        debug_assert!(slot.value.is_none(), "slot {index} holds a timer");
        // A stale item of this timer must not match the slot by its deadline.
        slot.deadline = NEVER;
        // A slot without generations left is retired, so that no key is ever reused.
        if slot.generation < u32::MAX {
            slot.generation += 1;
            self.vacant.push(index);
        }
    }

    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&Slot<T>> {
        self.slots
            .get(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
    }

    #[inline]
    fn get_mut(&mut self, key: Key) -> Option<&mut Slot<T>> {
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
        let slots = (0..self.slots.len() as u32).map(|index| (self.key(index), &self.slots[index]));
        slots.filter(|(_, slot)| slot.value.is_some())
    }

    /// Returns the timer in a slot, if there is one.
    pub(super) fn timer_in(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    pub(super) fn value(&self, key: Key) -> Option<&T> {
        self.get(key)?.value.as_ref()
    }

    pub(super) fn value_mut(&mut self, key: Key) -> Option<&mut T> {
        self.note_timer(key);
        self.get_mut(key)?.value.as_mut()
    }
}

const OCCUPIED: &str = "a timer in the queue has a value";

/// Access to slots by index, for a timer that is known to exist.
impl<T> Slots<T> {
    #[inline]
    pub(super) fn at(&self, index: u32) -> &Slot<T> {
        &self.slots[index]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.slots[index]
    }

    #[inline]
    pub(super) fn set_place(&mut self, index: u32, place: Place) {
        self.at_mut(index).set_place(place);
    }

    #[inline]
    pub(super) fn make_idle(&mut self, index: u32) {
        let slot = self.at_mut(index);
        slot.deadline = NEVER;
        slot.set_place(Place::Idle);
    }

    #[inline]
    pub(super) fn is_taken(&self, index: u32) -> bool {
        self.slots[index].value.is_none()
    }

    #[inline]
    pub(super) fn value_at(&self, index: u32) -> &T {
        self.slots[index].value.as_ref().expect(OCCUPIED)
    }

    #[inline]
    pub(super) fn value_at_mut(&mut self, index: u32) -> &mut T {
        self.slots[index].value.as_mut().expect(OCCUPIED)
    }

    #[inline]
    pub(super) fn key_and_value_at(&mut self, index: u32) -> (Key, &mut T) {
        let slot = &mut self.slots[index];
        let generation = slot.generation;
        let value = slot.value.as_mut().expect(OCCUPIED);
        (Key { index, generation }, value)
    }

    #[inline]
    pub(super) fn key(&self, index: u32) -> Key {
        Key {
            index,
            generation: self.slots[index].generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_slot_has_a_new_key() {
        let mut slots = Slots::new();
        let old = slots.insert(0, 0, 'a').0;
        slots.take(old);
        slots.vacate(old.index);
        let new = slots.insert(1, 0, 'b').0;
        assert_eq!(old.index, new.index, "the slot should be reused");
        assert!(slots.get(old).is_none(), "a stale key should find nothing");
        assert!(slots.take(old).is_none(), "a stale key should take nothing");
        assert_eq!(slots.value(new), Some(&'b'));
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
        assert!(slots.take(last).is_some());
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
