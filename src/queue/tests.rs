//! Unit tests: what the queue counts, and when it has buckets.

mod cost;

use alloc::vec::Vec;

use super::{Key, SHAPE, Shape, TimerQueue};

#[test]
fn each_entry_counts_when_it_is_added_and_when_its_bucket_is_loaded() {
    let mut queue = queue_with_buckets();
    let keys = [10, 20, 30, 40].map(|deadline| queue.insert(deadline, ()));
    assert_eq!(queue.touched(), 5, "one on the heap, four in a bucket");
    drop(queue.pop_due(0));
    assert_eq!(queue.touched(), 5 + 4, "a loaded bucket");
    queue.cancel(keys[1]);
    queue.pop_due(10).expect("due").rearm(15);
    assert_eq!(queue.touched(), 10, "a removal and an insertion");
    queue.pop_due(15).expect("due").rearm(50);
    assert_eq!(queue.touched(), 11, "a timer that stays on the heap");
}

/// Returns a queue with buckets and one timer that is due at zero, on the heap.
fn queue_with_buckets() -> TimerQueue<()> {
    let mut queue = TimerQueue::with_shape(Shape {
        wheel_threshold: 0,
        ..SHAPE
    });
    queue.insert(0, ());
    queue
}

#[test]
fn cancelled_timers_leave_their_buckets_in_batches() {
    let mut queue = queue_with_buckets();
    let keys: Vec<Key> = (1..=64).map(|nth| queue.insert(nth << 24, ())).collect();
    let in_buckets = |queue: &TimerQueue<()>| queue.wheel.as_ref().map(|wheel| wheel.len());
    for &key in &keys[..63] {
        queue.cancel(key);
    }
    assert_eq!(in_buckets(&queue), Some(64), "63 cancelled timers");
    assert_eq!(queue.len(), 2);
    queue.cancel(keys[63]);
    assert_eq!(in_buckets(&queue), Some(0), "64 of them");
}

#[test]
fn a_queue_has_no_buckets_below_the_threshold() {
    let mut queue = TimerQueue::new();
    for deadline in 1..SHAPE.wheel_threshold as u64 {
        queue.insert(deadline, ());
    }
    assert!(queue.wheel.is_none(), "one timer below the threshold");
    queue.insert(0, ());
    assert!(queue.wheel.is_some(), "at the threshold");
}

#[test]
fn a_timer_with_a_sequence_of_the_caller_takes_its_place() {
    let mut queue = TimerQueue::new();
    let [a, b, c] = [3, 1, 2].map(|sequence| queue.insert_parked_at(sequence, 10, sequence));
    queue.set_sequence(b, 4);
    for key in [a, b, c] {
        assert!(queue.release(key));
    }
    let order = [(); 3].map(|()| queue.pop_due(10).map(|due| due.key()));
    assert_eq!(order, [Some(c), Some(a), Some(b)]);
}

/// Buckets of 16 in a ring of 1024, of 512 in level 1, and of 4096 in level 2.
const SMALL: Shape = Shape {
    width_bits: 4,
    ring_bits: 6,
    level_bits: 4,
    wheel_threshold: 0,
};

/// Pops all timers until `end`, one bucket of the ring after another. Returns the number of touched
/// entries, and the largest number in one step.
fn step_to(queue: &mut TimerQueue<()>, end: u64) -> (u64, u64) {
    let (start, mut worst) = (queue.touched(), 0);
    for now in (queue.now..=end).step_by(16) {
        worst = worst.max(pop_all(queue, now));
    }
    (queue.touched() - start, worst)
}

/// Pops all timers that are due, and returns the number of touched entries.
fn pop_all(queue: &mut TimerQueue<()>, now: u64) -> u64 {
    let before = queue.touched();
    while let Some(due) = queue.pop_due(now) {
        drop(due);
    }
    queue.touched() - before
}

#[test]
fn the_timers_of_wide_buckets_move_down_a_few_at_a_time() {
    const TIMERS: u64 = 3000;
    let mut queue = TimerQueue::with_shape(SMALL);
    queue.insert(0, ());
    step_to(&mut queue, 0);
    for nth in 0..TIMERS {
        queue.insert(5 * 4096 + nth * 4096 / 1000, ());
    }
    let (touched, worst) = step_to(&mut queue, 8 * 4096);
    assert!(queue.is_empty());
    assert_eq!(touched, 3 * TIMERS, "two moves, and each timer is loaded");
    // A bucket of the ring has four timers. Six move out of level 2 at a time, because it must be
    // done early.
    assert!(worst <= 18, "{worst} entries in one step");
}

#[test]
fn a_queue_that_is_left_alone_until_its_next_step_takes_no_larger_steps() {
    const TIMERS: u64 = 3000;
    for (start, span) in [
        (1024, 512),
        (4096, 4096),
        (5 * 4096, 3 * 4096),
        (40 * 4096, 9000),
    ] {
        let filled = || {
            let mut queue = TimerQueue::with_shape(SMALL);
            queue.insert(0, ());
            step_to(&mut queue, 0);
            for nth in 0..TIMERS {
                queue.insert(start + nth * span / TIMERS, ());
            }
            queue
        };
        let stepped = step_to(&mut filled(), start + span);
        let mut queue = filled();
        let before = queue.touched();
        let (mut steps, mut worst) = (0, 0);
        while let Some(next) = queue.first_look() {
            // All timers of a bucket pop at its end.
            worst = worst.max(pop_all(&mut queue, next | 15));
            steps += 1;
        }
        assert!(queue.is_empty());
        // A timer may move once more or less, because the levels advance in other steps.
        let differ = stepped.0.abs_diff(queue.touched() - before);
        assert!(differ < 10, "{differ} more or less, from {start} on");
        assert!(
            worst <= stepped.1,
            "{worst} instead of {}, from {start} on",
            stepped.1
        );
        assert!(
            steps < (start + span) / 16,
            "{steps} steps, from {start} on"
        );
    }
}

