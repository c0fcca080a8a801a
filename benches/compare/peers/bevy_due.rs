//! This crate's queue.

use bevy_due::queue::{Key, TimerQueue};

use super::{Payload, Queue};

impl Queue for TimerQueue<Payload> {
    type Key = Key;

    fn new(_: usize) -> Self {
        Self::new()
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> Key {
        self.insert(deadline, payload)
    }

    fn cancel(&mut self, key: Key) {
        self.cancel(key);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while let Some(due) = self.pop_due(now) {
            if let Some(next) = fire(due.deadline(), &due) {
                due.rearm(next);
            }
        }
    }
}
