//! Property tests: the queue behaves like a list that is searched for its minimum.

use std::{prelude::rust_2024::*, vec::Vec};

use proptest::prelude::*;

use super::{Key, NEVER, SHAPE, Shape, TimerQueue};

/// Sizes so small that every level, every move and every wrap-around is common.
const TINY: Shape = Shape {
    width_bits: 1,
    ring_bits: 3,
    level_bits: 2,
    wheel_threshold: 3,
};

/// The real bucket sizes, with a wheel even in a small queue.
const WHEEL_ONLY: Shape = Shape {
    wheel_threshold: 0,
    ..SHAPE
};

/// A queue that is obviously correct.
#[derive(Default)]
struct Oracle {
    timers: Vec<OracleTimer>,
    next_sequence: u64,
}

struct OracleTimer {
    deadline: u64,
    sequence: u64,
    name: usize,
    parked: bool,
}

impl Oracle {
    fn insert(&mut self, name: usize, deadline: u64, parked: bool) {
        self.timers.push(OracleTimer {
            deadline,
            sequence: self.next_sequence,
            name,
            parked,
        });
        self.next_sequence += 1;
    }

    fn set(&mut self, name: usize, deadline: u64, parked: bool) -> bool {
        let Some(timer) = self.timers.iter_mut().find(|timer| timer.name == name) else {
            return false;
        };
        (timer.deadline, timer.parked) = (deadline, parked);
        true
    }

    fn release(&mut self, name: usize) -> bool {
        let mut parked = self.timers.iter_mut();
        let parked = parked.find(|timer| timer.name == name && timer.parked);
        parked.map(|timer| timer.parked = false).is_some()
    }

    /// Returns the names of the timers that wait for a deadline at or before `until`, in order.
    fn waiting_until(&self, until: u64) -> Vec<usize> {
        let mut waiting: Vec<_> = self
            .timers
            .iter()
            .filter(|timer| !timer.parked && timer.deadline <= until && timer.deadline != NEVER)
            .map(|timer| (timer.deadline, timer.sequence, timer.name))
            .collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(.., name)| name).collect()
    }

    fn cancel(&mut self, name: usize) -> Option<usize> {
        let index = self.timers.iter().position(|timer| timer.name == name)?;
        Some(self.timers.remove(index).name)
    }

    fn first(&self) -> Option<&OracleTimer> {
        self.timers
            .iter()
            .filter(|timer| !timer.parked && timer.deadline != NEVER)
            .min_by_key(|timer| (timer.deadline, timer.sequence))
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert(u64),
    InsertParked(u64),
    Park(usize, u64),
    ParkAnew(usize, u64),
    Release(usize),
    Arm(usize, u64),
    /// Re-arms the timer for its current deadline.
    ArmAgain(usize),
    Cancel(usize),
    /// Moves `now` back.
    GoBack(u64),
    /// Gives memory back in so many frames.
    Trim(u32),
    /// Cancels every timer that was inserted at or after this one.
    CancelFrom(usize),
    /// Moves `now` forward by `advance` and pops all due timers. Re-arms every `rearm_every`-th of
    /// them, with `in_one_loop` those of the sorted list without popping them.
    Pop {
        advance: u64,
        rearm_every: usize,
        interval: u64,
        in_one_loop: bool,
    },
}

/// Returns mostly close deadlines, so that many are equal, and some that are far away or near the
/// end of time.
fn deadline() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..40_u64,
        3 => 0..2_000_u64,
        1 => (0..50_u32).prop_map(|bits| 1 << bits),
        1 => (NEVER - 20)..=NEVER,
    ]
}

/// Returns mostly frames, and some jumps.
fn advance() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..30_u64,
        2 => 0..2_000_u64,
        1 => (0..50_u32).prop_map(|bits| 1 << bits),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => deadline().prop_map(Op::Insert),
        1 => deadline().prop_map(Op::InsertParked),
        2 => (0..200_usize, deadline()).prop_map(|(name, at)| Op::Park(name, at)),
        1 => (0..200_usize, deadline()).prop_map(|(name, at)| Op::ParkAnew(name, at)),
        3 => (0..200_usize).prop_map(Op::Release),
        3 => (0..200_usize, deadline()).prop_map(|(name, at)| Op::Arm(name, at)),
        2 => (0..200_usize).prop_map(Op::ArmAgain),
        4 => (0..200_usize).prop_map(Op::Cancel),
        1 => advance().prop_map(Op::GoBack),
        3 => (1..8_u32).prop_map(Op::Trim),
        1 => (0..200_usize).prop_map(Op::CancelFrom),
        3 => (advance(), 1..4_usize, 1..20_u64, any::<bool>()).prop_map(
            |(advance, rearm_every, interval, in_one_loop)| Op::Pop {
                advance,
                rearm_every,
                interval,
                in_one_loop,
            },
        ),
    ]
}

