//! `std::collections::BTreeMap`: an ordered map at its best, with many timers per node.

use std::collections::BTreeMap;

use super::{Payload, Queue};

pub struct StdBTreeMap {
    timers: BTreeMap<(u64, u64), Payload>,
    sequence: u64,
}

impl Queue for StdBTreeMap {
    /// The deadline and the sequence.
    type Key = (u64, u64);

    fn new(_: usize) -> Self {
        Self {
            timers: BTreeMap::new(),
            sequence: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> (u64, u64) {
        self.sequence += 1;
        let key = (deadline, self.sequence);
        self.timers.insert(key, payload);
        key
    }

    fn cancel(&mut self, key: (u64, u64)) {
        self.timers.remove(&key);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= now
        {
            let ((deadline, sequence), payload) = first.remove_entry();
            if let Some(next) = fire(deadline, &payload) {
                self.timers.insert((next, sequence), payload);
            }
        }
    }
}
