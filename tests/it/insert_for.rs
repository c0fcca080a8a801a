//! `insert_for`: components for a limited time.

use core::any::type_name;

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{OnClock, PausedBy, Timer, TimerCancelled, prelude::*, timer::RunsWhilePaused};
use bevy_ecs::{
    entity_disabling::Disabled, error::FallbackErrorHandler, prelude::*, resource::IsResource,
};

#[derive(Component, Clone, Copy, Debug, PartialEq)]
struct Shield(u32);

#[derive(Component)]
struct Stunned;

fn shield_for(app: &mut App, entity: Entity, millis: u64, strength: u32) {
    let mut commands = app.world_mut().commands();
    let mut entity = commands.entity(entity);
    entity.insert_for(ms(millis), Shield(strength));
    app.world_mut().flush();
}

fn shield(app: &App, entity: Entity) -> Option<u32> {
    app.world().get::<Shield>(entity).map(|shield| shield.0)
}

fn timers_of(app: &mut App, entity: Entity) -> usize {
    app.world_mut()
        .with_timers(|timers| timers.of(entity).count())
}

#[test]
fn a_component_is_removed_after_its_time() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    let mut commands = app.world_mut().commands();
    let mut hero_commands = commands.entity(hero);
    hero_commands.insert_for(0.02_f32, Shield(1));
    hero_commands.insert_for(ms(30), Stunned);
    advance_ms(&mut app, 19);
    assert_eq!(shield(&app, hero), Some(1));
    advance_ms(&mut app, 1);
    assert_eq!(shield(&app, hero), None);
    assert!(app.world().entity(hero).contains::<Stunned>());
    advance_ms(&mut app, 10);
    assert!(!app.world().entity(hero).contains::<Stunned>());
    assert_eq!(timers_of(&mut app, hero), 0);
    assert!(!app.world().entity(hero).contains::<Owned>());
}

#[test]
fn inserted_again_the_later_end_counts_and_the_new_value() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    shield_for(&mut app, hero, 20, 1);
    advance_ms(&mut app, 10);
    shield_for(&mut app, hero, 5, 2);
    assert_eq!(shield(&app, hero), Some(2));
    advance_ms(&mut app, 9);
    assert_eq!(shield(&app, hero), Some(2), "never shortened");
    shield_for(&mut app, hero, 10, 3);
    assert_eq!(timers_of(&mut app, hero), 1);
    advance_ms(&mut app, 9);
    assert_eq!(shield(&app, hero), Some(3), "extended");
    advance_ms(&mut app, 1);
    assert_eq!(shield(&app, hero), None);
    shield_for(&mut app, hero, 10, 4);
    advance_ms(&mut app, 9);
    assert_eq!(shield(&app, hero), Some(4));
}

#[test]
fn removing_the_component_ends_its_timer() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    for _ in 0..2 {
        shield_for(&mut app, hero, 20, 1);
        app.world_mut().entity_mut(hero).remove::<Shield>();
        assert_eq!(timers_of(&mut app, hero), 0);
        app.world_mut().entity_mut(hero).insert(Shield(2));
        advance_ms(&mut app, 50);
        assert_eq!(shield(&app, hero), Some(2), "inserted for good");
    }
    // The removal and the insertion in one batch of commands.
    shield_for(&mut app, hero, 20, 3);
    let mut commands = app.world_mut().commands();
    let mut entity = commands.entity(hero);
    entity.remove::<Shield>().insert(Shield(4));
    advance_ms(&mut app, 50);
    assert_eq!(shield(&app, hero), Some(4));
}

#[test]
fn a_plain_insert_changes_the_value_but_not_the_end() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    shield_for(&mut app, hero, 20, 1);
    app.world_mut().entity_mut(hero).insert(Shield(2));
    advance_ms(&mut app, 19);
    assert_eq!(shield(&app, hero), Some(2));
    advance_ms(&mut app, 1);
    assert_eq!(shield(&app, hero), None);
}

