//! `MissedTicks`: how a periodic timer handles the deadlines that pass in a long frame.

use crate::support::*;
use bevy_due::{MissedTicks, Timer};

/// Runs the app at these times in milliseconds. Returns the run, the deadline and the number of
/// missed deadlines of each firing.
fn firings_of(timer: Timer, runs: &[u64]) -> Vec<(u64, u128, u64)> {
    let mut app = app();
    spawn(&mut app, "x", timer);
    let mut now = 0;
    let mut seen = Vec::new();
    for &run in runs {
        advance_ms(&mut app, run - core::mem::replace(&mut now, run));
        let firings = firings(&mut app);
        seen.extend(firings.iter().map(|fired| {
            assert_eq!(fired.lateness(), ms(run) - fired.deadline());
            (run, fired.deadline().as_millis(), fired.missed())
        }));
    }
    seen
}

fn every_ten(missed_ticks: MissedTicks) -> Timer {
    Timer::every(ms(10)).with_missed_ticks(missed_ticks)
}

/// ```text
/// deadlines   10   20   30   40   50   60   70
/// runs        10   20               55 60   70
/// firings     10   20               30 60   70
///                                   40
///                                   50
/// ```
#[test]
fn burst_fires_for_every_deadline() {
    assert_eq!(Timer::every(ms(10)).missed_ticks(), MissedTicks::Burst);
    assert_eq!(
        firings_of(every_ten(MissedTicks::Burst), &[10, 20, 55, 60, 70]),
        [
            (10, 10, 0),
            (20, 20, 0),
            (55, 30, 0),
            (55, 40, 0),
            (55, 50, 0),
            (60, 60, 0),
            (70, 70, 0)
        ]
    );
}

/// ```text
/// deadlines   10   20   30 (40)(50)      65   75
/// runs        10   20               55   65   75
/// firings     10   20               30   65   75
///                                    └ missed: 2
/// ```
#[test]
fn delay_keeps_a_full_interval_after_a_late_firing() {
    assert_eq!(
        firings_of(every_ten(MissedTicks::Delay), &[10, 20, 55, 60, 65, 75]),
        [
            (10, 10, 0),
            (20, 20, 0),
            (55, 30, 2),
            (65, 65, 0),
            (75, 75, 0)
        ]
    );
}

/// ```text
/// deadlines   10   20   30 (40)(50)    60   70
/// runs        10   20               55 60   70
/// firings     10   20               30 60   70
///                                    └ missed: 2
/// ```
#[test]
fn skip_continues_on_the_grid() {
    assert_eq!(
        firings_of(every_ten(MissedTicks::Skip), &[10, 20, 55, 60, 70]),
        [
            (10, 10, 0),
            (20, 20, 0),
            (55, 30, 2),
            (60, 60, 0),
            (70, 70, 0)
        ]
    );
}

#[test]
fn a_deadline_equal_to_now_counts_as_missed() {
    for (missed_ticks, next) in [(MissedTicks::Skip, 60), (MissedTicks::Delay, 60)] {
        assert_eq!(
            firings_of(every_ten(missed_ticks), &[50, 59, 60]),
            [(50, 10, 4), (next, 60, 0)]
        );
    }
}

#[test]
fn delay_counts_from_the_run_even_if_it_is_barely_late() {
    assert_eq!(
        firings_of(every_ten(MissedTicks::Delay), &[11, 20, 21, 31]),
        [(11, 10, 0), (21, 21, 0), (31, 31, 0)]
    );
}

#[test]
fn times_counts_firings_not_deadlines() {
    for missed_ticks in [MissedTicks::Skip, MissedTicks::Delay] {
        assert_eq!(
            firings_of(every_ten(missed_ticks).times(2), &[50, 100, 150]),
            [(50, 10, 4), (100, 60, 0)],
            "the last firing should miss nothing: no deadlines remain"
        );
    }
}

#[test]
fn timers_with_different_policies_fire_in_deadline_order() {
    let mut app = app();
    spawn(&mut app, "skip", every_ten(MissedTicks::Skip));
    spawn(&mut app, "burst", Timer::every(ms(15)));
    spawn(&mut app, "delay", every_ten(MissedTicks::Delay));
    advance_ms(&mut app, 35);
    assert_eq!(
        fired_at(&mut app),
        [("skip", 10), ("delay", 10), ("burst", 15), ("burst", 30)]
    );
    advance_ms(&mut app, 10);
    assert_eq!(
        fired_at(&mut app),
        [("skip", 40), ("burst", 45), ("delay", 45)]
    );
}
