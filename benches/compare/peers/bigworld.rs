//! `BigWorld`'s time queue: a heap of nodes that are allocated one by one. Cancelling marks a node, and
//! marked nodes are purged once they are more than half.
//!
//! `BigWorld` pops a node while it fires, and pushes a periodic one again. Here the node stays on top
//! and then sinks, which is faster.

use core::cell::Cell;
use std::{
    collections::{BinaryHeap, binary_heap::PeekMut},
    rc::Rc,
};

use super::{HeapEntry, Payload, Queue, Soonest};

pub struct Node {
    deadline: Cell<u64>,
    sequence: u64,
    payload: Payload,
    cancelled: Cell<bool>,
}

impl HeapEntry for Rc<Node> {
    fn key(&self) -> (u64, u64) {
        (self.deadline.get(), self.sequence)
    }
}

pub struct BigWorld {
    heap: BinaryHeap<Soonest<Rc<Node>>>,
    cancelled: usize,
    sequence: u64,
}

impl Queue for BigWorld {
    type Key = Rc<Node>;

    fn new(_: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            cancelled: 0,
            sequence: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> Rc<Node> {
        self.sequence += 1;
        let node = Rc::new(Node {
            deadline: Cell::new(deadline),
            sequence: self.sequence,
            payload,
            cancelled: Cell::new(false),
        });
        self.heap.push(Soonest(Rc::clone(&node)));
        node
    }

    fn cancel(&mut self, node: Rc<Node>) {
        node.cancelled.set(true);
        self.cancelled += 1;
        if self.cancelled > self.heap.len() / 2 {
            self.heap.retain(|node| !node.0.cancelled.get());
            self.cancelled = 0;
        }
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while let Some(mut first) = self.heap.peek_mut()
            && first.0.deadline.get() <= now
        {
            // The deadline changes inside a cell. The mutable borrow makes the heap sift the node anyway.
            let node = &mut first.0;
            if node.cancelled.get() {
                self.cancelled -= 1;
                PeekMut::pop(first);
            } else {
                match fire(node.deadline.get(), &node.payload) {
                    Some(next) => node.deadline.set(next),
                    None => {
                        PeekMut::pop(first);
                    }
                }
            }
        }
    }
}
