//! The timer heap of a component framework: a heap of whole records, with a function in each, and
//! removal by search.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Queue;

/// As large as what such a record holds: times, counts, a function, an owner.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    deadline: u64,
    sequence: u64,
    id: u32,
    total: u32,
    interval: u64,
    function: [u64; 4],
    owner: u64,
}

pub struct Framework {
    heap: BinaryHeap<Reverse<Record>>,
    sequence: u64,
}

impl Queue for Framework {
    const MOST: usize = 10_000;

    fn new(_: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        self.sequence += 1;
        self.heap.push(Reverse(Record {
            deadline,
            sequence: self.sequence,
            id,
            total: 0,
            interval: 0,
            function: [0; 4],
            owner: 0,
        }));
    }

    fn cancel(&mut self, id: u32) {
        self.heap.retain(|Reverse(record)| record.id != id);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        while let Some(mut first) = self.heap.peek_mut()
            && first.0.deadline <= now
        {
            match fire(first.0.id, first.0.deadline) {
                Some(next) => first.0.deadline = next,
                None => {
                    std::collections::binary_heap::PeekMut::pop(first);
                }
            }
        }
    }
}
