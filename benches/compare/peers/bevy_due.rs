//! The queue of this crate.

use bevy_due::queue::{TimerKey, TimerQueue};

use super::Queue;

pub struct BevyDue {
    queue: TimerQueue<u32>,
    keys: Vec<Option<TimerKey>>,
}

impl Queue for BevyDue {
    fn new(ids: usize) -> Self {
        Self {
            queue: TimerQueue::new(),
            keys: vec![None; ids],
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        self.keys[id as usize] = Some(self.queue.insert(deadline, id));
    }

    fn cancel(&mut self, id: u32) {
        if let Some(key) = self.keys[id as usize] {
            self.queue.cancel(key);
        }
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        while let Some(due) = self.queue.pop_due(now) {
            if let Some(next) = fire(*due, due.deadline()) {
                due.rearm(next);
            }
        }
    }
}
