//! skynet's timing wheel: 256 near lists and four levels of 64, of linked nodes, a tick of 10 ms;
//! each level is cascaded into the one below as a whole. skynet can't cancel: what is cancelled is
//! dropped when it expires.

use super::Queue;

const TICK: u64 = 10_000_000;
const NEAR_BITS: u32 = 8;
const LEVEL_BITS: u32 = 6;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    next: u32,
    armed: bool,
    deadline: u64,
}

pub struct Skynet {
    nodes: Vec<Node>,
    near: Vec<u32>,
    levels: [[u32; 1 << LEVEL_BITS]; 4],
    tick: u64,
}

impl Skynet {
    /// The tick in which a deadline is reached.
    fn tick_of(deadline: u64) -> u64 {
        deadline.div_ceil(TICK)
    }

    fn add(&mut self, id: u32) {
        let time = Self::tick_of(self.nodes[id as usize].deadline).max(self.tick);
        let list = if time | 0xff == self.tick | 0xff {
            &mut self.near[time as usize & 0xff]
        } else {
            let mut level = 0;
            let mut mask = 1 << (NEAR_BITS + LEVEL_BITS);
            while level < 3 && time | (mask - 1) != self.tick | (mask - 1) {
                mask <<= LEVEL_BITS;
                level += 1;
            }
            let shift = NEAR_BITS + level as u32 * LEVEL_BITS;
            &mut self.levels[level][(time >> shift) as usize & ((1 << LEVEL_BITS) - 1)]
        };
        self.nodes[id as usize].next = core::mem::replace(list, id);
    }

    /// Moves on by a tick, and cascades where a level has come round.
    fn shift(&mut self) {
        self.tick += 1;
        let mut time = self.tick >> NEAR_BITS;
        let mut mask = (1 << NEAR_BITS) - 1;
        for level in 0..4 {
            if self.tick & mask != 0 {
                return;
            }
            let at = time as usize & ((1 << LEVEL_BITS) - 1);
            let mut id = core::mem::replace(&mut self.levels[level][at], NONE);
            while id != NONE {
                let next = self.nodes[id as usize].next;
                self.add(id);
                id = next;
            }
            mask = mask << LEVEL_BITS | 0xff;
            time >>= LEVEL_BITS;
        }
    }

    fn dispatch(&mut self, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        let at = self.tick as usize & 0xff;
        while self.near[at] != NONE {
            let mut id = core::mem::replace(&mut self.near[at], NONE);
            while id != NONE {
                let node = self.nodes[id as usize];
                if node.armed {
                    match fire(id, node.deadline) {
                        Some(next) => {
                            self.nodes[id as usize].deadline = next;
                            self.add(id);
                        }
                        None => self.nodes[id as usize].armed = false,
                    }
                }
                id = node.next;
            }
        }
    }
}

impl Queue for Skynet {
    const EXACT: bool = false;

    fn new(ids: usize) -> Self {
        Self {
            nodes: vec![
                Node {
                    next: NONE,
                    armed: false,
                    deadline: 0,
                };
                ids
            ],
            near: vec![NONE; 1 << NEAR_BITS],
            levels: [[NONE; 1 << LEVEL_BITS]; 4],
            tick: 0,
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        let node = &mut self.nodes[id as usize];
        node.armed = true;
        node.deadline = deadline;
        self.add(id);
    }

    fn cancel(&mut self, id: u32) {
        self.nodes[id as usize].armed = false;
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        self.dispatch(fire);
        while self.tick < now / TICK {
            self.shift();
            self.dispatch(fire);
        }
    }
}