#[test]
fn the_time_follows_the_clock_around_the_entity_and_runs_through_its_pauses() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let own = Clock::of(arena).with_speed(0.1);
    let slowed = app.world_mut().spawn(own).id();
    let guest = app.world_mut().spawn(OnClock::new(arena)).id();
    for hero in [slowed, guest] {
        shield_for(&mut app, hero, 20, 1);
        app.world_mut()
            .entity_mut(hero)
            .insert(Paused)
            .pause_for(1.0);
    }
    advance_ms(&mut app, 39);
    assert_eq!([slowed, guest].map(|hero| shield(&app, hero)), [Some(1); 2]);
    advance_ms(&mut app, 1);
    assert_eq!([slowed, guest].map(|hero| shield(&app, hero)), [None; 2]);
}

#[test]
fn a_game_can_let_the_time_wait_for_the_end_of_a_pause() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    shield_for(&mut app, hero, 20, 1);
    let limit = owned(app.world(), hero)[0];
    app.world_mut()
        .entity_mut(limit)
        .remove::<RunsWhilePaused>();
    app.world_mut().entity_mut(hero).pause_for(ms(100));
    advance_ms(&mut app, 100);
    advance_ms(&mut app, 19);
    assert_eq!(shield(&app, hero), Some(1));
    advance_ms(&mut app, 1);
    assert_eq!(shield(&app, hero), None);
}

#[test]
fn the_time_survives_cancel_timers_but_not_its_own_cancellation() {
    let mut app = app();
    let hero = app.world_mut().spawn(Timer::after(ms(20))).id();
    shield_for(&mut app, hero, 20, 1);
    app.world_mut().entity_mut(hero).cancel_timers();
    assert_eq!(timers_of(&mut app, hero), 1);
    let limit = owned(app.world(), hero)[0];
    app.world_mut().entity_mut(limit).cancel_timers();
    assert_eq!(timers_of(&mut app, hero), 1, "also on its own entity");
    let key = type_name::<Shield>();
    assert!(app.world_mut().cancel_timer(hero, key));
    assert_eq!(shield(&app, hero), None, "no timer, no component");
}

/// The calls for all timers of an owner have one rule.
#[test]
fn the_time_is_not_delayed_with_the_timers_of_its_owner() {
    let mut app = app();
    let hero = spawn(&mut app, "x", Timer::after(ms(20)));
    shield_for(&mut app, hero, 20, 1);
    app.world_mut().entity_mut(hero).delay_timers_by(ms(10));
    let limit = owned(app.world(), hero)[0];
    app.world_mut().entity_mut(limit).delay_timers_by(ms(10));
    advance_ms(&mut app, 20);
    assert_eq!(shield(&app, hero), None);
    assert_eq!(fired_at(&mut app), [("", 20)]);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("x", 30)]);
    shield_for(&mut app, hero, 20, 1);
    app.world_mut()
        .entity_mut(hero)
        .change_timer(type_name::<Shield>(), |timer| {
            timer.delay_by(ms(10));
        });
    advance_ms(&mut app, 20);
    assert_eq!(shield(&app, hero), Some(1), "by its key");
}

#[test]
fn a_component_does_not_outlive_its_clock() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new()).id();
    let hero = app.world_mut().spawn(OnClock::new(arena)).id();
    shield_for(&mut app, hero, 20, 1);
    advance_ms(&mut app, 0);
    app.world_mut().entity_mut(arena).remove::<Clock>();
    advance_ms(&mut app, 0);
    assert_eq!(shield(&app, hero), None);
}

#[test]
fn the_entity_may_despawn_at_any_time() {
    let mut app = app();
    let hero = app.world_mut().spawn_empty().id();
    shield_for(&mut app, hero, 20, 1);
    advance_ms(&mut app, 10);
    app.world_mut().despawn(hero);
    advance_ms(&mut app, 10);
    let timers = app.world_mut().with_timers(|timers| timers.count());
    assert_eq!(timers, 0);
}

