//! Faults of arming, pausing and ending that were found by reading, each with the test that failed.

use core::time::Duration;

use crate::support::*;
use bevy_app::prelude::*;
use bevy_due::{ArmedTimers, Clock, ClockId, OnClock, Timer, prelude::*, timer::Pauses};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time, Virtual};

/// The end of an orphan was recorded for the next frame and for the next fixed step. The second record
/// stayed, and despawned an entity that had been saved by another timer.
#[test]
fn an_orphan_that_another_timer_saves_stays() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    app.world_mut().resource_mut::<Time<Virtual>>().pause();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    let orphan = spawn(&mut app, "old", Timer::after(9.0));
    app.world_mut().entity_mut(orphan).insert(OwnedBy(gone));
    let saved = Timer::after(0.0).on(ClockId::Real).keep_when_done();
    app.world_mut()
        .entity_mut(orphan)
        .insert((Tag("new"), saved));
    advance_ms(&mut app, 10);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["new"]);
    assert!(app.world().get_entity(orphan).is_ok());
    app.world_mut().resource_mut::<Time<Virtual>>().unpause();
    (0..3).for_each(|_| advance_ms(&mut app, 10));
    assert!(app.world().get_entity(orphan).is_ok(), "after fixed steps");
}

/// A change of one timer armed all others early, so that they missed a clock that arrived later.
#[test]
fn changing_a_timer_does_not_decide_the_clock_of_another() {
    let deadline = |changes: bool| {
        let mut app = app();
        let fast = app.world_mut().spawn(Clock::new().with_speed(4.0)).id();
        let other = spawn(&mut app, "other", Timer::after(9.0));
        let timer = spawn(&mut app, "timer", Timer::after(1.0));
        if changes {
            let world = app.world_mut();
            world.change_timer(other, |it| it.delay_by(ms(5))).unwrap();
        }
        app.world_mut().entity_mut(timer).insert(OnClock::new(fast));
        advance_ms(&mut app, 0);
        (status(&mut app, timer).clock == ClockId::from(fast), {
            advance_ms(&mut app, 250);
            fired(&mut app)
        })
    };
    assert_eq!(deadline(false), (true, vec!["timer"]));
    assert_eq!(deadline(true), deadline(false));
}

/// The remaining time was clamped, but the deadline was not, so the two belonged to different times.
#[test]
fn all_statuses_on_a_clock_belong_to_one_time() {
    #[derive(Resource, Default)]
    struct Times(Vec<Duration>);
    let mut app = app();
    app.init_resource::<Times>();
    let [old, new] = [1000, 2000].map(|it| spawn(&mut app, "x", Timer::after(ms(it))));
    let arm = move |mut commands: Commands| {
        commands.entity(new).insert(Timer::after(ms(100)));
    };
    let ask = move |timers: ArmedTimers, mut times: ResMut<Times>| {
        let statuses = [old, new].map(|it| timers.get(it).unwrap());
        times
            .0
            .extend(statuses.map(|it| it.deadline - it.remaining));
    };
    app.add_systems(First, (arm, ask).chain().after(bevy_time::TimeSystems));
    (0..3).for_each(|_| advance_ms(&mut app, 10));
    for times in app.world().resource::<Times>().0.chunks(2) {
        assert_eq!(times[0], times[1]);
    }
}

#[derive(Resource, Default)]
struct Calls(u32);

/// A pause never stops what ends it. This held for timers, but not for callbacks.
#[test]
fn the_callback_of_a_pause_runs_while_its_owner_is_paused() {
    let mut app = app();
    app.init_resource::<Calls>();
    let target = app.world_mut().spawn_empty().id();
    let count = || {
        UpdateComponent::new(|mut me| {
            me.commands
                .queue(|world: &mut World| world.resource_mut::<Calls>().0 += 1);
        })
    };
    app.world_mut()
        .spawn((OwnedBy(target), Pauses(target), count()));
    app.world_mut().spawn((OwnedBy(target), count()));
    (0..3).for_each(|_| advance_ms(&mut app, 10));
    assert_eq!(
        app.world().resource::<Calls>().0,
        3,
        "only that of the pause"
    );
}

/// A change arms nothing early, so it does not change the order either.
#[test]
fn a_new_timer_that_is_changed_keeps_the_order_of_arming() {
    let mut app = app();
    let [first, _second] = ["first", "second"].map(|it| spawn(&mut app, it, Timer::after(ms(20))));
    let world = app.world_mut();
    world.change_timer(first, |it| it.set_left(1)).unwrap();
    advance(&mut app, Duration::from_millis(20));
    assert_eq!(fired(&mut app), ["first", "second"]);
}
