//! The queue beside a sorted map.

use std::collections::BTreeMap;

use bevy_due::queue::{Due, Key, NEVER, TimerQueue};

use super::bytes::Bytes;

/// The number of timers in a script. It fills the buckets of a large queue, and stays quick.
const MAX_TIMERS: usize = 4096;

/// Runs operations on a [`TimerQueue`] and on a map, and compares the two.
///
/// # Panics
///
/// Panics if they differ.
pub fn queue(bytes: &[u8]) {
    let mut bytes = Bytes::new(bytes);
    let mut game = Game::default();
    while !bytes.is_empty() {
        game.run_op(&mut bytes);
        game.compare_first();
    }
    game.compare_all();
    game.drain();
}

/// The queue and the map. A timer is named by its index in `keys`.
#[derive(Default)]
struct Game {
    queue: TimerQueue<usize>,
    keys: Vec<Key>,
    model: Model,
    now: u64,
}

/// Deadlines with sequence numbers.
#[derive(Default)]
struct Model {
    /// All timers, by name.
    timers: BTreeMap<usize, (u64, u64)>,
    /// The names of the timers that wait. The others are idle.
    waiting: BTreeMap<(u64, u64), usize>,
    next_sequence: u64,
}

impl Model {
    fn insert(&mut self, name: usize, deadline: u64, is_parked: bool) {
        self.timers.insert(name, (deadline, self.next_sequence));
        self.next_sequence += 1;
        self.set(name, deadline, is_parked);
    }

    /// Gives a timer a deadline. Returns `true` if it exists.
    fn set(&mut self, name: usize, deadline: u64, is_parked: bool) -> bool {
        let Some(timer) = self.timers.get_mut(&name) else {
            return false;
        };
        self.waiting.remove(timer);
        timer.0 = deadline;
        if !is_parked && deadline != NEVER {
            self.waiting.insert(*timer, name);
        }
        true
    }

    fn is_idle(&self, name: usize) -> bool {
        let timer = self.timers.get(&name);
        timer.is_some_and(|timer| !self.waiting.contains_key(timer))
    }

    fn remove(&mut self, name: usize) -> Option<usize> {
        let timer = self.timers.remove(&name)?;
        self.waiting.remove(&timer);
        Some(name)
    }

    fn deadline(&self, name: usize) -> Option<u64> {
        self.timers.get(&name).map(|timer| timer.0)
    }
}

impl Game {
    fn run_op(&mut self, bytes: &mut Bytes) {
        match bytes.below(12) {
            0 => {
                let deadline = self.deadline(bytes);
                self.insert(deadline, false);
            }
            1 => {
                let deadline = self.deadline(bytes);
                self.insert(deadline, true);
            }
            2 => {
                let (count, first, step) = (bytes.byte(), self.deadline(bytes), span(bytes));
                for nth in 0..(u64::from(count) + 1) * 8 {
                    self.insert(first.saturating_add(nth.wrapping_mul(step)), false);
                }
            }
            3 => {
                let (name, deadline) = (self.name(bytes), self.deadline(bytes));
                if let Some(&key) = self.keys.get(name) {
                    let known = self.queue.park(key, deadline);
                    assert_eq!(known, self.model.set(name, deadline, true), "park {name}");
                }
            }
            4 => {
                let name = self.name(bytes);
                if let Some(&key) = self.keys.get(name) {
                    let is_idle = self.model.is_idle(name);
                    assert_eq!(self.queue.release(key), is_idle, "release {name}");
                    let deadline = self.model.deadline(name).unwrap_or(NEVER);
                    self.model.set(name, deadline, false);
                }
            }
            5 => {
                let (name, deadline) = (self.name(bytes), self.deadline(bytes));
                self.arm(name, deadline);
            }
            6 => {
                let name = self.name(bytes);
                self.arm(name, self.model.deadline(name).unwrap_or(0));
            }
            7 => {
                let name = self.name(bytes);
                self.cancel(name);
            }
            8 => {
                let (first, step) = (self.name(bytes), bytes.below(16) + 1);
                for name in (first..self.keys.len()).step_by(step) {
                    self.cancel(name);
                }
            }
            9 => self.now = self.now.saturating_sub(span(bytes)),
            _ => {
                self.now = self.now.saturating_add(span(bytes));
                let (most, rearm_every, interval) = (bytes.byte(), bytes.below(4), span(bytes));
                self.pop(usize::from(most) * 64, rearm_every, interval);
                (0..most).for_each(|_| self.queue.trim());
            }
        }
    }

