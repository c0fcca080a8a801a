//! `BigWorld`'s time queue: a heap of nodes that are allocated one by one; cancelled ones are marked,
//! and purged when they are more than half.

use core::{
    cell::Cell,
    cmp::{Ordering, Reverse},
};
use std::{collections::BinaryHeap, rc::Rc};

use super::Queue;

struct Node {
    deadline: Cell<u64>,
    sequence: u64,
    id: u32,
    cancelled: Cell<bool>,
}

struct ByTime(Rc<Node>);

impl ByTime {
    fn key(&self) -> (u64, u64) {
        (self.0.deadline.get(), self.0.sequence)
    }
}

impl PartialEq for ByTime {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ByTime {}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

pub struct BigWorld {
    heap: BinaryHeap<Reverse<ByTime>>,
    nodes: Vec<Option<Rc<Node>>>,
    cancelled: usize,
    sequence: u64,
}

impl Queue for BigWorld {
    fn new(ids: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            nodes: (0..ids).map(|_| None).collect(),
            cancelled: 0,
            sequence: 0,
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        self.sequence += 1;
        let node = Rc::new(Node {
            deadline: Cell::new(deadline),
            sequence: self.sequence,
            id,
            cancelled: Cell::new(false),
        });
        self.nodes[id as usize] = Some(Rc::clone(&node));
        self.heap.push(Reverse(ByTime(node)));
    }

    fn cancel(&mut self, id: u32) {
        if let Some(node) = self.nodes[id as usize].take() {
            node.cancelled.set(true);
            self.cancelled += 1;
        }
        if self.cancelled > self.heap.len() / 2 {
            self.heap.retain(|Reverse(node)| !node.0.cancelled.get());
            self.cancelled = 0;
        }
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        while let Some(Reverse(ByTime(first))) = self.heap.peek()
            && first.deadline.get() <= now
        {
            let Some(Reverse(ByTime(node))) = self.heap.pop() else {
                return;
            };
            if node.cancelled.get() {
                self.cancelled -= 1;
                continue;
            }
            match fire(node.id, node.deadline.get()) {
                Some(next) => {
                    node.deadline.set(next);
                    self.heap.push(Reverse(ByTime(node)));
                }
                None => self.nodes[node.id as usize] = None,
            }
        }
    }
}
