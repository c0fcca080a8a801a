//! `DespawnAfter`, and whether an entity outlives its last firing.

use core::{mem, panic::AssertUnwindSafe, time::Duration};
use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::{App, FixedPreUpdate};
use bevy_due::{
    DespawnAfter, OnClock, OwnedBy, Timer, TimerFired, clock::SpeedModifier, prelude::*,
    timer::IntoDuration,
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
fn a_lifetime_counts_from_a_time_on_its_clock() {
    let mut app = app();
    let clock = app.world_mut().spawn(Clock::new().with_speed(2.0)).id();
    advance_ms(&mut app, 100);
    let lifetime = |secs_since| DespawnAfter::new(ms(50)).since(secs_since);
    let world = app.world_mut();
    let [late, on_clock] = [lifetime(0.08), lifetime(0.18)].map(|it| world.spawn(it).id());
    world.entity_mut(on_clock).insert(OnClock::new(clock));
    let past = world.spawn(lifetime(0.01)).id();
    let future = world.spawn(lifetime(1.0)).id();
    let left = app
        .world_mut()
        .with_timers(|timers| [late, on_clock, past, future].map(|entity| timers.lifetime(entity)));
    assert_eq!(left, [30, 30, 0, 950].map(|it| Some(ms(it))));
    advance_ms(&mut app, 0);
    assert!(!is_alive(&app, past), "it was over already");
    advance_ms(&mut app, 14);
    assert!(is_alive(&app, on_clock));
    advance_ms(&mut app, 1);
    assert!(!is_alive(&app, on_clock));
    assert!(is_alive(&app, late));
    advance_ms(&mut app, 15);
    assert!(!is_alive(&app, late));
    advance_ms(&mut app, 919);
    assert!(is_alive(&app, future));
    advance_ms(&mut app, 1);
    assert!(!is_alive(&app, future));
}

/// One second of every two is dark. Without `since`, each night begins and ends with a frame, and lasts up to a frame
/// too long.
#[test]
fn an_effect_of_a_handler_is_as_long_in_each_frame_length() {
    fn sunlight(frame: u64, night: fn(Entity, &TimerFired, &mut Commands)) -> Duration {
        let mut app = unobserved_app();
        let sun = app.world_mut().spawn(Clock::new()).id();
        app.world_mut().spawn(Timer::every(2).first_at(1)).observe(
            move |fired: On<TimerFired>, mut commands: Commands| night(sun, &fired, &mut commands),
        );
        for _ in 0..42_000 / frame {
            advance_ms(&mut app, frame);
        }
        now(&app, sun)
    }

    for frame in [16, 300, 700] {
        let since = sunlight(frame, |sun, fired, commands| {
            let night = DespawnAfter::new(1).since(fired.deadline());
            commands.spawn((SpeedModifier::new(sun, 0.0), night));
        });
        let timer = sunlight(frame, |sun, fired, commands| {
            let night = Timer::after(1).since(fired.deadline()).despawn_when_done();
            commands.spawn((SpeedModifier::new(sun, 0.0), night));
        });
        assert_eq!(since, timer, "as a timer, in frames of {frame} ms");
        let error = since.abs_diff(Duration::from_secs(21));
        assert!(
            error <= Duration::from_secs(1),
            "{since:?} in frames of {frame} ms"
        );
    }
}

#[test]
fn a_lifetime_is_a_number_of_seconds_or_a_duration() {
    let lifetimes: [DespawnAfter; 4] = [3.into(), 3.0.into(), 3.0_f32.into(), ms(3000).into()];
    for lifetime in lifetimes {
        assert_eq!(lifetime, DespawnAfter::new(3));
    }
    let since = DespawnAfter::new(3).since(1);
    assert_ne!(since, DespawnAfter::new(3));
    assert_eq!(format!("{since:?}"), "DespawnAfter(3s, since: 1s)");
    assert_eq!(format!("{:?}", DespawnAfter::new(3)), "DespawnAfter(3s)");
}

#[test]
#[should_panic(expected = "must be finite and not negative, got -1 s")]
fn a_negative_number_is_no_lifetime() {
    _ = DespawnAfter::from(-1.0);
}

#[cfg(feature = "serialize")]
#[test]
fn a_new_lifetime_is_saved_with_the_time_from_which_it_counts() {
    use bevy_due::save::SaveWorldExt;
    use bevy_ecs::entity::EntityHashMap;

    let mut old = app();
    advance_ms(&mut old, 100);
    let clock = old.world_mut().spawn_empty().id();
    let lifetime = DespawnAfter::new(ms(50)).since(ms(80));
    // It does not count before its clock is there.
    let entity = old.world_mut().spawn((lifetime, OnClock::new(clock))).id();
    let saved = old.world_mut().save_timers().expect("it is data");
    let mut new = app();
    let mut entities = EntityHashMap::default();
    new.world_mut()
        .load_timers(&saved, &mut entities)
        .expect("it is data");
    let entity = entities[&entity];
    new.world_mut()
        .entity_mut(entity)
        .insert(OnClock::new(ClockId::Virtual));
    advance_ms(&mut new, 29);
    assert!(is_alive(&new, entity));
    advance_ms(&mut new, 1);
    assert!(!is_alive(&new, entity));
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