#[test]
fn an_observer_of_the_removal_may_bring_the_component_back() {
    for is_ended in [false, true] {
        for millis in [None, Some(5), Some(20)] {
            let mut app = app();
            let hero = app.world_mut().spawn_empty().id();
            app.add_observer(
                move |removed: On<Remove<Shield>>,
                      mut commands: Commands,
                      mut done: Local<bool>| {
                    let mut hero = commands.entity(removed.entity);
                    match millis {
                        _ if *done => return,
                        None => hero.insert(Shield(2)),
                        Some(millis) => hero.insert_for(ms(millis), Shield(2)),
                    };
                    *done = true;
                },
            );
            shield_for(&mut app, hero, 10, 1);
            match is_ended {
                true => advance_ms(&mut app, 10),
                false => _ = app.world_mut().entity_mut(hero).remove::<Shield>(),
            }
            let case = format!("{millis:?}, {is_ended}");
            assert_eq!(shield(&app, hero), Some(2), "{case}");
            assert_eq!(timers_of(&mut app, hero), millis.iter().len(), "{case}");
            advance_ms(&mut app, millis.unwrap_or(100) - 1);
            assert_eq!(shield(&app, hero), Some(2), "{case}");
            advance_ms(&mut app, 1);
            assert_eq!(shield(&app, hero), millis.is_none().then_some(2), "{case}");
        }
    }
}

/// In a long frame, an effect that a handler starts counts from the deadline that has fired.
#[test]
fn a_limited_component_and_a_pause_count_from_a_time_on_their_clock() {
    let mut app = app();
    let half = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    // Effects count on the parent of the hero's own clock.
    let hero = app.world_mut().spawn(Clock::of(half).with_speed(0.1)).id();
    app.world_mut()
        .spawn(Timer::after(ms(20)).on(half))
        .observe(move |fired: On<TimerFired>, mut commands: Commands| {
            let effect = DespawnAfter::new(ms(50)).since(fired.deadline());
            let mut hero = commands.entity(hero);
            hero.insert_for(effect.clone(), Shield(1)).pause_for(effect);
        });
    advance_ms(&mut app, 100);
    let state = |app: &App| {
        let hero = app.world().entity(hero);
        [hero.contains::<Shield>(), hero.contains::<PausedBy>()]
    };
    assert_eq!(
        state(&app),
        [true, true],
        "from 20 ms on, and it is at 50 ms"
    );
    advance_ms(&mut app, 39);
    assert_eq!(state(&app), [true, true]);
    advance_ms(&mut app, 1);
    assert_eq!(state(&app), [false, false], "at 70 ms");

    // The later end counts, whatever it counts from.
    let shield_since = |app: &mut App, millis, since| {
        let effect = DespawnAfter::new(ms(millis)).since(ms(since));
        app.world_mut()
            .entity_mut(hero)
            .insert_for(effect, Shield(2));
    };
    shield_since(&mut app, 30, 70);
    shield_since(&mut app, 90, 5);
    shield_since(&mut app, 5, 75);
    advance_ms(&mut app, 59);
    assert_eq!(state(&app), [true, false]);
    advance_ms(&mut app, 1);
    assert_eq!(state(&app), [false, false], "at 100 ms");
}

/// The timer of the component is no longer armed then, but it is still the one that ends it.
#[test]
fn a_component_is_prolonged_at_the_moment_of_its_end() {
    fn prolong(app: &mut App, hero: Entity, millis: u64) {
        let again = move |mut commands: Commands, mut done: Local<bool>| {
            if !*done {
                commands.entity(hero).insert_for(ms(millis), Shield(2));
            }
            *done = true;
        };
        let again = app.world_mut().register_system(again);
        app.add_observer(move |_: On<TimerFired>, mut commands: Commands| {
            commands.run_system(again);
        });
        app.add_observer(move |_: On<TimerCancelled>, mut commands: Commands| {
            commands.run_system(again);
        });
    }

    for is_cancelled in [false, true] {
        for by in [0, 1, 30] {
            let mut app = app();
            let hero = app.world_mut().spawn_empty().id();
            shield_for(&mut app, hero, 20, 1);
            prolong(&mut app, hero, by);
            match is_cancelled {
                true => _ = app.world_mut().cancel_timer(hero, type_name::<Shield>()),
                false => advance_ms(&mut app, 20),
            }
            let case = format!("by {by} ms, {is_cancelled}");
            assert_eq!(shield(&app, hero), Some(2), "{case}");
            assert_eq!(timers_of(&mut app, hero), 1, "{case}");
            if by > 0 {
                advance_ms(&mut app, by - 1);
                assert_eq!(shield(&app, hero), Some(2), "{case}");
            }
            advance_ms(&mut app, 1);
            assert_eq!(shield(&app, hero), None, "{case}");
        }
    }
}

