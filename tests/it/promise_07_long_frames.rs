//! Promise 7: in a long frame every deadline fires up to the burst limit. The rest are counted.

use crate::support::*;
use bevy_app::First;
use bevy_due::{Timer, TimerFired};
use bevy_ecs::prelude::*;

#[test]
fn a_long_frame_fires_up_to_the_burst_limit_and_counts_the_rest() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(1)));
    advance_ms(&mut app, 1500);
    let firings = firings(&mut app);
    assert_eq!(
        firings.len(),
        1000,
        "should stop at the default burst limit"
    );
    assert!(firings[..999].iter().all(|fired| fired.missed() == 0));
    let last = firings[999];
    assert_eq!(last.deadline(), ms(1000));
    assert_eq!(
        last.missed(),
        500,
        "deadlines 1,001 to 1,500 should be counted as missed"
    );
    assert!(!last.is_last());

    advance_ms(&mut app, 1);
    assert_eq!(
        fired_at(&mut app),
        [("x", 1501)],
        "should continue on its grid"
    );
}

/// ```text
/// deadlines    10   20   30   40   50   60   70   80
/// now, limit 3                               75
/// firings                                    123  |
///                                              └ missed: 4
/// ```
#[test]
fn a_timer_continues_on_its_grid_after_a_limited_burst() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 75);
    let missed: Vec<_> = firings(&mut app)
        .iter()
        .map(|fired| (fired.deadline(), fired.missed()))
        .collect();
    assert_eq!(missed, [(ms(10), 0), (ms(20), 0), (ms(30), 4)]);
    advance_ms(&mut app, 5);
    assert_eq!(fired_at(&mut app), [("x", 80)]);
}

#[test]
fn a_burst_of_exactly_the_limit_misses_nothing() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "x", Timer::every(ms(10)));
    for _ in 0..3 {
        advance_ms(&mut app, 30);
    }
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 9);
    assert!(firings.iter().all(|fired| fired.missed() == 0));
}

#[test]
fn a_timer_that_finishes_within_the_limit_misses_nothing() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "x", Timer::every(ms(10)).times(3));
    advance_ms(&mut app, 75);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 3);
    assert!(firings[2].is_last());
    assert_eq!(firings[2].missed(), 0, "no deadlines are left to miss");
}

#[test]
fn times_counts_firings_not_deadlines() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "x", Timer::every(ms(10)).times(5));
    advance_ms(&mut app, 75);
    advance_ms(&mut app, 75);
    let counts: Vec<u64> = firings(&mut app)
        .iter()
        .map(|fired| fired.count())
        .collect();
    assert_eq!(counts, [1, 2, 3, 4, 5]);
}

#[test]
fn each_timer_has_its_own_burst_limit() {
    let mut app = app_with(burst_limit(2));
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(25)));
    advance_ms(&mut app, 60);
    assert_eq!(
        fired_at(&mut app),
        [("a", 10), ("a", 20), ("b", 25), ("b", 50)]
    );
}

#[test]
fn a_handler_that_reads_the_clocks_again_makes_no_further_deadline_due() {
    for step in [10, 75] {
        let mut app = app_with(burst_limit(3));
        let timer = spawn(&mut app, "x", Timer::every(ms(10)).times(50));
        app.world_mut()
            .entity_mut(timer)
            .observe(|_: On<TimerFired>, mut commands: Commands| {
                commands.run_schedule(First);
            });
        advance_ms(&mut app, step);
        let count = firings(&mut app).len();
        assert!(
            count <= 3,
            "{count} firings in one run, in steps of {step} ms"
        );
    }
}
