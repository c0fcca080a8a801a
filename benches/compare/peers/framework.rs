//! The timer heap of a component framework: a heap of whole records, each with its callback. Cancelling
//! searches the heap.

use std::collections::{BinaryHeap, binary_heap::PeekMut};

use super::{HeapEntry, Payload, Queue, Soonest};

/// A record, as large as in the framework.
struct Record {
    deadline: u64,
    sequence: u64,
    payload: Payload,
    /// Stands for counts, a callback with its captures, and an owner.
    _rest: [u64; 6],
}

impl HeapEntry for Record {
    fn key(&self) -> (u64, u64) {
        (self.deadline, self.sequence)
    }
}

pub struct Framework {
    heap: BinaryHeap<Soonest<Record>>,
    sequence: u64,
}

impl Queue for Framework {
    /// The sequence.
    type Key = u64;

    fn new(_: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> u64 {
        self.sequence += 1;
        self.heap.push(Soonest(Record {
            deadline,
            sequence: self.sequence,
            payload,
            _rest: [0; 6],
        }));
        self.sequence
    }

    fn cancel(&mut self, sequence: u64) {
        self.heap.retain(|record| record.0.sequence != sequence);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while let Some(mut first) = self.heap.peek_mut()
            && first.0.deadline <= now
        {
            match fire(first.0.deadline, &first.0.payload) {
                Some(next) => first.0.deadline = next,
                None => {
                    PeekMut::pop(first);
                }
            }
        }
    }

    fn max_frames(n: usize, cancelling: bool) -> usize {
        match (cancelling, n) {
            (false, _) => usize::MAX,
            (true, ..=10_000) => 5_000_000 / n,
            (true, _) => 0,
        }
    }
}
