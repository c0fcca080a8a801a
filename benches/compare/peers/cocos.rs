//! cocos2d-x's scheduler: a list of timers per target. Every frame scans all lists and adds the frame
//! time to each timer.

use super::{Payload, Queue};

const TIMERS_PER_TARGET: usize = 4;

struct Timer {
    payload: Payload,
    elapsed: u64,
    interval: u64,
    deadline: u64,
}

pub struct Cocos {
    targets: Vec<Vec<Timer>>,
    now: u64,
}

impl Cocos {
    fn target(&mut self, id: u32) -> &mut Vec<Timer> {
        let targets = self.targets.len();
        &mut self.targets[id as usize / TIMERS_PER_TARGET % targets]
    }
}

impl Queue for Cocos {
    /// The id, which determines the target.
    type Key = u32;

    const EXACT: bool = false;

    fn new(n: usize) -> Self {
        Self {
            targets: (0..n / TIMERS_PER_TARGET).map(|_| Vec::new()).collect(),
            now: 0,
        }
    }

    fn arm(&mut self, deadline: u64, payload: Payload) -> u32 {
        let interval = deadline - self.now;
        self.target(payload.id).push(Timer {
            payload,
            elapsed: 0,
            interval,
            deadline,
        });
        payload.id
    }

    fn cancel(&mut self, id: u32) {
        self.target(id).retain(|timer| timer.payload.id != id);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>) {
        let delta = now - self.now;
        self.now = now;
        for target in &mut self.targets {
            target.retain_mut(|timer| {
                timer.elapsed += delta;
                while timer.elapsed >= timer.interval {
                    timer.elapsed -= timer.interval;
                    let Some(next) = fire(timer.deadline, &timer.payload) else {
                        return false;
                    };
                    timer.interval = next - timer.deadline;
                    timer.deadline = next;
                }
                true
            });
        }
    }

    fn max_frames(n: usize, _: bool) -> usize {
        60_000_000 / n
    }
}
