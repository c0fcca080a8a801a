//! Promise 6: a periodic timer's k-th deadline is exactly first + k × interval.

use core::time::Duration;

use crate::support::*;
use bevy_due::Timer;

#[test]
fn deadlines_stay_on_the_grid_with_uneven_frames() {
    let first = Duration::from_nanos(123_456_789);
    let interval = Duration::from_nanos(16_666_667);
    let mut app = app();
    spawn(&mut app, "x", Timer::every(interval).first_after(first));
    // The frames do not line up with the deadlines.
    for frame in 0..5000_u64 {
        advance(&mut app, Duration::from_nanos(14_999_981 + frame % 7));
    }
    let firings = firings(&mut app);
    assert!(firings.len() > 4000);
    for (k, fired) in (0..).zip(&firings) {
        assert_eq!(fired.deadline(), first + interval * k);
        assert_eq!(fired.count(), u64::from(k) + 1);
    }
}

#[test]
fn a_tenth_of_a_second_is_exact() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(0.1));
    for _ in 0..3600 {
        advance_ms(&mut app, 1000);
    }
    let last = *firings(&mut app).last().unwrap();
    assert_eq!(last.count(), 36_000);
    assert_eq!(last.deadline(), Duration::from_secs(3600));
}

#[test]
fn late_frames_do_not_shift_the_grid() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)));
    advance_ms(&mut app, 19);
    advance_ms(&mut app, 20);
    advance_ms(&mut app, 2);
    assert_eq!(
        fired_at(&mut app),
        [("x", 10), ("x", 20), ("x", 30), ("x", 40)]
    );
}
