//! A slab of timer records: an index instead of a pointer, a generation against stale keys.

use super::{NEVER, near::Entry, pages::Pages};

/// Names one timer of one [`TimerQueue`](super::TimerQueue), for as long as it is in there.
///
/// Slots are reused, keys are not: once the timer is gone, its key finds nothing, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

impl TimerKey {
    /// A key that no queue hands out.
    pub(crate) const NONE: Self = Self {
        index: u32::MAX,
        generation: u32::MAX,
    };

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

/// Where the queue looks for a timer's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: the timer is idle.
    Idle,
    /// In the heap of what is near, as the entry of the slot's latest arming.
    Near,
    /// In the bucket of its deadline at this level of the wheel, at [`Slot::address`]. If the
    /// wheel has moved on since, that bucket is the run of what is near.
    Wheel(u8),
}

/// A timer, or a vacancy.
pub(super) struct Slot<T> {
    pub(super) sequence: u64,
    /// [`NEVER`] while the timer is idle.
    pub(super) deadline: u64,
    /// The place in its bucket. In a vacancy, the next one.
    pub(super) address: u32,
    /// Counts the deadlines that the timer has been given.
    pub(super) arming: u32,
    generation: u32,
    pub(super) place: Place,
    value: Option<T>,
}

impl<T> Slot<T> {
    /// Takes note that the timer is in the heap from now on, and gives it its entry there.
    pub(super) fn come_near(&mut self, index: u32) -> Entry {
        self.place = Place::Near;
        self.arming = self.arming.wrapping_add(1);
        Entry {
            deadline: self.deadline,
            sequence: self.sequence,
            index,
            arming: self.arming,
        }
    }
}

pub(super) struct Slots<T> {
    slots: Pages<Slot<T>>,
    /// The first of a list of vacancies; [`NO_SLOT`] ends it.
    vacant: u32,
    len: usize,
}

const NO_SLOT: u32 = TimerKey::NONE.index;

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

    pub(super) fn insert(&mut self, sequence: u64, value: T) -> TimerKey {
        let mut slot = Slot {
            sequence,
            deadline: NEVER,
            address: 0,
            arming: 0,
            generation: 0,
            place: Place::Idle,
            value: Some(value),
        };
        let index = self.vacant;
        if index != NO_SLOT {
            let vacancy = &mut self.slots[index];
            self.vacant = vacancy.address;
            slot.generation = vacancy.generation;
            *vacancy = slot;
            self.len += 1;
            return self.key(index);
        }
        let index = u32::try_from(self.slots.len())
            .ok()
            .filter(|&index| index != NO_SLOT)
            .expect("a queue holds fewer than 2^32 - 1 timers at a time");
        self.slots.push(slot);
        self.len += 1;
        self.key(index)
    }

    pub(super) fn remove(&mut self, key: TimerKey) -> Option<T> {
        let next = self.vacant;
        let slot = self.get_mut(key)?;
        let value = slot.value.take()?;
        // A slot that has used up its generations is retired, so that no key ever comes back.
        if slot.generation < u32::MAX {
            slot.generation += 1;
            slot.address = next;
            self.vacant = key.index;
        }
        self.len -= 1;
        Some(value)
    }

    pub(super) fn get(&self, key: TimerKey) -> Option<&Slot<T>> {
        self.slots
            .get(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
    }

    pub(super) fn get_mut(&mut self, key: TimerKey) -> Option<&mut Slot<T>> {
        self.slots
            .get_mut(key.index as usize)
            .filter(|slot| slot.generation == key.generation && slot.value.is_some())
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
    pub(super) fn at(&self, index: u32) -> &Slot<T> {
        &self.slots[index]
    }

    pub(super) fn at_mut(&mut self, index: u32) -> &mut Slot<T> {
        &mut self.slots[index]
    }

    /// Reads from both ends of a slot, which may lie in two cache lines.
    pub(super) fn touch(&self, index: u32) -> (u64, bool) {
        let slot = self.at(index);
        (slot.sequence, slot.value.is_some())
    }

    pub(super) fn value_at(&self, index: u32) -> &T {
        self.slots[index].value.as_ref().expect(OCCUPIED)
    }

    pub(super) fn value_at_mut(&mut self, index: u32) -> &mut T {
        self.slots[index].value.as_mut().expect(OCCUPIED)
    }

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
        let old = slots.insert(0, 'a');
        slots.remove(old);
        let new = slots.insert(1, 'b');
        assert_eq!(old.index, new.index, "the slot should be reused");
        assert!(slots.get(old).is_none(), "a stale key should find nothing");
        assert!(slots.remove(old).is_none(), "nor remove anything");
        assert_eq!(slots.value(new), Some(&'b'));
    }

    #[test]
    fn a_slot_without_generations_left_is_retired() {
        let mut slots = Slots::new();
        let key = slots.insert(0, ());
        slots.at_mut(0).generation = u32::MAX;
        let last = TimerKey {
            generation: u32::MAX,
            ..key
        };
        assert!(slots.remove(last).is_some());
        assert!(slots.get(last).is_none());
        let next = slots.insert(1, ());
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
