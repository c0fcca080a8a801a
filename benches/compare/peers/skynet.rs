//! skynet's timing wheel: 256 near lists and four levels of 64 lists, with ticks of 10 ms. A whole list
//! of a level cascades into the level below.
//!
//! The lists are linked through their nodes. Arming a timer allocates a node, and dispatching frees it,
//! so a periodic timer gets a new node each time. skynet appends to a list, which touches the last node.
//! Here a list grows at the front.
//!
//! skynet cannot cancel. A timer carries a session, and its receiver must know whether the session is
//! still wanted. Here a set holds the cancelled sessions.

use bevy_platform::collections::HashSet;

use super::{Payload, Queue};

const TICK: u64 = 10_000_000;
const NEAR_BITS: u32 = 8;
const LEVEL_BITS: u32 = 6;
const LEVELS: u32 = 4;

type List = Option<Box<Node>>;

struct Node {
    next: List,
    session: u64,
    deadline: u64,
    payload: Payload,
}

pub struct Skynet {
    near: Vec<List>,
    levels: [Vec<List>; LEVELS as usize],
    tick: u64,
    session: u64,
    cancelled: HashSet<u64>,
}

/// Returns the empty lists of a level.
fn lists(bits: u32) -> Vec<List> {
    (0..1 << bits).map(|_| None).collect()
}

/// Returns the low `bits` of a time, which are the index of a list.
fn low(time: u64, bits: u32) -> usize {
    time as usize & ((1 << bits) - 1)
}

impl Skynet {
    fn add(&mut self, mut node: Box<Node>) {
        // The tick in which the timer is due.
        let time = node.deadline.div_ceil(TICK).max(self.tick);
        let (mut shift, mut level) = (NEAR_BITS, 0);
        let list = if time >> shift == self.tick >> shift {
            &mut self.near[low(time, NEAR_BITS)]
        } else {
            while level + 1 < LEVELS
                && time >> (shift + LEVEL_BITS) != self.tick >> (shift + LEVEL_BITS)
            {
                shift += LEVEL_BITS;
                level += 1;
            }
            &mut self.levels[level as usize][low(time >> shift, LEVEL_BITS)]
        };
        node.next = list.take();
        *list = Some(node);
    }

    /// Advances by one tick, and cascades each level whose lower neighbor has wrapped around.
    fn shift(&mut self) {
        self.tick += 1;
        let mut shift = NEAR_BITS;
        for level in 0..LEVELS as usize {
            if self.tick & ((1 << shift) - 1) != 0 {
                return;
            }
            let mut list = self.levels[level][low(self.tick >> shift, LEVEL_BITS)].take();
            while let Some(mut node) = list {
                list = node.next.take();
                self.add(node);
            }
            shift += LEVEL_BITS;
        }
    }

    fn dispatch(&mut self, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        let near = low(self.tick, NEAR_BITS);
        // The outer loop also dispatches timers that a callback arms for this tick.
        while let Some(mut node) = self.near[near].take() {
            loop {
                let rest = node.next.take();
                self.call(*node, fire);
                let Some(next) = rest else { break };
                node = next;
            }
        }
    }

    fn call(&mut self, node: Node, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        if !self.cancelled.is_empty() && self.cancelled.remove(&node.session) {
            return;
        }
        if let Some(next) = fire(node.deadline, &node.payload) {
            self.arm(next, node.payload);
        }
    }
}

impl Queue for Skynet {
    /// The session.
    type Key = u64;

    const EXACT: bool = false;

    fn new(_: usize) -> Self {
        Self {
            near: lists(NEAR_BITS),
            levels: core::array::from_fn(|_| lists(LEVEL_BITS)),
            tick: 0,
            session: 0,
            cancelled: HashSet::default(),
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> u64 {
        self.session += 1;
        self.add(Box::new(Node {
            next: None,
            session: self.session,
            deadline,
            payload,
        }));
        self.session
    }

    fn cancel(&mut self, session: u64) {
        self.cancelled.insert(session);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        self.dispatch(fire);
        while self.tick < now / TICK {
            self.shift();
            self.dispatch(fire);
        }
    }
}

impl Drop for Skynet {
    /// Drops node by node, because the default drop of a long list recurses once per node.
    fn drop(&mut self) {
        for list in self.near.iter_mut().chain(self.levels.iter_mut().flatten()) {
            let mut list = list.take();
            while let Some(mut node) = list {
                list = node.next.take();
            }
        }
    }
}
