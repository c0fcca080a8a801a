//! The crate `hierarchical_hash_wheel_timer`: four wheels of 256 lists, with ticks of 1 ms.
//!
//! Its cancellable wheel allocates each timer and looks it up in a hash map. The plain wheel with a table
//! of cancelled timers, as here, is several times faster.

use core::time::Duration;

use hierarchical_hash_wheel_timer::wheels::{Skip, quad_wheel::QuadWheelWithOverflow};

use super::{Payload, Queue};

const TICK: u64 = 1_000_000;

#[derive(Debug)]
struct Entry {
    deadline: u64,
    slot: u32,
    payload: Payload,
}

pub struct HashWheel {
    wheel: QuadWheelWithOverflow<Entry>,
    /// Whether the timer in a slot is cancelled. It keeps its slot until it expires.
    cancelled: Vec<bool>,
    free: Vec<u32>,
    tick: u64,
}

impl HashWheel {
    fn add(&mut self, entry: Entry) {
        // An overdue timer waits for the next tick.
        let delay = entry
            .deadline
            .div_ceil(TICK)
            .saturating_sub(self.tick)
            .max(1);
        let added = self
            .wheel
            .insert_with_delay(entry, Duration::from_millis(delay));
        assert!(
            added.is_ok(),
            "a delay of at least one tick should be accepted"
        );
    }

    /// Advances by one tick and returns the timers that are due, or skips ticks in which none is due.
    fn advance(&mut self, until: u64) -> Vec<Entry> {
        let most = (until - self.tick) as u32;
        let skip = match self.wheel.can_skip() {
            Skip::Empty => most,
            Skip::Millis(millis) => millis.min(most),
            Skip::None => {
                self.tick += 1;
                return self.wheel.tick();
            }
        };
        self.wheel.skip(skip);
        self.tick += u64::from(skip);
        Vec::new()
    }
}

impl Queue for HashWheel {
    /// The slot.
    type Key = u32;

    const EXACT: bool = false;

    fn new(_: usize) -> Self {
        Self {
            wheel: QuadWheelWithOverflow::default(),
            cancelled: Vec::new(),
            free: Vec::new(),
            tick: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.cancelled.push(false);
            self.cancelled.len() as u32 - 1
        });
        self.cancelled[slot as usize] = false;
        self.add(Entry {
            deadline,
            slot,
            payload,
        });
        slot
    }

    fn cancel(&mut self, slot: u32) {
        self.cancelled[slot as usize] = true;
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        while self.tick < now / TICK {
            for entry in self.advance(now / TICK) {
                if !self.cancelled[entry.slot as usize]
                    && let Some(deadline) = fire(entry.deadline, &entry.payload)
                {
                    self.add(Entry { deadline, ..entry });
                } else {
                    self.free.push(entry.slot);
                }
            }
        }
    }
}
