//! `DespawnAfter`, and whether an entity outlives its last firing.

use core::{mem, panic::AssertUnwindSafe};
use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::{App, FixedPreUpdate};
use bevy_due::{
    DespawnAfter, OnClock, OwnedBy, Timer, TimerFired, prelude::*, timer::IntoDuration,
};
use bevy_ecs::{
    error::{FallbackErrorHandler, ignore},
    lifecycle::Despawn,
    prelude::*,
};

fn is_alive(app: &App, entity: Entity) -> bool {
    app.world().get_entity(entity).is_ok()
}

#[test]
fn an_entity_despawns_in_the_run_of_its_deadline() {
    let mut app = app();
    let bullet = app.world_mut().spawn(DespawnAfter::new(ms(30))).id();
    advance_ms(&mut app, 29);
    assert!(is_alive(&app, bullet));
    advance_ms(&mut app, 1);
    assert!(!is_alive(&app, bullet));
}

#[test]
fn the_entity_can_also_carry_a_timer() {
    let mut app = app();
    let bullet = spawn(&mut app, "blink", Timer::every(ms(10)));
    app.world_mut()
        .entity_mut(bullet)
        .insert(DespawnAfter::new(ms(25)));
    advance_ms(&mut app, 100);
    let fired = fired(&mut app);
    let blinks = fired.iter().filter(|&&tag| tag == "blink").count();
    assert_eq!(blinks, 2, "should not fire after the entity despawned");
}

#[test]
fn reinserting_restarts_the_countdown_and_removing_stops_it() {
    let mut app = app();
    let bullet = app.world_mut().spawn(DespawnAfter::new(ms(30))).id();
    advance_ms(&mut app, 20);
    app.world_mut()
        .entity_mut(bullet)
        .insert(DespawnAfter::new(ms(30)));
    advance_ms(&mut app, 29);
    assert!(is_alive(&app, bullet));
    app.world_mut().entity_mut(bullet).remove::<DespawnAfter>();
    advance_ms(&mut app, 1000);
    assert!(is_alive(&app, bullet));
    let timers = app.world().get::<Owned>(bullet);
    assert!(timers.is_none_or(|timers| timers.is_empty()));
}

#[test]
fn a_lifetime_follows_the_pause_and_the_clock_of_its_entity() {
    let mut app = app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let bullet = (DespawnAfter::new(ms(10)), OnClock::new(slow), Paused);
    let bullet = app.world_mut().spawn(bullet).id();
    advance_ms(&mut app, 100);
    assert!(is_alive(&app, bullet));
    app.world_mut().entity_mut(bullet).remove::<Paused>();
    advance_ms(&mut app, 19);
    assert!(is_alive(&app, bullet));
    advance_ms(&mut app, 1);
    assert!(!is_alive(&app, bullet));
}

#[test]
fn a_zero_lifetime_ends_in_the_next_run_and_a_negative_one_is_an_error() {
    let mut app = app();
    let spark = app.world_mut().spawn(DespawnAfter::new(0.0)).id();
    assert!(is_alive(&app, spark));
    advance_ms(&mut app, 0);
    assert!(!is_alive(&app, spark));
    let error = (-2.0).try_into_duration().unwrap_err();
    assert!(error.to_string().ends_with("got -2 s"));
}

/// Fires a timer for the last time and returns whether its entity survives the next run.
fn survives_last_firing(timer: fn(Timer) -> Timer, is_owned: bool, remove: bool) -> bool {
    let mut app = app();
    let owner = app.world_mut().spawn_empty().id();
    let entity = spawn(&mut app, "x", timer(Timer::after(ms(10))));
    if is_owned {
        app.world_mut().entity_mut(entity).insert(OwnedBy(owner));
    }
    app.add_observer(move |fired: On<TimerFired>, mut commands: Commands| {
        if remove {
            commands.entity(fired.entity()).remove::<Timer>();
        }
    });
    advance_ms(&mut app, 10);
    assert!(
        is_alive(&app, entity),
        "should exist while systems can still read the firing"
    );
    assert!(!app.world().entity(entity).contains::<Timer>());
    advance_ms(&mut app, 0);
    is_alive(&app, entity)
}