fn run(shape: Shape, start: u64, scale: u64, ops: &[Op]) {
    let mut queue = TimerQueue::with_shape(shape);
    // Sequence numbers must work up to their maximum, too.
    queue.next_sequence = u64::MAX - 1000;
    let mut oracle = Oracle::default();
    let mut keys: Vec<Key> = Vec::new();
    let mut now = start;
    for &op in ops {
        match op {
            Op::Insert(after) => {
                let deadline = now.saturating_add(after.saturating_mul(scale));
                oracle.insert(keys.len(), deadline, false);
                let key = queue.insert(deadline, keys.len());
                add_new(&mut keys, key);
            }
            Op::InsertParked(after) => {
                let deadline = now.saturating_add(after.saturating_mul(scale));
                oracle.insert(keys.len(), deadline, true);
                let key = queue.insert_parked(deadline, keys.len());
                add_new(&mut keys, key);
            }
            Op::Trim(frames) => (0..frames).for_each(|_| queue.trim()),
            Op::CancelFrom(name) => {
                for (name, &key) in keys.iter().enumerate().skip(name) {
                    assert_eq!(queue.cancel(key), oracle.cancel(name));
                }
            }
            Op::Park(name, after) if name < keys.len() => {
                let deadline = now.saturating_add(after.saturating_mul(scale));
                let parked = queue.park(keys[name], deadline);
                assert_eq!(parked, oracle.set(name, deadline, true));
            }
            Op::ParkAnew(name, after) if name < keys.len() => {
                let deadline = now.saturating_add(after.saturating_mul(scale));
                let parked = queue.park(keys[name], deadline);
                let sequence = queue.take_sequence();
                queue.set_sequence(keys[name], sequence);
                assert_eq!(parked, oracle.cancel(name).is_some());
                if parked {
                    oracle.insert(name, deadline, true);
                }
            }
            Op::Release(name) if name < keys.len() => {
                let never = queue.deadline(keys[name]) == Some(NEVER);
                let released = queue.release(keys[name]);
                assert_eq!(released, oracle.release(name) || never);
            }
            Op::Arm(name, after) if name < keys.len() => {
                let deadline = now.saturating_add(after.saturating_mul(scale));
                let armed = queue.arm(keys[name], deadline);
                assert_eq!(armed, oracle.set(name, deadline, false));
            }
            Op::Cancel(name) if name < keys.len() => {
                assert_eq!(queue.cancel(keys[name]), oracle.cancel(name));
            }
            Op::ArmAgain(name) if name < keys.len() => {
                if let Some(deadline) = queue.deadline(keys[name]) {
                    assert!(queue.arm(keys[name], deadline));
                    oracle.set(name, deadline, false);
                }
            }
            Op::Arm(..)
            | Op::ArmAgain(_)
            | Op::Cancel(_)
            | Op::Park(..)
            | Op::ParkAnew(..)
            | Op::Release(_) => {}
            Op::GoBack(by) => now = now.saturating_sub(by.saturating_mul(scale)),
            Op::Pop {
                advance,
                rearm_every,
                interval,
                in_one_loop,
            } => {
                now = now.saturating_add(advance.saturating_mul(scale));
                let mut popped = 0;
                // Stop re-arming at some point, because a long jump contains too many intervals.
                let rearms = |popped: usize| popped.is_multiple_of(rearm_every) && popped < 300;
                loop {
                    let rearmed = queue.rearm_listed(now, |deadline, &mut name| {
                        let first = oracle.first().map(|first| (first.deadline, first.name));
                        assert_eq!(first, Some((deadline, name)));
                        assert!(deadline <= now, "no timer should pop early");
                        if !in_one_loop || !rearms(popped + 1) {
                            return None;
                        }
                        popped += 1;
                        let next = deadline.saturating_add(interval.saturating_mul(scale));
                        oracle.set(name, next, false);
                        Some((next, ()))
                    });
                    rearmed.for_each(drop);
                    let Some(due) = queue.pop_due(now) else {
                        break;
                    };
                    let first = oracle
                        .first()
                        .expect("the queue pops a timer that the oracle does not have");
                    assert_eq!((due.deadline(), *due), (first.deadline, first.name));
                    assert!(due.deadline() <= now, "no timer should pop early");
                    let name = *due;
                    popped += 1;
                    if rearms(popped) {
                        let next = due
                            .deadline()
                            .saturating_add(interval.saturating_mul(scale));
                        oracle.set(name, next, false);
                        due.rearm(next);
                    } else {
                        oracle.cancel(name);
                        drop(due);
                    }
                }
                assert!(
                    oracle.first().is_none_or(|first| first.deadline > now),
                    "all due timers should pop"
                );
            }
        }
        assert_eq!(queue.len(), oracle.timers.len());
        assert_eq!(
            queue.next_deadline(),
            oracle.first().map(|first| first.deadline)
        );
        let look = queue.first_look();
        assert!(
            oracle
                .first()
                .is_none_or(|first| look.is_some_and(|look| look <= first.deadline)),
            "the first look at {look:?} would be too late"
        );
    }
    let names = |keys: Vec<Key>| -> Vec<usize> {
        keys.iter()
            .filter_map(|&key| queue.get(key).copied())
            .collect()
    };
    for until in [now, now.saturating_add(1000), NEVER] {
        let waiting = names(queue.waiting_until(until));
        assert_eq!(waiting, oracle.waiting_until(until));
    }
    assert_eq!(queue.iter().count(), queue.len());
    for (name, key) in keys.iter().enumerate() {
        let listed = oracle.timers.iter().find(|timer| timer.name == name);
        assert_eq!(queue.deadline(*key), listed.map(|timer| timer.deadline));
        assert_eq!(queue.get(*key).copied(), listed.map(|timer| timer.name));
    }
    for &key in &keys {
        queue.cancel(key);
    }
    assert!(queue.is_empty());
    (0..500).for_each(|_| queue.trim());
    assert_eq!(queue.held(), 0, "an empty queue should keep nothing");
    for _ in 0..20 {
        add_new(&mut keys, queue.insert(0, 0));
    }
}

