//! `TrinityCore`'s event processor: a multimap ordered by time, which is a red-black tree of nodes that
//! are allocated one by one.
//!
//! `TrinityCore` keeps an aborted event until it is due. Here it is removed immediately.

use rbtree::RBTree;

use super::{Payload, Queue};

pub struct Trinity {
    events: RBTree<(u64, u64), Payload>,
    sequence: u64,
}

impl Queue for Trinity {
    /// The deadline and the sequence.
    type Key = (u64, u64);

    fn new(_: usize) -> Self {
        Self {
            events: RBTree::new(),
            sequence: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> (u64, u64) {
        self.sequence += 1;
        let key = (deadline, self.sequence);
        self.events.insert(key, payload);
        key
    }

    fn cancel(&mut self, key: (u64, u64)) {
        self.events.remove(&key);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while let Some((&(deadline, _), _)) = self.events.get_first()
            && deadline <= now
            && let Some(((deadline, sequence), payload)) = self.events.pop_first()
        {
            if let Some(next) = fire(deadline, &payload) {
                self.events.insert((next, sequence), payload);
            }
        }
    }
}
