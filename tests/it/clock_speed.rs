//! Speed modifiers, and clocks that run only under a condition.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::{App, First, FixedMain};
use bevy_due::{
    Timer, TimerAction,
    clock::{SpeedModifier, SpeedModifiers},
    conditions::run_clock_if,
    prelude::*,
    timer::RunsWhilePaused,
};
use bevy_ecs::{entity_disabling::Disabled, prelude::*};
use bevy_time::{Fixed, Time};

fn modify(app: &mut App, clock: Entity, factor: f64) -> Entity {
    app.world_mut()
        .spawn(SpeedModifier::new(clock, factor))
        .id()
}

/// Returns the milliseconds that pass on a clock in ten milliseconds of the game.
fn speed(app: &mut App, own: Entity) -> u128 {
    let before = now(app, own);
    advance_ms(app, 10);
    (now(app, own) - before).as_millis()
}

#[test]
fn speed_modifiers_multiply_and_end() {
    let mut app = app();
    let own = app.world_mut().spawn(Clock::new().with_speed(3.0)).id();
    let slow = modify(&mut app, own, 0.5);
    assert_eq!(speed(&mut app, own), 15);
    let haste = modify(&mut app, own, 2.0);
    assert_eq!(speed(&mut app, own), 30);
    assert_eq!(clock(&mut app, own).speed(), 3.0, "the speed itself stays");
    app.world_mut().despawn(slow);
    assert_eq!(speed(&mut app, own), 60);
    let other = SpeedModifier::new(own, 0.1);
    app.world_mut().entity_mut(haste).insert(other);
    assert_eq!(speed(&mut app, own), 3, "inserted again");
    app.world_mut().entity_mut(haste).remove::<SpeedModifier>();
    assert_eq!(speed(&mut app, own), 30);
}

#[test]
fn a_factor_of_zero_stops_a_clock_among_enormous_factors() {
    for at in 0..=2 {
        let mut factors = vec![1e300, 1e300];
        factors.insert(at, 0.0);
        let mut app = app();
        let own = app.world_mut().spawn(Clock::new()).id();
        let modifiers: Vec<_> = factors
            .iter()
            .map(|&by| modify(&mut app, own, by))
            .collect();
        assert_eq!(speed(&mut app, own), 0, "{factors:?}");
        app.world_mut().despawn(modifiers[at]);
        assert!(speed(&mut app, own) > 10, "without the zero in {factors:?}");
    }
}

/// A product of numbers from data may be a negative zero.
#[test]
fn a_negative_zero_is_the_strongest_of_its_group() {
    let mut app = app();
    let own = app.world_mut().spawn(Clock::new()).id();
    let stop = SpeedModifier::new(own, -0.0).in_group("slow");
    assert_eq!(stop.factor().to_bits(), 0.0_f64.to_bits());
    let slow = SpeedModifier::new(own, 0.5).in_group("slow");
    app.world_mut().spawn_batch([slow, stop]);
    assert_eq!(speed(&mut app, own), 0);
}

#[test]
fn a_speed_of_zero_stops_a_clock_under_enormous_factors() {
    let mut app = app();
    let own = app.world_mut().spawn(Clock::new().with_speed(0.0)).id();
    for factor in [1e300, 1e300, 1e300] {
        modify(&mut app, own, factor);
        assert_eq!(speed(&mut app, own), 0);
    }
}

#[test]
fn a_modifier_moves_timers_at_once() {
    let mut app = app();
    let own = app.world_mut().spawn(Clock::new()).id();
    spawn(&mut app, "x", Timer::every(ms(10)).on(own));
    advance_ms(&mut app, 5);
    let haste = modify(&mut app, own, 5.0);
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 10)]);
    app.world_mut().despawn(haste);
    let stop = modify(&mut app, own, 0.0);
    advance_ms(&mut app, 100);
    assert!(fired(&mut app).is_empty());
    app.world_mut().despawn(stop);
    advance_ms(&mut app, 10);
    assert_eq!(fired_at(&mut app), [("x", 20)]);
}

#[test]
fn a_modifier_moves_to_another_clock() {
    let mut app = app();
    let [a, b] = [(); 2].map(|()| app.world_mut().spawn(Clock::new()).id());
    let slow = modify(&mut app, a, 0.5);
    app.world_mut()
        .entity_mut(slow)
        .insert(SpeedModifier::new(b, 0.5));
    assert_eq!((speed(&mut app, a), speed(&mut app, b)), (10, 5));
    app.world_mut().despawn(b);
    assert!(
        app.world().get_entity(slow).is_err(),
        "it despawns with its clock"
    );
}

#[test]
fn modifiers_spawned_before_their_clock_or_with_it_count() {
    let mut app = app();
    let own = app.world_mut().spawn_empty().id();
    modify(&mut app, own, 0.5);
    app.world_mut().entity_mut(own).insert(Clock::new());
    assert_eq!(speed(&mut app, own), 5);
    app.world_mut()
        .entity_mut(own)
        .insert(Clock::new().with_speed(4.0));
    assert_eq!(
        speed(&mut app, own),
        20,
        "a replacement keeps the modifiers"
    );
    let own = app
        .world_mut()
        .spawn((Clock::new(), related!(SpeedModifiers[()])))
        .id();
    assert_eq!(speed(&mut app, own), 10, "the default factor is one");
}

