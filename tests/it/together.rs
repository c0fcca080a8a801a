//! Everything at once: owner, key, pause, a clock of half the speed, and a very long frame.

use core::time::Duration;

use crate::support::*;
use bevy_due::{CancelReason, OnClock, Timer, prelude::*};

/// ```text
/// frames       0      1200                       4800                       8400
/// clock        0       600       (paused)        2400                       4200
/// deadlines                                            3000   3600   4200
/// ```
#[test]
fn a_paused_owners_keyed_timer_on_a_slow_clock_in_a_frame_of_an_hour() {
    let hour = Duration::from_secs(3600);
    let mut app = app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let owner = app.world_mut().spawn(OnClock::new(slow)).id();
    let long = Timer::every(600.0).first_after(1200.0);
    let first = set_timer(app.world_mut(), owner, "k", Timer::every(60.0));
    let second = set_timer(app.world_mut(), owner, "k", long);
    assert_eq!(cancelled(&mut app), [(first, CancelReason::Replaced)]);

    advance(&mut app, hour / 3);
    app.world_mut().entity_mut(owner).insert(Paused);
    advance(&mut app, hour);
    assert!(fired(&mut app).is_empty(), "should not fire while paused");

    app.world_mut().entity_mut(owner).remove::<Paused>();
    advance(&mut app, hour);
    let firings = firings(&mut app);
    let expected = [3000, 3600, 4200].map(Duration::from_secs);
    assert!(firings.iter().map(|fired| fired.deadline()).eq(expected));
    assert!(
        firings
            .iter()
            .all(|fired| (fired.entity(), fired.owner()) == (second, owner))
    );

    app.world_mut().despawn(owner);
    assert_eq!(cancelled(&mut app), [(second, CancelReason::OwnerGone)]);
}
