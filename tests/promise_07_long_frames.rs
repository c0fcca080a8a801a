//! In a long frame every deadline fires, up to a bound, past which the rest is counted.

mod support;

use bevy_due::Timer;
use support::*;

#[test]
fn promise_7_long_frames() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(1)));
    advance_ms(&mut app, 1500);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 1000, "a burst should be bounded");
    assert!(firings[..999].iter().all(|fired| fired.missed() == 0));
    let last = firings[999];
    assert_eq!(last.deadline(), ms(1000));
    assert_eq!(
        last.missed(),
        500,
        "1,001 to 1,500 have no firing of their own"
    );
    assert!(!last.is_last());

    advance_ms(&mut app, 1);
    assert_eq!(
        fired_at(&mut app),
        [("x", 1501)],
        "should go on on its grid"
    );
}

/// ```text
/// deadlines    10   20   30   40   50   60   70   80
/// now, limit 3                               75
/// firings                                    123  |
///                                              └ missed: 4
/// ```
#[test]
fn a_bounded_burst_goes_on_on_the_grid() {
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
fn a_burst_of_exactly_the_bound_misses_nothing() {
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
fn a_timer_that_ends_within_the_bound_misses_nothing() {
    let mut app = app_with(burst_limit(3));
    spawn(&mut app, "x", Timer::every(ms(10)).times(3));
    advance_ms(&mut app, 75);
    let firings = firings(&mut app);
    assert_eq!(firings.len(), 3);
    assert!(firings[2].is_last());
    assert_eq!(firings[2].missed(), 0, "nothing was left to miss");
}

#[test]
fn firings_are_counted_not_deadlines() {
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
fn one_burst_does_not_keep_the_others_from_theirs() {
    let mut app = app_with(burst_limit(2));
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(25)));
    advance_ms(&mut app, 60);
    assert_eq!(
        fired_at(&mut app),
        [("a", 10), ("a", 20), ("b", 25), ("b", 50)]
    );
}