#[test]
fn an_effect_does_not_slow_its_own_end() {
    let mut app = app();
    let half = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let own = app.world_mut().spawn(Clock::of(half)).id();
    let slow = || SpeedModifier::new(own, 0.25);
    let world = app.world_mut();
    let effects = [
        world.spawn((slow(), DespawnAfter::new(ms(20)))).id(),
        world
            .spawn((slow(), Timer::after(ms(20)), TimerAction::despawn()))
            .id(),
        world
            .spawn((
                slow(),
                related!(Owned[(Timer::after(ms(20)), TimerAction::despawn_owner())]),
            ))
            .id(),
    ];
    advance_ms(&mut app, 39);
    assert!(
        effects
            .iter()
            .all(|&effect| app.world().get_entity(effect).is_ok())
    );
    advance_ms(&mut app, 1);
    let left = effects.map(|effect| app.world().get_entity(effect).is_ok());
    assert_eq!(left, [false; 3], "20 ms have passed on the parent");
    assert_eq!(speed(&mut app, own), 5);
}

#[test]
fn a_slow_ends_exactly_whatever_carries_it() {
    let times = |way, step| {
        let mut app = app();
        let unit = app.world_mut().spawn(Clock::new()).id();
        let slow = SpeedModifier::new(unit, 0.25);
        let timer = Timer::after(ms(50)).on(ClockId::Virtual);
        match way {
            0 => _ = app.world_mut().spawn((slow, DespawnAfter::new(ms(50)))),
            1 => {
                let keyed = (timer, RunsWhilePaused, slow);
                _ = app.world_mut().entity_mut(unit).set_timer("frost", keyed);
            }
            2 => _ = app.world_mut().spawn((timer.despawn_when_done(), slow)),
            _ => {
                let keyed = (timer, related!(Owned[slow]));
                _ = app.world_mut().entity_mut(unit).set_timer("frost", keyed);
            }
        }
        let mut times = Vec::new();
        match step {
            None => {
                let forward = app.world_mut().fast_forward(ClockId::Virtual, ms(140));
                forward.expect("nothing stops the clock");
                times.push(now(&app, unit));
            }
            Some(step) => {
                for _ in 0..140 / step {
                    advance_ms(&mut app, step);
                    times.push(now(&app, unit));
                }
            }
        }
        times
    };
    let slowed = core::time::Duration::from_micros(12_500 + 90_000);
    assert_eq!(times(0, None), [slowed]);
    for step in [None, Some(1), Some(7), Some(10), Some(35)] {
        let [exact, others @ ..] = [0, 1, 2, 3].map(|way| times(way, step));
        for (way, other) in others.into_iter().enumerate() {
            assert_eq!(other, exact, "{step:?}, way {}", way + 1);
        }
    }
}

#[test]
#[should_panic(expected = "must be finite and not negative, got -0.5")]
fn a_negative_factor_is_an_error_that_names_it() {
    let mut world = World::new();
    let clock = world.spawn_empty().id();
    _ = SpeedModifier::new(clock, -0.5);
}

#[cfg(feature = "serialize")]
#[test]
fn a_loaded_modifier_must_have_a_valid_factor() {
    let mut world = World::new();
    let modifier = SpeedModifier::new(world.spawn_empty().id(), 0.25);
    let text = ron::to_string(&modifier).unwrap();
    assert_eq!(ron::from_str::<SpeedModifier>(&text).unwrap(), modifier);
    let bad = text.replace("0.25", "-1.0");
    let error = ron::from_str::<SpeedModifier>(&bad).unwrap_err();
    assert!(error.to_string().contains("got -1"), "{error}");
}

#[derive(Component)]
struct Level;

#[derive(Component)]
struct Spell;

#[derive(Resource, Default)]
struct Playing(bool);

fn is_playing(playing: Res<Playing>) -> bool {
    playing.0
}

fn conditional_app() -> App {
    let mut app = app();
    app.init_resource::<Playing>()
        .add_systems(First, run_clock_if::<Level, _>(is_playing));
    app
}

fn play(app: &mut App, playing: bool, millis: u64) {
    app.insert_resource(Playing(playing));
    advance_ms(app, millis);
}

#[test]
fn a_condition_in_the_fixed_schedule_decides_about_each_step() {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)))
        .init_resource::<Playing>()
        .add_systems(FixedMain, run_clock_if::<Level, _>(is_playing));
    let clock = (Level, Clock::of(ClockId::Fixed));
    let level = app.world_mut().spawn(clock).id();
    for (playing, shown) in [(true, 10), (false, 10), (true, 20)] {
        play(&mut app, playing, 10);
        assert_eq!(now(&app, level), ms(shown));
    }
}