#[test]
fn each_level_reaches_as_far_as_ever_after_a_jump() {
    const TIMERS: u64 = 125;
    let mut queue = TimerQueue::with_shape(SMALL);
    queue.insert(0, ());
    queue.insert(1 << 40, ());
    step_to(&mut queue, 0);
    let now = 1000 * 512;
    assert!(queue.pop_due(now).is_none());
    for nth in 0..TIMERS {
        queue.insert(now + 5 * 512 + nth * 4, ());
    }
    let (touched, worst) = step_to(&mut queue, now + 6 * 512);
    assert_eq!(queue.len(), 1);
    assert_eq!(touched, 2 * TIMERS, "one move, and each timer is loaded");
    assert!(worst <= 12, "{worst} entries in one step");
}

/// Returns a queue of so many timers that are far away, and their keys.
fn filled(timers: u64) -> (TimerQueue<u64>, Vec<Key>) {
    let mut queue = TimerQueue::with_shape(SMALL);
    let keys = (0..timers).map(|nth| queue.insert(1 << 20 | nth << 4, nth));
    let keys = keys.collect();
    (queue, keys)
}

fn trim(queue: &mut TimerQueue<u64>, frames: u32) {
    (0..frames).for_each(|_| queue.trim());
}

#[test]
fn a_queue_gives_its_memory_back_a_page_at_a_time() {
    let (mut queue, keys) = filled(400);
    for key in keys {
        queue.cancel(key);
    }
    let full = queue.held();
    let mut before = full;
    for _ in 0..full {
        queue.trim();
        let now = queue.held();
        // A page of slots and one of chunks, and the wheel at the end.
        assert!(before - now <= 8 + 8 + 1, "{before} timers, then {now}");
        before = now;
    }
    assert_eq!(before, 0);
}

/// The queue may have grown while it held the timers that last.
#[test]
fn a_few_timers_hold_only_their_pages() {
    for kept in [0, 200, 399] {
        let (mut queue, keys) = filled(400);
        for (nth, &key) in keys.iter().enumerate() {
            if nth != kept {
                queue.cancel(key);
            }
        }
        trim(&mut queue, 500);
        let held = queue.held();
        assert!(held <= 30, "the timer {kept} holds memory of {held}");
        assert_eq!(queue.get(keys[kept]), Some(&(kept as u64)));
        assert_eq!(queue.iter().count(), 1);
        let due = queue.pop_due(u64::MAX).expect("one is left");
        assert_eq!(due.key(), keys[kept]);
    }
}

#[test]
fn a_queue_without_pages_becomes_shorter_too() {
    let mut queue = TimerQueue::new();
    let keys = [1, 2, 3, 4].map(|deadline| queue.insert(deadline, deadline));
    for key in &keys[1..] {
        queue.cancel(*key);
    }
    trim(&mut queue, 10);
    assert_eq!(queue.slots.capacity(), 2, "one timer is left");
    queue.cancel(keys[0]);
    trim(&mut queue, 10);
    assert_eq!(queue.slots.capacity(), 0);
    let new = [1, 2, 3, 4].map(|deadline| queue.insert(deadline, deadline));
    assert!(keys.iter().all(|key| queue.get(*key).is_none()));
    assert!(new.iter().all(|key| !keys.contains(key)));
}

#[test]
fn memory_that_is_needed_again_and_again_stays() {
    let mut queue = TimerQueue::with_shape(SMALL);
    let burst = |queue: &mut TimerQueue<u64>| {
        let keys: Vec<Key> = (0..400)
            .map(|nth| queue.insert(1 << 20 | nth, nth))
            .collect();
        for key in keys {
            queue.cancel(key);
        }
        queue.trim();
        queue.held()
    };
    (0..5).for_each(|_| _ = burst(&mut queue));
    let held = burst(&mut queue);
    for _ in 0..50 {
        assert_eq!(burst(&mut queue), held);
    }
}

#[test]
fn a_slot_with_few_generations_left_is_not_given_back() {
    let (mut queue, keys) = filled(100);
    queue.slots.at_mut(keys[20].index()).age_to(u32::MAX - 5);
    for key in keys {
        queue.cancel(key);
    }
    let aged = queue.slots.at(20).key(20);
    assert!(queue.cancel(aged).is_some());
    trim(&mut queue, 500);
    assert_eq!(queue.slots.capacity(), 8, "its page stays");
    let new = (0..200).map(|nth| queue.insert(1, nth).to_bits() >> 32);
    let oldest = new.filter(|&generation| generation < 1 << 31).max();
    assert!(
        oldest < Some(10),
        "new slots should start with a low generation"
    );
}
