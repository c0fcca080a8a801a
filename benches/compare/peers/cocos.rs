//! cocos2d-x's scheduler: a list of timers for each target, all of them scanned in every frame,
//! each adding up the time that has passed.

use super::Queue;

const TIMERS_OF_A_TARGET: usize = 4;

#[derive(Clone, Copy)]
struct Timer {
    id: u32,
    elapsed: u64,
    interval: u64,
    deadline: u64,
}

pub struct Cocos {
    targets: Vec<Vec<Timer>>,
    now: u64,
}

impl Queue for Cocos {
    const EXACT: bool = false;
    const MOST: usize = 100_000;
    const MOST_FRAMES: usize = 1_000;

    fn new(ids: usize) -> Self {
        Self {
            targets: vec![Vec::new(); ids.div_ceil(TIMERS_OF_A_TARGET)],
            now: 0,
        }
    }

    fn arm(&mut self, id: u32, deadline: u64) {
        self.targets[id as usize / TIMERS_OF_A_TARGET].push(Timer {
            id,
            elapsed: 0,
            interval: deadline - self.now,
            deadline,
        });
    }

    fn cancel(&mut self, id: u32) {
        let target = &mut self.targets[id as usize / TIMERS_OF_A_TARGET];
        target.retain(|timer| timer.id != id);
    }

    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>) {
        let delta = now - self.now;
        self.now = now;
        for target in &mut self.targets {
            target.retain_mut(|timer| {
                timer.elapsed += delta;
                while timer.elapsed >= timer.interval {
                    timer.elapsed -= timer.interval;
                    let Some(next) = fire(timer.id, timer.deadline) else {
                        return false;
                    };
                    timer.interval = next - timer.deadline;
                    timer.deadline = next;
                }
                true
            });
        }
    }
}
