//! Measures the queue alone, at several sizes.
//!
//! ```text
//! cargo bench -p bevy_due_benches --bench queue
//! ```

#![allow(missing_docs, reason = "criterion's macros")]

use core::{hint::black_box, time::Duration};

use bevy_due::queue::TimerQueue;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const SIZES: [u64; 4] = [0, 100, 10_000, 1_000_000];
const SECOND: u64 = 1_000_000_000;
const FRAME: u64 = SECOND / 60;

/// Returns a period of 1 to 60 seconds. The periods are spread evenly, in no particular order.
fn period(timer: u64) -> u64 {
    SECOND + timer.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (59 * SECOND)
}

/// Returns a queue of `len` periodic timers, each at a different point of its period.
fn filled(len: u64) -> TimerQueue<u64> {
    let mut queue = TimerQueue::new();
    for timer in 0..len {
        let period = period(timer);
        queue.insert(timer.wrapping_mul(0xd1b5_4a32_d192_ed03) % period, period);
    }
    queue
}

/// Inserts and cancels one timer.
fn insert_and_cancel(c: &mut Criterion) {
    let mut group = c.benchmark_group("insert_and_cancel");
    for len in SIZES {
        let mut queue = filled(len);
        let mut timer = 0;
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter(|| {
                timer += 1;
                let key = queue.insert(black_box(period(timer)), 0);
                queue.cancel(key)
            });
        });
        assert_eq!(queue.len() as u64, len);
    }
    group.finish();
}

/// Runs periodic timers for one second of game time, at 60 frames per second. The time covers the whole
/// second, and the throughput counts expiries.
fn periodic(c: &mut Criterion) {
    let mut group = c.benchmark_group("periodic");
    for len in SIZES.into_iter().skip(1) {
        let mut queue = filled(len);
        let mut now = 0;
        let mut expired = 0_u64;
        let mut second = |queue: &mut TimerQueue<u64>| {
            for _ in 0..60 {
                now += FRAME;
                while let Some(due) = queue.pop_due(now) {
                    expired += 1;
                    let next = due.deadline() + *due;
                    due.rearm(next);
                }
            }
        };
        second(&mut queue);
        // The mean of 1/period is ln(60) / 59 expiries per timer and second.
        group.throughput(Throughput::Elements(
            (len as f64 * 60_f64.ln() / 59.0) as u64,
        ));
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter(|| second(&mut queue));
        });
        let expected: u64 = (0..len)
            .map(|timer| {
                let period = period(timer);
                let first = timer.wrapping_mul(0xd1b5_4a32_d192_ed03) % period;
                now.checked_sub(first).map_or(0, |past| past / period + 1)
            })
            .sum();
        assert_eq!(expired, expected, "every deadline should expire once");
    }
    group.finish();
}

/// Tries to pop when no timer is due.
fn nothing_due(c: &mut Criterion) {
    let mut group = c.benchmark_group("nothing_due");
    for len in SIZES {
        let mut queue = TimerQueue::new();
        for timer in 0..len {
            queue.insert(period(timer), ());
        }
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter(|| queue.pop_due(black_box(FRAME)).is_some());
        });
        assert_eq!(queue.len() as u64, len);
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = insert_and_cancel, periodic, nothing_due
}
criterion_main!(benches);
