//! `std::collections::BinaryHeap`. Cancelled timers stay in the heap until they are due.
//!
//! The entries are as small as possible, with the rest of a timer in a slot. This is faster than moving
//! whole timers.

use std::collections::{BinaryHeap, binary_heap::PeekMut};

use super::{HeapEntry, Payload, Queue, Soonest};

struct Entry {
    deadline: u64,
    sequence: u64,
    slot: u32,
}

impl HeapEntry for Entry {
    fn key(&self) -> (u64, u64) {
        (self.deadline, self.sequence)
    }
}

/// The rest of a timer, until its entry is popped.
struct Slot {
    payload: Payload,
    cancelled: bool,
}

pub struct StdBinaryHeap {
    heap: BinaryHeap<Soonest<Entry>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    sequence: u64,
}

impl Queue for StdBinaryHeap {
    /// The slot.
    type Key = u32;

    fn new(_: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            sequence: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> u32 {
        let timer = Slot {
            payload,
            cancelled: false,
        };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = timer;
            slot
        } else {
            self.slots.push(timer);
            self.slots.len() as u32 - 1
        };
        self.sequence += 1;
        self.heap.push(Soonest(Entry {
            deadline,
            sequence: self.sequence,
            slot,
        }));
        slot
    }

    fn cancel(&mut self, slot: u32) {
        self.slots[slot as usize].cancelled = true;
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while let Some(mut first) = self.heap.peek_mut()
            && first.0.deadline <= now
        {
            let timer = &self.slots[first.0.slot as usize];
            if !timer.cancelled
                && let Some(next) = fire(first.0.deadline, &timer.payload)
            {
                first.0.deadline = next;
            } else {
                self.free.push(PeekMut::pop(first).0.slot);
            }
        }
    }
}
