//! By default timers run on `Time<Virtual>`, so its pause and its speed apply.

use crate::support::*;
use bevy_app::App;
use bevy_due::{Timer, TimerFired, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, Virtual};

fn clock(app: &mut App) -> Mut<'_, Time<Virtual>> {
    app.world_mut().resource_mut::<Time<Virtual>>()
}

#[test]
fn a_paused_game_pauses_its_timers() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(30)));
    advance_ms(&mut app, 20);
    clock(&mut app).pause();
    for _ in 0..10 {
        advance_ms(&mut app, 100);
    }
    assert!(fired(&mut app).is_empty(), "should not fire while paused");
    clock(&mut app).unpause();
    advance_ms(&mut app, 9);
    assert!(fired(&mut app).is_empty(), "should keep its remaining time");
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 30)]);
}

#[test]
fn a_stopped_clock_fires_nothing_not_even_a_zero_delay() {
    let mut app = app();
    clock(&mut app).pause();
    advance_ms(&mut app, 10);
    spawn(&mut app, "zero", Timer::after(ms(0)));
    spawn(&mut app, "ten", Timer::after(ms(10)));
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
    clock(&mut app).unpause();
    advance_ms(&mut app, 5);
    assert_eq!(fired(&mut app), ["zero"]);
    advance_ms(&mut app, 5);
    assert_eq!(fired(&mut app), ["ten"], "should wait its full delay");
}

#[test]
fn pausing_the_game_from_a_handler_ends_the_run() {
    let mut app = app();
    app.add_observer(|_: On<TimerFired>, mut time: ResMut<Time<Virtual>>| time.pause());
    spawn(&mut app, "a", Timer::after(ms(10)));
    spawn(&mut app, "b", Timer::after(ms(15)));
    spawn(&mut app, "c", Timer::after(ms(25)));
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["a"], "the pause stops the game at once");
    advance_ms(&mut app, 20);
    assert!(fired(&mut app).is_empty());
    clock(&mut app).unpause();
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["b"], "it kept its place");
}

/// Bevy counts the steps in `First`, so they belong to the frame that the pause interrupts.
#[test]
fn pausing_the_game_in_a_frame_leaves_its_fixed_steps() {
    let mut app = app();
    app.add_observer(|fired: On<TimerFired>, mut time: ResMut<Time<Virtual>>| {
        if fired.clock() == ClockId::Virtual {
            time.pause();
        }
    });
    let mut steps = app.world_mut().resource_mut::<Time<Fixed>>();
    steps.set_timestep(ms(10));
    spawn(&mut app, "game", Timer::after(ms(1)));
    spawn(&mut app, "step", Timer::every(ms(10)).on(ClockId::Fixed));
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["game", "step", "step"]);
    advance_ms(&mut app, 20);
    assert!(fired(&mut app).is_empty(), "should stop with the game");
}

#[test]
fn timers_follow_the_speed_of_the_game() {
    let mut app = app();
    spawn(&mut app, "x", Timer::every(ms(10)));
    clock(&mut app).set_relative_speed(0.5);
    advance_ms(&mut app, 19);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired(&mut app).len(), 1);
    clock(&mut app).set_relative_speed(3.0);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app).len(), 3);
    clock(&mut app).set_relative_speed(0.0);
    advance_ms(&mut app, 1000);
    assert!(fired(&mut app).is_empty());
}

#[test]
fn timers_follow_the_clamped_frame_time() {
    let mut app = app();
    clock(&mut app).set_max_delta(ms(250));
    spawn(&mut app, "x", Timer::every(ms(100)));
    advance_ms(&mut app, 10_000);
    assert_eq!(fired_at(&mut app), [("x", 100), ("x", 200)]);
}

/// Loading a saved game sets the clock and spawns timers between two frames.
#[test]
fn the_next_frame_shows_the_time_that_is_set_between_frames() {
    let mut app = app();
    spawn(&mut app, "x", Timer::after(ms(5999)));
    clock(&mut app).advance_by(ms(5000));
    advance_ms(&mut app, 998);
    assert!(fired(&mut app).is_empty(), "should not fire early");
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 5999)]);
    assert_eq!(now(&app, ClockId::Virtual), ms(5999));

    spawn(&mut app, "y", Timer::after(ms(20)));
    *clock(&mut app) = Time::default();
    advance_ms(&mut app, 20);
    assert_eq!(
        fired_at(&mut app),
        [("y", 20)],
        "should keep its remaining time"
    );
    assert_eq!(now(&app, ClockId::Virtual), ms(20));
}