#[test]
fn time_passes_only_while_the_condition_holds() {
    let mut app = conditional_app();
    let level = app.world_mut().spawn((Level, Clock::new())).id();
    let other = app.world_mut().spawn(Clock::new()).id();
    spawn(&mut app, "level", Timer::after(ms(30)).on(level));
    for (playing, millis) in [(true, 7), (false, 100), (true, 11), (false, 3), (true, 11)] {
        play(&mut app, playing, millis);
    }
    assert_eq!(now(&app, level), ms(29));
    assert_eq!(now(&app, other), ms(132));
    assert!(fired(&mut app).is_empty());
    play(&mut app, true, 1);
    assert_eq!(fired_at(&mut app), [("level", 30)]);
}

#[test]
fn a_condition_and_a_pause_are_independent() {
    let mut app = conditional_app();
    let level = app.world_mut().spawn((Level, Clock::new())).id();
    play(&mut app, false, 10);
    change_clock(&mut app, level, |clock| clock.pause());
    play(&mut app, true, 10);
    assert_eq!(now(&app, level), ms(0), "still paused");
    change_clock(&mut app, level, |clock| clock.unpause());
    play(&mut app, false, 10);
    assert!(
        !clock(&mut app, level).is_paused(),
        "a condition is no pause"
    );
    assert_eq!(now(&app, level), ms(0));
    play(&mut app, true, 10);
    assert_eq!(now(&app, level), ms(10));
}

#[test]
fn a_clock_that_joins_or_leaves_follows_the_condition() {
    let mut app = conditional_app();
    play(&mut app, false, 10);
    let late = app.world_mut().spawn((Level, Clock::new())).id();
    let disabled = app.world_mut().spawn((Level, Clock::new(), Disabled)).id();
    play(&mut app, false, 10);
    app.world_mut().entity_mut(disabled).remove::<Disabled>();
    app.world_mut().entity_mut(late).remove::<Level>();
    play(&mut app, false, 10);
    assert_eq!(now(&app, late), ms(10));
    assert_eq!(now(&app, disabled), ms(0));
    app.world_mut().entity_mut(disabled).remove::<Clock>();
    app.world_mut().entity_mut(disabled).insert(Clock::new());
    play(&mut app, false, 10);
    assert_eq!(now(&app, disabled), ms(0), "also a new clock");
    play(&mut app, true, 10);
    assert_eq!(now(&app, disabled), ms(10));
}

#[test]
fn a_condition_and_a_modifier_hold_a_clock_that_the_game_hides() {
    #[derive(Component)]
    struct Hidden;

    let mut app = conditional_app();
    app.world_mut().register_disabling_component::<Hidden>();
    let level = (Level, Clock::new(), Hidden);
    let level = app.world_mut().spawn(level).id();
    for (playing, shown) in [(true, 10), (false, 10), (true, 20)] {
        play(&mut app, playing, 10);
        assert_eq!(now(&app, level), ms(shown));
    }
    let stop = modify(&mut app, level, 0.0);
    play(&mut app, true, 10);
    assert_eq!(now(&app, level), ms(20));
    app.world_mut().despawn(stop);
    play(&mut app, true, 10);
    assert_eq!(now(&app, level), ms(30));
}

#[test]
fn a_clock_of_two_conditions_needs_both() {
    let mut app = conditional_app();
    app.add_systems(First, run_clock_if::<Spell, _>(|| false));
    let spell = app.world_mut().spawn((Level, Spell, Clock::new())).id();
    play(&mut app, false, 10);
    play(&mut app, true, 10);
    assert_eq!(now(&app, spell), ms(0));
    app.world_mut().entity_mut(spell).remove::<Spell>();
    play(&mut app, true, 10);
    assert_eq!(now(&app, spell), ms(10));
}

/// A new clock takes the place of the old one in the table.
#[test]
fn a_condition_that_has_held_a_lost_clock_lets_no_other_clock_run() {
    let mut app = app();
    let held = run_clock_if::<Spell, _>(|| false);
    let conditions = (held, run_clock_if::<Level, _>(is_playing)).chain();
    app.init_resource::<Playing>()
        .add_systems(First, conditions);
    let level = app.world_mut().spawn((Level, Clock::new())).id();
    play(&mut app, false, 10);
    app.world_mut().despawn(level);
    let spell = app.world_mut().spawn((Spell, Clock::new())).id();
    play(&mut app, true, 10);
    assert_eq!(now(&app, spell), ms(0));
}

#[test]
fn a_panicking_observer_of_a_clock_costs_no_other_unit_its_modifier() {
    #[derive(Resource)]
    struct Panics(bool);

    let mut app = app();
    app.insert_resource(Panics(true));
    let units = [0; 3].map(|_| app.world_mut().spawn(Timer::after(100)).id());
    app.update();
    app.add_observer(|_: On<Insert<Clock>>, mut panics: ResMut<Panics>| {
        assert!(!core::mem::take(&mut panics.0), "once");
    });
    for unit in units {
        modify(&mut app, unit, 0.5);
    }
    let forward = AssertUnwindSafe(|| app.world_mut().fast_forward(ClockId::Virtual, 0));
    assert!(catch_unwind(forward).is_err());
    advance_ms(&mut app, 0);
    for unit in units {
        assert!(app.world().get::<Clock>(unit).is_some());
    }
}