#[test]
fn the_when_done_setting_applies_even_if_a_handler_removes_the_timer() {
    for remove in [false, true] {
        assert!(survives_last_firing(|timer| timer, false, remove));
        assert!(!survives_last_firing(|timer| timer, true, remove));
        for is_owned in [false, true] {
            let case = format!("owned: {is_owned}, removed: {remove}");
            let survives = survives_last_firing(Timer::despawn_when_done, is_owned, remove);
            assert!(!survives, "despawn_when_done, {case}");
            let survives = survives_last_firing(Timer::keep_when_done, is_owned, remove);
            assert!(survives, "keep_when_done, {case}");
        }
    }
}

#[test]
fn cancel_timers_does_not_cancel_a_lifetime() {
    let mut app = app();
    let entity = app.world_mut().spawn(DespawnAfter::new(ms(10))).id();
    app.world_mut().entity_mut(entity).cancel_timers();
    advance_ms(&mut app, 10);
    assert!(!is_alive(&app, entity));
}

#[test]
fn lifetimes_and_delayed_commands_do_not_notify_observers_of_the_owner() {
    let mut app = app();
    let mut commands = app.world_mut().commands();
    let bullet = (Tag("hit"), DespawnAfter::new(ms(30)), Timer::after(ms(10)));
    let bullet = commands.spawn(bullet).id();
    commands.after(ms(20)).of(bullet).queue(|_| {});
    commands
        .entity(bullet)
        .observe(|fired: On<TimerFired>| assert_eq!(fired.entity(), fired.owner()));
    app.world_mut().flush();
    advance_ms(&mut app, 30);
    assert_eq!(
        firings(&mut app).len(),
        2,
        "the end of a lifetime is not an event"
    );
}

#[test]
fn a_despawn_that_panicked_is_not_tried_again_without_the_lifetime() {
    #[derive(Component)]
    struct Trap;

    for keeps_lifetime in [true, false] {
        let mut app = app();
        app.add_observer(|trap: On<Despawn<Trap>>, mut traps: Local<u32>| {
            *traps += 1;
            assert!(*traps > 1, "the first despawn of {} fails", trap.entity);
        });
        let entity = (Trap, DespawnAfter::new(ms(10)));
        let entity = app.world_mut().spawn(entity).id();
        let forward = || app.world_mut().fast_forward(ClockId::Virtual, ms(10));
        assert!(catch_unwind(AssertUnwindSafe(forward)).is_err());
        if !keeps_lifetime {
            app.world_mut().entity_mut(entity).remove::<DespawnAfter>();
        }
        advance_ms(&mut app, 0);
        assert_eq!(is_alive(&app, entity), !keeps_lifetime);
    }
}

#[test]
fn a_lifetime_whose_despawn_panics_in_a_nested_run_ends_in_the_next_run() {
    #[derive(Component)]
    struct Trap;

    let mut app = app();
    app.insert_resource(FallbackErrorHandler(ignore));
    let mut is_set = true;
    app.add_observer(move |_: On<Despawn<Trap>>| {
        if mem::take(&mut is_set) {
            std::panic::resume_unwind(Box::new("the first despawn fails"));
        }
    });
    app.world_mut().spawn(Timer::after(ms(10))).observe(
        |_: On<TimerFired>, mut commands: Commands| {
            commands.run_schedule(FixedPreUpdate);
        },
    );
    // Fires after the nested run.
    app.world_mut().spawn(Timer::after(ms(10)));
    advance_ms(&mut app, 5);
    let short = (Trap, OnClock(ClockId::Fixed), DespawnAfter::new(ms(0)));
    let short = app.world_mut().spawn(short).id();
    advance_ms(&mut app, 5);
    assert!(is_alive(&app, short), "its despawn has panicked");
    advance_ms(&mut app, 0);
    assert!(!is_alive(&app, short));
}
