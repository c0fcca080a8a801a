//! `TrinityCore`'s event processor: an ordered map by time. Here with removal when cancelled.

use std::collections::BTreeMap;

use super::Queue;

pub struct Trinity {
    events: BTreeMap<(u64, u64), u32>,
    armed: Vec<(u64, u64)>,
    sequence: u64,
}

impl Queue for Trinity {
    fn new(ids: usize) -> Self {
        Self {
            events: BTreeMap::new(),
            armed: vec![(0, 0); ids],
            sequence: 0,
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        self.sequence += 1;
        self.armed[id as usize] = (deadline, self.sequence);
        self.events.insert((deadline, self.sequence), id);
    }

    fn cancel(&mut self, id: u32) {
        self.events.remove(&self.armed[id as usize]);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        while let Some(first) = self.events.first_entry()
            && first.key().0 <= now
        {
            let ((deadline, sequence), id) = first.remove_entry();
            if let Some(next) = fire(id, deadline) {
                self.armed[id as usize] = (next, sequence);
                self.events.insert((next, sequence), id);
            }
        }
    }
}
