//! `DespawnAfter`, and what becomes of an entity when its timer is through.

mod support;

use bevy_app::App;
use bevy_due::{DespawnAfter, OnClock, OwnedBy, Timer, TimerFired, prelude::*};
use bevy_ecs::prelude::*;
use support::*;

fn lives(app: &App, entity: Entity) -> bool {
    app.world().get_entity(entity).is_ok()
}

#[test]
fn an_entity_goes_in_the_run_of_its_deadline() {
    let mut app = app();
    let bullet = app.world_mut().spawn(DespawnAfter(ms(30))).id();
    advance_ms(&mut app, 29);
    assert!(lives(&app, bullet));
    advance_ms(&mut app, 1);
    assert!(!lives(&app, bullet));
}

#[test]
fn the_entity_can_have_a_timer_of_its_own_beside() {
    let mut app = app();
    let bullet = spawn(&mut app, "blink", Timer::every(ms(10)));
    app.world_mut()
        .entity_mut(bullet)
        .insert(DespawnAfter(ms(25)));
    advance_ms(&mut app, 100);
    let fired = fired(&mut app);
    let blinks = fired.iter().filter(|&&tag| tag == "blink").count();
    assert_eq!(blinks, 2, "none after the entity is gone");
}

#[test]
fn inserting_it_again_starts_anew_and_removing_it_lets_the_entity_live() {
    let mut app = app();
    let bullet = app.world_mut().spawn(DespawnAfter(ms(30))).id();
    advance_ms(&mut app, 20);
    app.world_mut()
        .entity_mut(bullet)
        .insert(DespawnAfter(ms(30)));
    advance_ms(&mut app, 29);
    assert!(lives(&app, bullet));
    app.world_mut().entity_mut(bullet).remove::<DespawnAfter>();
    advance_ms(&mut app, 1000);
    assert!(lives(&app, bullet));
    let timers = app.world().get::<Owned>(bullet);
    assert!(timers.is_none_or(|timers| timers.is_empty()));
}

#[test]
fn it_obeys_the_pause_and_the_clock_of_the_entity() {
    let mut app = app();
    let slow = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let bullet = (DespawnAfter(ms(10)), OnClock::new(slow), Paused);
    let bullet = app.world_mut().spawn(bullet).id();
    advance_ms(&mut app, 100);
    assert!(lives(&app, bullet));
    app.world_mut().entity_mut(bullet).remove::<Paused>();
    advance_ms(&mut app, 19);
    assert!(lives(&app, bullet));
    advance_ms(&mut app, 1);
    assert!(!lives(&app, bullet));
}

#[test]
fn no_time_is_the_next_run_and_bad_time_is_an_error() {
    let mut app = app();
    let spark = app.world_mut().spawn(DespawnAfter::secs(0.0)).id();
    assert!(lives(&app, spark));
    advance_ms(&mut app, 0);
    assert!(!lives(&app, spark));
    let error = DespawnAfter::try_secs(-2.0).unwrap_err();
    assert!(error.to_string().ends_with("got -2 s"));
}

/// Lets a timer fire its last, and says whether its entity lives on two runs later.
fn lives_on(timer: fn(Timer) -> Timer, is_owned: bool, remove: bool) -> bool {
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
    assert!(lives(&app, entity), "as long as systems read of it");
    assert!(!app.world().entity(entity).contains::<Timer>());
    advance_ms(&mut app, 0);
    lives(&app, entity)
}

#[test]
fn when_done_is_obeyed_also_if_a_handler_of_the_last_firing_removes_the_timer() {
    for remove in [false, true] {
        assert!(lives_on(|timer| timer, false, remove));
        assert!(!lives_on(|timer| timer, true, remove));
        for is_owned in [false, true] {
            let case = format!("owned: {is_owned}, removed: {remove}");
            let despawn = lives_on(Timer::despawn_when_done, is_owned, remove);
            assert!(!despawn, "despawn_when_done, {case}");
            let keep = lives_on(Timer::keep_when_done, is_owned, remove);
            assert!(keep, "keep_when_done, {case}");
        }
    }
}

#[test]
fn cancelling_all_timers_does_not_make_it_live_for_ever() {
    let mut app = app();
    let entity = app.world_mut().spawn(DespawnAfter(ms(10))).id();
    app.world_mut().entity_mut(entity).cancel_timers();
    advance_ms(&mut app, 10);
    assert!(!lives(&app, entity));
}

#[test]
fn observers_of_the_owner_are_not_told_of_lifetimes_and_delayed_commands() {
    let mut app = app();
    let mut commands = app.world_mut().commands();
    let bullet = (Tag("hit"), DespawnAfter(ms(30)), Timer::after(ms(10)));
    let bullet = commands.spawn(bullet).id();
    commands.after(ms(20)).of(bullet).queue(|_| {});
    commands
        .entity(bullet)
        .observe(|fired: On<TimerFired>| assert_eq!(fired.entity(), fired.owner()));
    app.world_mut().flush();
    advance_ms(&mut app, 30);
    assert_eq!(firings(&mut app).len(), 3);
}
