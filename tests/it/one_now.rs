//! One now per clock: read once per frame, and the same for everybody.

use core::time::Duration;

use crate::support::{Tag, advance_ms, app, fired, fired_at, ms, spawn};
use bevy_app::{FixedFirst, FixedPreUpdate, FixedUpdate, PreUpdate, Update};
use bevy_due::{ArmedTimers, Clocks, ClocksMut, DueSystems, Timer, TimerFired, prelude::*};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, Virtual};

#[derive(Resource, Default)]
struct Seen(Vec<Duration>);

#[test]
fn a_jump_of_a_clock_shows_to_whoever_runs_later() {
    for (is_written_first, expected) in [(true, [110, 220, 330]), (false, [10, 120, 230])] {
        let mut app = app();
        let own = app.world_mut().spawn(Clock::new()).id();
        let write = move |mut clocks: ClocksMut| clocks.get_mut(own).unwrap().advance_by(ms(100));
        let read = move |clocks: Clocks, mut seen: ResMut<Seen>| {
            seen.0.push(clocks.now(own).unwrap());
        };
        app.init_resource::<Seen>();
        match is_written_first {
            true => app.add_systems(Update, (write, read).chain()),
            false => app.add_systems(Update, (read, write).chain()),
        };
        for _ in 0..3 {
            advance_ms(&mut app, 10);
        }
        assert_eq!(app.world().resource::<Seen>().0, expected.map(ms));
    }
}

#[test]
fn the_run_shows_the_time_that_bevy_shows_all_frame_long() {
    let mut app = app();
    let own = app.world_mut().spawn(Clock::new()).id();
    let timer = spawn(&mut app, "x", Timer::after(ms(100)).on(own));
    let check = move |clocks: Clocks, time: Res<Time<Virtual>>, timers: ArmedTimers| {
        assert_eq!(clocks.now(ClockId::Virtual).unwrap(), time.elapsed());
        assert_eq!(clocks.now(own).unwrap(), time.elapsed());
        let timer = timers.get(timer).unwrap();
        assert_eq!(timer.deadline - clocks.now(own).unwrap(), timer.remaining);
    };
    app.add_systems(PreUpdate, check.before(DueSystems::Timers));
    app.add_systems(PreUpdate, check.after(DueSystems::Timers));
    app.add_systems(Update, check);
    for _ in 0..5 {
        advance_ms(&mut app, 10);
    }
}

#[test]
fn all_schedules_of_a_fixed_step_see_its_time() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let own = app.world_mut().spawn(Clock::of(ClockId::Fixed)).id();
    let check = move |clocks: Clocks, time: Res<Time<Fixed>>| {
        assert_eq!(clocks.now(ClockId::Fixed).unwrap(), time.elapsed());
        assert_eq!(clocks.now(own).unwrap(), time.elapsed());
    };
    app.add_systems(FixedFirst, check)
        .add_systems(FixedPreUpdate, check)
        .add_systems(FixedUpdate, check);
    advance_ms(&mut app, 35);
    assert_eq!(app.world().clock_now(own), Ok(ms(30)), "three steps");
}

#[test]
fn a_timer_armed_before_the_run_counts_from_the_time_of_this_frame() {
    let mut app = app();
    let mut is_armed = false;
    let arm = move |mut commands: Commands| {
        if !core::mem::replace(&mut is_armed, true) {
            commands.spawn((Tag("x"), Timer::after(ms(10))));
        }
    };
    app.add_systems(PreUpdate, arm.before(DueSystems::Timers));
    advance_ms(&mut app, 20);
    advance_ms(&mut app, 20);
    assert_eq!(fired_at(&mut app), [("x", 30)]);
}

#[test]
fn a_handler_that_pauses_the_game_stops_later_timers_of_the_run() {
    let mut app = app();
    app.add_observer(|_: On<TimerFired>, mut time: ResMut<Time<Virtual>>| time.pause());
    let own = app.world_mut().spawn(Clock::new()).id();
    spawn(&mut app, "a", Timer::after(ms(10)));
    spawn(&mut app, "b", Timer::after(ms(15)));
    spawn(&mut app, "own", Timer::after(ms(15)).on(own));
    spawn(&mut app, "frames", Timer::after_frames(1));
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["a", "frames"]);
    app.world_mut().resource_mut::<Time<Virtual>>().unpause();
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["b"]);
    app.world_mut().resource_mut::<Time<Virtual>>().unpause();
    advance_ms(&mut app, 0);
    assert_eq!(fired(&mut app), ["own"]);
}

#[test]
fn a_handler_that_pauses_a_clock_stops_later_timers_of_the_run() {
    let pauses: [fn(Entity, ClocksMut); 2] = [
        |_, mut clocks| clocks.get_mut(ClockId::Virtual).unwrap().pause(),
        |own, mut clocks| clocks.get_mut(own).unwrap().pause(),
    ];
    let fired = pauses.map(|pause| {
        let mut app = app();
        let own = app.world_mut().spawn(Clock::new()).id();
        let child = app.world_mut().spawn(Clock::of(own)).id();
        app.add_observer(move |_: On<TimerFired>, clocks: ClocksMut| pause(own, clocks));
        for (name, at) in [("a", 10), ("b", 15)] {
            spawn(&mut app, name, Timer::after(ms(at)));
        }
        for (name, at) in [("c", 10), ("d", 15)] {
            spawn(&mut app, name, Timer::after(ms(at)).on(child));
        }
        advance_ms(&mut app, 20);
        fired(&mut app)
    });
    assert_eq!(fired, [vec!["a"], vec!["a", "b"]]);
}
