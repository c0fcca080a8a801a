//! Costs that can be counted: the entries that the queue touches.

use alloc::vec::Vec;

use crate::queue::{Key, TimerQueue};

const SECOND: u64 = 1_000_000_000;
const FRAME: u64 = SECOND / 60;
const TIMERS: u64 = 20_000;

/// Returns a pseudo-random number that is the same on every run.
fn scramble(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Asserts that in five minutes of game time the worst frame touches at most four times as many
/// entries as the mean frame.
fn assert_no_frame_stalls(
    queue: &mut TimerQueue<u64>,
    mut before_frame: impl FnMut(&mut TimerQueue<u64>, u64),
) {
    let mut worst = 0;
    let start = queue.touched();
    let frames = 5 * 60 * 60;
    for frame in 1..=frames {
        let before = queue.touched();
        let now = frame * FRAME;
        before_frame(queue, now);
        while let Some(due) = queue.pop_due(now) {
            match *due {
                0 => drop(due),
                period => {
                    let next = due.deadline() + period;
                    due.rearm(next);
                }
            }
        }
        worst = worst.max(queue.touched() - before);
    }
    let mean = (queue.touched() - start) / frames;
    assert!(mean > 0, "the workload should touch entries");
    assert!(
        worst <= 4 * mean,
        "the worst frame touches {worst} entries, the mean frame {mean}"
    );
}

fn queue_of_periodic_timers(period: impl Fn(u64) -> u64) -> TimerQueue<u64> {
    let mut queue = TimerQueue::new();
    for timer in 0..TIMERS {
        let period = period(timer);
        queue.insert(scramble(timer) % period, period);
    }
    queue
}

#[test]
fn no_frame_stalls_with_periodic_timers() {
    let mut queue =
        queue_of_periodic_timers(|timer| SECOND + scramble(timer + TIMERS) % (59 * SECOND));
    assert_no_frame_stalls(&mut queue, |_, _| ());
}

#[test]
fn no_frame_stalls_with_a_few_distinct_periods() {
    let halves = [1, 2, 4, 10, 20, 60, 120];
    let mut queue = queue_of_periodic_timers(|timer| halves[timer as usize % 7] * SECOND / 2);
    assert_no_frame_stalls(&mut queue, |_, _| ());
}

#[test]
fn no_frame_stalls_with_mostly_far_timers() {
    let mut queue =
        queue_of_periodic_timers(|timer| SECOND + scramble(timer + TIMERS) % (300 * SECOND));
    assert_no_frame_stalls(&mut queue, |_, _| ());
}

#[test]
fn no_frame_stalls_when_nine_in_ten_timers_are_cancelled() {
    let mut queue = TimerQueue::new();
    let mut keys: Vec<Key> = Vec::new();
    let mut arm_and_cancel = |queue: &mut TimerQueue<u64>, now: u64| {
        for n in 0..20 {
            let random = scramble(now + n);
            keys.push(queue.insert(now + SECOND + random % (59 * SECOND), 0));
            if !random.is_multiple_of(10) {
                let victim = scramble(random) as usize % keys.len();
                queue.cancel(keys.swap_remove(victim));
            }
        }
        if now % SECOND < FRAME {
            keys.retain(|&key| queue.deadline(key).is_some());
        }
    };
    for frame in 0..3600 {
        arm_and_cancel(&mut queue, frame * FRAME);
    }
    assert_no_frame_stalls(&mut queue, |queue, now| arm_and_cancel(queue, now));
}

/// After the queue has been emptied at the end of time, it starts again at zero.
#[test]
fn no_frame_stalls_after_time_goes_back() {
    let period = |timer| SECOND + scramble(timer + TIMERS) % (59 * SECOND);
    let mut queue = queue_of_periodic_timers(period);
    while queue.pop_due(u64::MAX).is_some() {}
    assert!(queue.pop_due(0).is_none());
    for timer in 0..TIMERS {
        queue.insert(scramble(timer) % period(timer), period(timer));
    }
    assert_no_frame_stalls(&mut queue, |_, _| ());
}

#[test]
fn idle_years_and_long_jumps_cost_only_due_timers() {
    let year = 365 * 24 * 3600 * SECOND;
    let mut queue = TimerQueue::new();
    for timer in 0..TIMERS {
        queue.insert(100 * year + scramble(timer) % year, 0);
    }
    let start = queue.touched();
    for years in 1..100 {
        assert!(queue.pop_due(years * year).is_none());
    }
    assert!(
        queue.touched() - start <= 2 * TIMERS,
        "idle years should move each timer at most twice"
    );
    let mut due = 0;
    while queue.pop_due(101 * year).is_some() {
        due += 1;
    }
    assert_eq!(due, TIMERS);
    assert!(
        queue.touched() - start <= 8 * TIMERS,
        "a jump should cost the timers that it makes due"
    );
}

#[test]
fn adding_a_timer_costs_the_same_however_many_wait() {
    let added_to = |waiting: u64| {
        let minute = 60 * SECOND;
        let mut queue = TimerQueue::new();
        for nth in 0..waiting {
            queue.insert(minute + nth * 1_000_000, nth);
        }
        let before = queue.touched();
        queue.insert(minute / 2, 0);
        queue.touched() - before
    };
    assert_eq!(
        added_to(100_000),
        added_to(10_000),
        "adding should touch the same number of entries"
    );
}