/// Adds a key that no timer has had before.
fn add_new(keys: &mut Vec<Key>, key: Key) {
    assert!(!keys.contains(&key), "{key:?} was used before");
    keys.push(key);
}

/// Twenty thousand timers exceed the heap, a page and a chunk.
#[test]
fn twenty_thousand_timers_pop_in_sorted_order() {
    let mut queue = TimerQueue::new();
    let deadline = |timer: u64| timer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29 & !0xffff;
    let mut listed: Vec<(u64, u64)> = (0..20_000).map(|timer| (deadline(timer), timer)).collect();
    let keys: Vec<Key> = listed
        .iter()
        .map(|&(at, timer)| queue.insert(at, timer))
        .collect();
    listed.retain(|&(_, timer)| timer % 3 != 0);
    for key in keys.iter().step_by(3) {
        assert!(queue.cancel(*key).is_some());
    }
    listed.sort_unstable();
    let mut popped = Vec::new();
    for now in (0..=1 << 35).step_by(1 << 24) {
        while let Some(due) = queue.pop_due(now) {
            popped.push((due.deadline(), *due));
        }
    }
    assert!(popped == listed, "the order differs");
}

#[test]
fn an_empty_wheel_restarts_when_time_goes_back() {
    let mut queue = TimerQueue::new();
    // Longer than the ring.
    for timer in 0..5000 {
        queue.insert(timer << 26, 0);
    }
    while queue.pop_due(1 << 50).is_some() {}
    let last = queue.insert((1 << 50) + (1 << 40), 0);
    assert!(queue.pop_due(0).is_none());
    queue.cancel(last);
    for timer in 0..5000 {
        queue.insert((1 << 30) + (timer << 22), 0);
    }
    assert!(
        queue.near.heap.len() < 10,
        "the timers should be in buckets"
    );
}

impl<T> TimerQueue<T> {
    /// Returns the number of timers for which the queue holds memory, apart from short buffers.
    pub(super) fn held(&self) -> usize {
        let buffers = self.near.capacities().filter(|&capacity| capacity > 16);
        let wheels = [&self.wheel, &self.trim.retired];
        let in_wheels = wheels
            .into_iter()
            .flatten()
            .map(|wheel| 1 + wheel.capacity());
        self.slots.capacity() + in_wheels.sum::<usize>() + buffers.sum::<usize>()
    }
}

proptest! {
    #[test]
    fn the_queue_behaves_like_a_sorted_list(ops in prop::collection::vec(op(), 0..300)) {
        run(SHAPE, 0, 1, &ops);
    }

    #[test]
    fn tiny_buckets_behave_like_a_sorted_list(ops in prop::collection::vec(op(), 0..300)) {
        run(TINY, 0, 1, &ops);
    }

    #[test]
    fn real_buckets_behave_like_a_sorted_list(
        ops in prop::collection::vec(op(), 0..300),
        width in prop::sample::select(&[0, 20, 24, 28, 33][..]),
    ) {
        run(WHEEL_ONLY, 0, 1 << width, &ops);
    }

    #[test]
    fn the_queue_behaves_like_a_sorted_list_at_the_end_of_time(ops in prop::collection::vec(op(), 0..300)) {
        for shape in [SHAPE, TINY, WHEEL_ONLY] {
            run(shape, NEVER - 200, 1, &ops);
        }
    }
}
