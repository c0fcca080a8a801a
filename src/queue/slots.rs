//! A slab of timer records: an index instead of a pointer, a generation against stale keys.

use alloc::vec::Vec;

use super::NEVER;

/// Names one timer of one [`TimerQueue`](super::TimerQueue), for as long as it is in there.
///
/// Slots are reused, keys are not: once the timer is gone, its key finds nothing, for ever. A
/// queue does not tell its own keys from those of another queue.
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

pub(super) struct Slot<T> {
    pub(super) sequence: u64,
    /// [`NEVER`] while the timer is idle.
    pub(super) deadline: u64,
    /// Counts the deadlines that the timer has been given.
    pub(super) arming: u32,
    pub(super) value: T,
}

struct Place<T> {
    generation: u32,
    slot: Option<Slot<T>>,
}

pub(super) struct Slots<T> {
    places: Vec<Place<T>>,
    vacant: Vec<u32>,
    len: usize,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            vacant: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, sequence: u64, value: T) -> TimerKey {
        let slot = Some(Slot {
            sequence,
            deadline: NEVER,
            arming: 0,
            value,
        });
        self.len += 1;
        if let Some(index) = self.vacant.pop() {
            let place = &mut self.places[index as usize];
            place.slot = slot;
            return TimerKey {
                index,
                generation: place.generation,
            };
        }
        let index = u32::try_from(self.places.len())
            .ok()
            .filter(|&index| index != TimerKey::NONE.index)
            .expect("a queue holds fewer than 2^32 - 1 timers at a time");
        self.places.push(Place {
            generation: 0,
            slot,
        });
        TimerKey {
            index,
            generation: 0,
        }
    }

    pub(super) fn remove(&mut self, key: TimerKey) -> Option<Slot<T>> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let slot = place.slot.take()?;
        self.len -= 1;
        // A slot that has used up its generations is retired, so that no key ever comes back.
        if place.generation < u32::MAX {
            place.generation += 1;
            self.vacant.push(key.index);
        }
        Some(slot)
    }

    pub(super) fn get(&self, key: TimerKey) -> Option<&Slot<T>> {
        let place = self.places.get(key.index as usize)?;
        place
            .slot
            .as_ref()
            .filter(|_| place.generation == key.generation)
    }

    pub(super) fn get_mut(&mut self, key: TimerKey) -> Option<&mut Slot<T>> {
        let place = self.places.get_mut(key.index as usize)?;
        place
            .slot
            .as_mut()
            .filter(|_| place.generation == key.generation)
    }

    pub(super) fn occupied(&self, index: u32) -> Option<&Slot<T>> {
        self.places.get(index as usize)?.slot.as_ref()
    }

    pub(super) fn occupied_mut(&mut self, index: u32) -> Option<(TimerKey, &mut Slot<T>)> {
        let place = self.places.get_mut(index as usize)?;
        let key = TimerKey {
            index,
            generation: place.generation,
        };
        place.slot.as_mut().map(|slot| (key, slot))
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
        assert_eq!(slots.get(new).map(|slot| slot.value), Some('b'));
    }

    #[test]
    fn a_slot_without_generations_left_is_retired() {
        let mut slots = Slots::new();
        let key = slots.insert(0, ());
        slots.places[0].generation = u32::MAX;
        let last = TimerKey {
            generation: u32::MAX,
            ..key
        };
        assert!(slots.remove(last).is_some());
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