#[test]
fn a_clean_up_that_despawns_every_entity_keeps_the_observers() {
    let mut app = unobserved_app();
    for _ in 0..3 {
        let hero = app.world_mut().spawn_empty().id();
        shield_for(&mut app, hero, 20, 1);
        app.world_mut().entity_mut(hero).insert_for(ms(20), Stunned);
        app.world_mut()
            .despawn_all::<(Without<IsResource>, Allow<Disabled>)>();
        let hero = app.world_mut().spawn_empty().id();
        shield_for(&mut app, hero, 20, 1);
        app.world_mut().entity_mut(hero).remove::<Shield>();
        assert_eq!(timers_of(&mut app, hero), 0, "the removal is noticed");
    }
}

#[test]
fn a_component_without_an_end_stays() {
    let mut app = app();
    let hero = app.world_mut().spawn(Shield(1)).id();
    shield_for(&mut app, hero, 10, 2);
    assert_eq!(shield(&app, hero), Some(2));
    advance_ms(&mut app, 50);
    assert_eq!(shield(&app, hero), Some(2));
}

#[test]
fn a_limited_pause_ends_itself_and_a_limited_disabling_is_an_error() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let hero = spawn(&mut app, "x", Timer::after(ms(10)));
    app.world_mut().entity_mut(hero).insert_for(ms(20), Paused);
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), [""; 0]);
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);

    let mut entity = app.world_mut().entity_mut(hero);
    entity.insert_for(ms(20), Disabled);
    assert!(!entity.contains::<Disabled>());
    assert_eq!(errors().len(), 1);
}

#[test]
fn two_types_with_one_name_are_an_error() {
    fn first() -> impl Component + Copy {
        #[derive(Component, Clone, Copy)]
        struct Local;
        Local
    }

    fn name_of<C: Component>(_: C) -> &'static str {
        type_name::<C>()
    }

    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let hero = app.world_mut().spawn_empty().id();
    let (one, two) = {
        let one = {
            #[derive(Component, Clone, Copy)]
            struct Local;
            Local
        };
        #[derive(Component, Clone, Copy)]
        struct Local;
        (one, Local)
    };
    assert_eq!(name_of(one), name_of(two));
    assert_ne!(name_of(one), name_of(first()));
    let mut entity = app.world_mut().entity_mut(hero);
    entity.insert_for(ms(20), one);
    entity.insert_for(ms(20), first());
    assert_eq!(errors(), [""; 0]);
    entity.insert_for(ms(10), two);
    let reports = errors();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains(name_of(two)), "{reports:?}");
    assert!(!has(&app, hero, &two), "it would stay forever");
    advance_ms(&mut app, 19);
    assert!(has(&app, hero, &one));
    advance_ms(&mut app, 1);
    assert!(!has(&app, hero, &one));
}

fn has<C: Component>(app: &App, entity: Entity, _: &C) -> bool {
    app.world().entity(entity).contains::<C>()
}

#[cfg(feature = "serialize")]
#[test]
fn data_that_names_an_unknown_component_is_a_warning() {
    use bevy_due::save::SaveWorldExt;
    use bevy_ecs::{entity::EntityHashMap, error::Severity};

    let mut old = app();
    let hero = old.world_mut().spawn_empty().id();
    shield_for(&mut old, hero, 20, 1);
    let saved = old.world_mut().save_timers().expect("it can be saved");
    let mut new = app();
    new.insert_resource(FallbackErrorHandler(record));
    let loaded = new
        .world_mut()
        .load_timers(&saved, &mut EntityHashMap::default());
    loaded.expect("the rest can be loaded");
    new.update();
    let reports = reports();
    let (severity, text) = &reports[0];
    assert_eq!(*severity, Severity::Warning, "{reports:?}");
    assert!(text.contains("no component is registered"), "{reports:?}");
}
