//! `std::collections::BinaryHeap`, with cancelled timers left in until they surface.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Queue;

pub struct StdBinaryHeap {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The sequence under which a timer is armed; zero if it is not.
    armed: Vec<u64>,
    sequence: u64,
}

impl Queue for StdBinaryHeap {
    fn new(ids: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            armed: vec![0; ids],
            sequence: 0,
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        self.sequence += 1;
        self.armed[id as usize] = self.sequence;
        self.heap.push(Reverse((deadline, self.sequence, id)));
    }

    fn cancel(&mut self, id: u32) {
        self.armed[id as usize] = 0;
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        while let Some(mut first) = self.heap.peek_mut()
            && first.0.0 <= now
        {
            let Reverse((deadline, sequence, id)) = *first;
            if self.armed[id as usize] == sequence
                && let Some(next) = fire(id, deadline)
            {
                first.0.0 = next;
            } else {
                std::collections::binary_heap::PeekMut::pop(first);
            }
        }
    }
}