    fn insert(&mut self, deadline: u64, is_parked: bool) {
        let name = self.keys.len();
        if name == MAX_TIMERS {
            return;
        }
        let key = match is_parked {
            true => self.queue.insert_parked(deadline, name),
            false => self.queue.insert(deadline, name),
        };
        self.keys.push(key);
        self.model.insert(name, deadline, is_parked);
    }

    fn arm(&mut self, name: usize, deadline: u64) {
        if let Some(&key) = self.keys.get(name) {
            let known = self.queue.arm(key, deadline);
            assert_eq!(known, self.model.set(name, deadline, false), "arm {name}");
        }
    }

    fn cancel(&mut self, name: usize) {
        if let Some(&key) = self.keys.get(name) {
            let value = self.queue.cancel(key);
            assert_eq!(value, self.model.remove(name), "cancel {name}");
        }
    }

    /// Pops up to `most` timers. Re-arms one in `rearm_every`.
    fn pop(&mut self, most: usize, rearm_every: usize, interval: u64) {
        for nth in 0..most {
            let first = self.model.waiting.first_key_value();
            let first = first.map(|(&(deadline, _), &name)| (deadline, name));
            let first = first.filter(|(deadline, _)| *deadline <= self.now);
            let due = self.queue.pop_due(self.now);
            let popped = due.as_ref().map(|due| (due.deadline(), **due));
            assert_eq!(popped, first, "the first timer due at {}", self.now);
            let (Some(due), Some((deadline, name))) = (due, first) else {
                return;
            };
            assert_eq!(due.key(), self.keys[name]);
            if rearm_every > 0 && nth % rearm_every == 0 && nth < 300 {
                let next = deadline.saturating_add(interval);
                due.rearm(next);
                self.model.set(name, next, false);
            } else {
                remove(due, nth, name);
                self.model.remove(name);
            }
        }
    }

    fn compare_first(&self) {
        let first = self.model.waiting.first_key_value();
        let first = first.map(|((deadline, _), _)| *deadline);
        assert_eq!(self.queue.next_deadline(), first);
        assert_eq!(self.queue.len(), self.model.timers.len());
        assert_eq!(self.queue.is_empty(), self.model.timers.is_empty());
    }

    fn compare_all(&self) {
        for (name, &key) in self.keys.iter().enumerate() {
            let deadline = self.model.deadline(name);
            assert_eq!(self.queue.deadline(key), deadline, "timer {name}");
            assert_eq!(self.queue.get(key).copied(), deadline.map(|_| name));
        }
        let until = self.now.saturating_add(1 << 30);
        let waiting = self.model.waiting.range(..=(until, u64::MAX));
        let waiting = waiting.map(|(_, &name)| self.keys[name]);
        assert!(waiting.eq(self.queue.waiting_until(until)));
        let mut listed: Vec<_> = self.queue.iter().map(|(_, at, &name)| (name, at)).collect();
        listed.sort_unstable();
        let timers = self
            .model
            .timers
            .iter()
            .map(|(&name, timer)| (name, timer.0));
        assert!(timers.eq(listed));
    }

    /// Pops all timers that wait. The idle ones stay.
    fn drain(&mut self) {
        self.now = NEVER;
        self.pop(usize::MAX, 0, 0);
        self.compare_first();
        assert!(self.queue.waiting_until(NEVER).is_empty());
    }

    fn name(&self, bytes: &mut Bytes) -> usize {
        let name = usize::from(bytes.byte()) << 8 | usize::from(bytes.byte());
        name % self.keys.len().max(1)
    }

    fn deadline(&self, bytes: &mut Bytes) -> u64 {
        match bytes.byte() {
            // Close to the end of time.
            byte @ 240.. => NEVER - u64::from(byte - 240),
            // In the past.
            byte @ 224.. => self.now.saturating_sub(u64::from(byte - 224) << 23),
            byte => self.now.saturating_add(wide(byte)),
        }
    }
}

/// Removes a popped timer in one of two ways.
fn remove(due: Due<usize>, nth: usize, name: usize) {
    if nth.is_multiple_of(2) {
        assert_eq!(due.into_value(), name);
    }
}

fn span(bytes: &mut Bytes) -> u64 {
    wide(bytes.byte())
}

/// Spreads a byte over the widths of the queue: single units, buckets, rings and levels.
fn wide(byte: u8) -> u64 {
    let small = u64::from(byte & 31);
    match byte >> 5 {
        0 | 1 => small,
        2 => small << 20,
        3 => small << 24,
        4 => small << 28,
        5 => small << 33,
        6 => small << 41,
        _ => 1 << (small + 27),
    }
}
