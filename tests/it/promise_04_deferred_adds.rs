//! Promise 4: a timer armed during a run fires in the next run at the earliest.

use crate::support::*;
use bevy_due::{Timer, TimerFired, prelude::*};
use bevy_ecs::prelude::*;

#[test]
fn rearming_with_zero_delay_fires_once_per_run() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(10)));
    app.add_observer(
        |fired: On<TimerFired>, mut firings: Local<u32>, mut commands: Commands| {
            *firings += 1;
            assert!(*firings <= 5, "should not loop in place");
            commands.entity(fired.entity()).insert(Timer::after(ms(0)));
        },
    );
    advance_ms(&mut app, 9);
    for _ in 0..5 {
        advance_ms(&mut app, 1);
        assert_eq!(
            fired(&mut app),
            ["x"],
            "a zero-delay re-arm should fire once per run"
        );
    }
}

#[test]
fn a_timer_armed_by_a_handler_waits_for_the_next_run() {
    let mut app = app();
    spawn(&mut app, "parent", Timer::after(ms(10)));
    app.add_observer(
        |fired: On<TimerFired>, tags: Query<&Tag>, mut commands: Commands| {
            if tags.get(fired.entity()).unwrap().0 == "parent" {
                commands.spawn((Tag("child"), Timer::every(ms(10)).immediately().times(2)));
            }
        },
    );
    advance_ms(&mut app, 100);
    assert_eq!(fired_at(&mut app), [("parent", 10)]);
    advance_ms(&mut app, 0);
    assert_eq!(
        fired_at(&mut app),
        [("child", 100)],
        "its delay counts from now, not from the parent's deadline"
    );
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("child", 110)]);
}

#[test]
fn immediately_means_the_next_run_even_if_no_time_passes() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)).immediately());
    assert!(
        fired(&mut app).is_empty(),
        "should not fire inside the arming call"
    );
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["x"]);
    advance_ms(&mut app, 0);
    assert!(fired(&mut app).is_empty());
}

#[test]
fn a_timer_that_a_handler_arms_and_changes_waits_for_the_next_run() {
    let mut app = app();
    spawn(&mut app, "parent", Timer::after(ms(10)));
    app.add_observer(
        |fired: On<TimerFired>, tags: Query<&Tag>, mut commands: Commands| {
            if tags.get(fired.entity()).unwrap().0 == "parent" {
                // The change arms the timer in the middle of the run.
                let mut child = commands.spawn((Tag("child"), Timer::after(ms(0))));
                child.change_own_timer(|_| {});
            }
        },
    );
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["parent"], "the child should wait");
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["child"]);
}
