//! Promise 1: all timers due on a clock in a frame fire by (deadline, sequence).

use crate::support::*;
use bevy_due::{Timer, TimerFired};
use bevy_ecs::message::Messages;

/// ```text
/// ms        0    10   15   20        30        40   45   50        60 ...
/// every 10  |    a         a         a         a         a         a
/// every 15  |         b              b              b              b
/// ```
#[test]
fn repeats_of_different_timers_interleave_by_deadline() {
    let mut app = app();
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(15)));
    advance_ms(&mut app, 100);
    assert_eq!(
        fired_at(&mut app),
        [
            ("a", 10),
            ("b", 15),
            ("a", 20),
            ("a", 30),
            ("b", 30),
            ("a", 40),
            ("b", 45),
            ("a", 50),
            ("a", 60),
            ("b", 60),
            ("a", 70),
            ("b", 75),
            ("a", 80),
            ("a", 90),
            ("b", 90),
            ("a", 100),
        ],
        "repeats should interleave as in real time, and ties fire in arming order"
    );
}

#[test]
fn a_long_frame_fires_in_the_same_order_as_short_frames() {
    let run = |step| {
        let mut app = app();
        spawn(&mut app, "7", Timer::every(ms(7)));
        spawn(&mut app, "once", Timer::after(ms(28)));
        spawn(&mut app, "4", Timer::every(ms(4)).first_after(ms(12)));
        spawn(&mut app, "14", Timer::every(ms(14)).times(4));
        for _ in 0..200 / step {
            advance_ms(&mut app, step);
        }
        fired_at(&mut app)
    };
    let fine = run(1);
    assert_eq!(fine.len(), 28 + 1 + 48 + 4);
    assert_eq!(run(20), fine);
    assert_eq!(run(200), fine);
}

#[test]
fn equal_deadlines_fire_in_arming_order() {
    let mut app = app();
    let tags = ["first", "second", "third", "fourth"];
    for tag in tags {
        spawn(&mut app, tag, Timer::after(ms(10)));
    }
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), tags);
}

#[test]
fn equal_deadlines_from_different_delays_fire_in_arming_order() {
    let mut app = app();
    spawn(&mut app, "armed at 0", Timer::after(ms(30)));
    advance_ms(&mut app, 10);
    spawn(&mut app, "armed at 10", Timer::after(ms(20)));
    advance_ms(&mut app, 10);
    spawn(&mut app, "armed at 20", Timer::after(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(
        fired(&mut app),
        ["armed at 0", "armed at 10", "armed at 20"]
    );
}

#[test]
fn rearming_moves_a_timer_behind_equal_deadlines() {
    let mut app = app();
    let a = spawn(&mut app, "a", Timer::after(ms(10)));
    spawn(&mut app, "b", Timer::after(ms(10)));
    app.world_mut().entity_mut(a).insert(Timer::after(ms(10)));
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["b", "a"]);
}

#[test]
fn a_periodic_timer_keeps_its_place_among_equal_deadlines() {
    let mut app = app();
    spawn(&mut app, "10", Timer::every(ms(10)).times(3));
    spawn(&mut app, "30", Timer::after(ms(30)));
    advance_ms(&mut app, 30);
    assert_eq!(fired(&mut app), ["10", "10", "10", "30"]);
}

#[test]
fn messages_are_written_in_firing_order() {
    let mut app = app();
    spawn(&mut app, "a", Timer::every(ms(10)));
    spawn(&mut app, "b", Timer::every(ms(15)));
    advance_ms(&mut app, 100);
    let observed = firings(&mut app);
    let messages = app.world().resource::<Messages<TimerFired>>();
    let written: Vec<TimerFired> = messages.get_cursor().read(messages).copied().collect();
    assert_eq!(written, observed);
}
