//! `BigWorld`'s time queue: a heap of nodes that are allocated one by one; cancelled ones are
//! marked, and purged when they are more than half. `BigWorld` takes a node off the heap while it
//! fires and puts it back if it repeats; here it stays on top, and sinks.

use core::cell::Cell;
use std::{
    collections::{BinaryHeap, binary_heap::PeekMut},
    rc::Rc,
};

use super::{Payload, Queue, Soonest, Waiting};

pub struct Node {
    deadline: Cell<u64>,
    sequence: u64,
    payload: Payload,
    cancelled: Cell<bool>,
}

impl Waiting for Rc<Node> {
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
            // Changed in place, so the heap has to be told that its first has changed.
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
