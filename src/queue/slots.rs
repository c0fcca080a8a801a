//! A slab of timer records: an index instead of a pointer, a generation against stale keys.

use alloc::vec::Vec;

use super::{NEVER, pages::Pages};

/// Names one timer of one [`TimerQueue`](super::TimerQueue), for as long as it is in there.
///
/// Slots are reused, keys are not: once the timer is gone, its key finds nothing, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

impl TimerKey {
    /// A key that no queue hands out.
    pub(crate) const NONE: Self = Self::reserved(0);

    /// One of the keys that no queue hands out.
    pub(crate) const fn reserved(nth: u32) -> Self {
        Self {
            index: u32::MAX,
            generation: nth,
        }
    }

    pub(crate) fn is_reserved(self) -> bool {
        self.index == u32::MAX
    }

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

/// Where the queue keeps a timer's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: the timer is idle.
    Idle,
    /// At this position of the heap.
    Heap(u32),
    /// At this address in a bucket of the wheel. If the wheel has moved on since, the bucket is
    /// the run of what is near, and the address is void.
    Bucket(u32),
}

/// A [`Place`] in four bytes, or the link of a vacancy to the next.
#[derive(Clone, Copy)]
struct Packed(u32);

impl Packed {
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

impl From<Place> for Packed {
    #[inline]
    fn from(place: Place) -> Self {
        match place {
            Place::Idle => Self(Self::IDLE),
            Place::Heap(position) => Self(Self::HEAP | position),
            Place::Bucket(address) => Self(address),
        }
    }
}

/// A timer, or a vacancy. One of this crate's own fills a cache line.
#[repr(align(64))]
pub(super) struct Slot<T> {
    pub(super) sequence: u64,
    /// That for which the timer waits, or would if it were not parked.
    pub(super) deadline: u64,
    packed: Packed,
    generation: u32,
    value: Option<T>,
}

impl<T> Slot<T> {
    #[inline]
    pub(super) fn place(&self) -> Place {
        self.packed.place()
    }

    #[inline]
    pub(super) fn set_place(&mut self, place: Place) {
        self.packed = place.into();
    }
}

pub(super) struct Slots<T> {
    slots: Pages<Slot<T>>,
    /// The first of a list of vacancies; [`NO_SLOT`] ends it.
    vacant: u32,
    len: usize,
}

const NO_SLOT: u32 = TimerKey::NONE.index;

/// So many timers fit into a queue: places in the heap and in buckets have 31 bits, and a bucket may
/// waste most of its last chunk.
const MOST: usize = 1 << 30;

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: Pages::new(),
            vacant: NO_SLOT,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn next_key(&self) -> TimerKey {
        match self.vacant {
            NO_SLOT => TimerKey {
                index: self.slots.len() as u32,
                generation: 0,
            },
            index => self.key(index),
        }
    }

    #[inline]
    pub(super) fn insert(&mut self, sequence: u64, deadline: u64, value: T) -> TimerKey {
        let mut slot = Slot {
            sequence,
            deadline,
            packed: Place::Idle.into(),
            generation: 0,
            value: Some(value),
        };
        let index = self.vacant;
        if index != NO_SLOT {
            let vacancy = &mut self.slots[index];
            self.vacant = vacancy.packed.0;
            slot.generation = vacancy.generation;
            *vacancy = slot;
            self.len += 1;
            return self.key(index);
        }
        let index = self.slots.len();
        assert!(index < MOST, "a queue holds no more than 2^30 timers");
        self.slots.push(slot);
        self.len += 1;
        self.key(index as u32)
    }

    /// Takes a timer's value out. From now on its key finds nothing, but its slot is not vacant
    /// yet, because something still points there.
    #[inline]
    pub(super) fn take(&mut self, key: TimerKey) -> Option<T> {
        let value = self.get_mut(key)?.value.take()?;
        self.len -= 1;
        Some(value)
    }

    /// Makes the slot vacant from which a timer has been taken.
    #[inline]
    pub(super) fn vacate(&mut self, index: u32) {
        let slot = &mut self.slots[index];
        debug_assert!(slot.value.is_none());
        // An item that is left of the timer must not take this for its timer's deadline.
        slot.deadline = NEVER;
        // A slot that has used up its generations is retired, so that no key ever comes back.
        if slot.generation < u32::MAX {
            slot.generation += 1;
            slot.packed = Packed(self.vacant);
            self.vacant = index;
        }
    }

    #[inline]
    pub(super) fn get(&self, key: TimerKey) -> Option<&Slot<T>> {
        self.slots
            .get(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
    }

    #[inline]
    fn get_mut(&mut self, key: TimerKey) -> Option<&mut Slot<T>> {
        self.slots
            .get_mut(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (TimerKey, u64, &T)> {
        self.occupied()
            .filter_map(|(key, slot)| Some((key, slot.deadline, slot.value.as_ref()?)))
    }

    /// What waits, with its deadline and sequence.
    pub(super) fn waiting_until(&self, until: u64) -> Vec<(u64, u64, TimerKey)> {
        self.occupied()
            .filter(|(_, slot)| slot.place() != Place::Idle && slot.deadline <= until)
            .map(|(key, slot)| (slot.deadline, slot.sequence, key))
            .collect()
    }

    fn occupied(&self) -> impl Iterator<Item = (TimerKey, &Slot<T>)> {
        let slots = (0..self.slots.len() as u32).map(|index| (self.key(index), &self.slots[index]));
        slots.filter(|(_, slot)| slot.value.is_some())
    }

    pub(super) fn value(&self, key: TimerKey) -> Option<&T> {
        self.get(key)?.value.as_ref()
    }

    pub(super) fn value_mut(&mut self, key: TimerKey) -> Option<&mut T> {
        self.get_mut(key)?.value.as_mut()
    }
}

const OCCUPIED: &str = "the queue keeps the index of this timer, so it is there";

/// The slot of a timer that is known to be there.
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
    pub(super) fn key(&self, index: u32) -> TimerKey {
        TimerKey {
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
        let old = slots.insert(0, 0, 'a');
        slots.take(old);
        slots.vacate(old.index);
        let new = slots.insert(1, 0, 'b');
        assert_eq!(old.index, new.index, "the slot should be reused");
        assert!(slots.get(old).is_none(), "a stale key should find nothing");
        assert!(slots.take(old).is_none(), "nor take anything");
        assert_eq!(slots.value(new), Some(&'b'));
    }

    #[test]
    fn a_slot_without_generations_left_is_retired() {
        let mut slots = Slots::new();
        let key = slots.insert(0, 0, ());
        slots.at_mut(0).generation = u32::MAX;
        let last = TimerKey {
            generation: u32::MAX,
            ..key
        };
        assert!(slots.take(last).is_some());
        slots.vacate(last.index);
        assert!(slots.get(last).is_none());
        let next = slots.insert(1, 0, ());
        assert_ne!(next.index, key.index, "the old slot should not come back");
    }

    #[test]
    fn a_key_survives_its_bits() {
        let key = TimerKey {
            index: 7,
            generation: 9,
        };
        assert_eq!(TimerKey::from_bits(key.to_bits()), key);
    }
}
