//! The run conditions in `bevy_due::conditions`.

use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::{App, FixedUpdate, Update};
use bevy_due::{
    Clock, Timer,
    conditions::{every, every_on, timer_fired},
    prelude::*,
};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, Virtual};
use core::time::Duration;

#[derive(Component)]
struct Waves;

#[derive(Component)]
struct Other;

/// The number of runs of the system.
#[derive(Resource, Default)]
struct Runs(u32);

fn count(mut runs: ResMut<Runs>) {
    runs.0 += 1;
}

fn counting_app() -> App {
    let mut app = app();
    app.init_resource::<Runs>();
    app
}

fn runs(app: &mut App) -> u32 {
    core::mem::take(&mut app.world_mut().resource_mut::<Runs>().0)
}

/// Runs frames of these lengths, and returns the number of runs in each.
fn runs_in<const N: usize>(app: &mut App, frames: [u64; N]) -> [u32; N] {
    frames.map(|millis| {
        advance_ms(app, millis);
        runs(app)
    })
}

#[test]
fn a_system_runs_once_in_a_frame_in_which_timers_with_a_marker_fire() {
    let mut app = counting_app();
    app.add_systems(Update, count.run_if(timer_fired::<Waves>));
    app.world_mut().spawn((Other, Timer::every(ms(10))));
    app.world_mut().spawn((Waves, Timer::every(ms(20))));
    app.world_mut().spawn((Waves, Timer::after(ms(20))));
    assert_eq!(runs_in(&mut app, [10, 10, 10, 50, 0]), [0, 1, 0, 1, 0]);
}

#[test]
fn the_last_firing_of_an_owned_timer_counts() {
    let mut app = counting_app();
    app.add_systems(Update, count.run_if(timer_fired::<Waves>));
    let owner = app.world_mut().spawn_empty().id();
    let timer = (OwnedBy(owner), Waves, Timer::after(ms(10)));
    app.world_mut().spawn(timer);
    assert_eq!(runs_in(&mut app, [10, 10]), [1, 0]);
}

#[test]
fn each_condition_has_its_own_cursor() {
    let mut app = counting_app();
    app.add_systems(Update, count.run_if(timer_fired::<Waves>));
    app.add_systems(Update, count.run_if(timer_fired::<Waves>));
    app.world_mut().spawn((Waves, Timer::every(ms(10))));
    assert_eq!(runs_in(&mut app, [10, 5, 5]), [2, 0, 2]);
}

#[test]
fn an_interval_has_no_drift_and_holds_at_most_once_per_frame() {
    let mut app = counting_app();
    app.add_systems(Update, count.run_if(every(0.1)));
    // The first check starts the interval, at 0 ms.
    let frames = [0, 99, 1, 150, 40, 10, 500, 0, 99, 1];
    //            0  99 100  250 290 300  800    899 900
    let expected = [0, 0, 1, 1, 0, 1, 1, 0, 0, 1];
    assert_eq!(runs_in(&mut app, frames), expected);
    // 7 ms do not divide 100 ms.
    let in_frames: u32 = (0..1000).map(|_| runs_in(&mut app, [7])[0]).sum();
    assert_eq!(in_frames, 70);
}

#[test]
fn an_interval_follows_its_clock() {
    let mut app = counting_app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    app.add_systems(Update, count.run_if(every_on(ms(10), slow)));
    assert_eq!(runs_in(&mut app, [0, 10, 10, 10]), [0, 0, 1, 0]);
    change_clock(&mut app, slow, |clock| clock.pause());
    assert_eq!(runs_in(&mut app, [10, 10]), [0, 0]);
    app.world_mut().despawn(slow);
    assert_eq!(runs_in(&mut app, [10, 10]), [0, 0], "no clock, no error");
}

#[test]
fn a_clock_that_is_set_back_starts_the_interval_over() {
    let mut app = counting_app();
    let clock = app.world_mut().spawn(Clock::new().with_now(ms(1000)));
    let clock = clock.id();
    app.add_systems(Update, count.run_if(every_on(ms(10), clock)));
    assert_eq!(runs_in(&mut app, [0, 5]), [0, 0]);
    change_clock(&mut app, clock, |clock| clock.set_now(ms(0)));
    assert_eq!(runs_in(&mut app, [0, 9, 1]), [0, 0, 1]);
}

#[test]
fn a_clock_that_is_set_forward_starts_the_interval_over() {
    let mut app = counting_app();
    let clock = app.world_mut().spawn(Clock::new()).id();
    app.add_systems(Update, count.run_if(every_on(ms(10), clock)));
    assert_eq!(runs_in(&mut app, [0, 5]), [0, 0]);
    change_clock(&mut app, clock, |clock| clock.set_now(ms(1000)));
    assert_eq!(runs_in(&mut app, [0, 9, 1]), [0, 0, 1]);
}

/// An auto-save must not follow each load.
#[cfg(feature = "serialize")]
#[test]
fn a_load_starts_the_interval_over() {
    use bevy_due::save::SaveWorldExt;
    use bevy_ecs::entity::EntityHashMap;

    for saved_at in [5, 311] {
        let mut old = counting_app();
        advance_ms(&mut old, saved_at);
        let saved = old.world_mut().save_timers().expect("it is data");
        let mut app = counting_app();
        app.add_systems(Update, count.run_if(every_on(ms(300), ClockId::Real)));
        assert_eq!(runs_in(&mut app, [0, 200]), [0, 0]);
        let loaded = app
            .world_mut()
            .load_timers(&saved, &mut EntityHashMap::default());
        loaded.expect("it is data");
        let runs = runs_in(&mut app, [0, 299, 1, 299, 1]);
        assert_eq!(runs, [0, 0, 1, 0, 1], "saved at {saved_at} ms");
    }
}

#[test]
fn a_paused_game_runs_only_intervals_in_real_time() {
    let mut app = counting_app();
    app.add_systems(Update, count.run_if(every(0.01_f32)));
    advance_ms(&mut app, 0);
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    assert_eq!(runs_in(&mut app, [10, 10]), [0, 0]);
    app.add_systems(Update, count.run_if(every_on(ms(10), ClockId::Real)));
    assert_eq!(runs_in(&mut app, [0, 10, 10]), [0, 1, 1]);
}

#[test]
fn an_interval_on_the_fixed_clock_counts_fixed_steps() {
    let mut app = counting_app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    app.add_systems(FixedUpdate, count.run_if(every_on(ms(20), ClockId::Fixed)));
    // The first step starts the interval.
    assert_eq!(runs_in(&mut app, [10, 20, 40, 10]), [0, 1, 2, 0]);
}

#[test]
fn an_interval_of_zero_panics() {
    assert!(catch_unwind(|| every(0.0)).is_err());
    assert!(catch_unwind(|| every_on(Duration::ZERO, ClockId::Real)).is_err());
    let mut app = counting_app();
    app.add_systems(Update, count.run_if(every_on(Duration::MAX, ClockId::Real)));
    app.add_systems(Update, count.run_if(every(f64::MIN_POSITIVE)));
    assert_eq!(runs_in(&mut app, [0, 10, 10]), [0, 1, 1]);
}
