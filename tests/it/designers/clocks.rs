//! Slows and clocks of units.

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    ClocksMut, OnClock, Timer, UpdateComponent, clock::SpeedModifier, prelude::*, timer::TimerMut,
};
use bevy_ecs::{prelude::*, system::RunSystemOnce};

#[derive(Component, Default, PartialEq, Debug)]
struct Attacks(u32);

/// A unit that attacks once per second.
fn attacking() -> impl Bundle {
    (Attacks::default(), Timer::every(1.0))
}

fn arena() -> App {
    let mut app = app();
    app.add_observer(|fired: On<TimerFired>, mut units: Query<&mut Attacks>| {
        if let Ok(mut attacks) = units.get_mut(fired.owner()) {
            attacks.0 += 1;
        }
    });
    app
}

fn play(app: &mut App, seconds: u64) {
    for _ in 0..10 * seconds {
        advance_ms(app, 100);
    }
}

fn attacks(app: &App, unit: Entity) -> u32 {
    app.world()
        .get::<Attacks>(unit)
        .map_or(0, |attacks| attacks.0)
}

#[test]
fn a_unit_without_a_clock_can_be_slowed() {
    let mut app = arena();
    let unit = app.world_mut().spawn(attacking()).id();
    let owned = (OwnedBy(unit), Timer::every(1.0));
    app.world_mut().spawn(owned);
    play(&mut app, 2);
    assert_eq!(attacks(&app, unit), 4);
    let slow = (SpeedModifier::new(unit, 0.5), DespawnAfter::new(4.0));
    app.world_mut().spawn(slow);
    play(&mut app, 4);
    assert_eq!(attacks(&app, unit), 8);
    play(&mut app, 2);
    assert_eq!(attacks(&app, unit), 12, "the slow has ended on its own");
}

#[test]
fn a_slowed_unit_without_a_clock_stays_in_its_arena() {
    let mut app = arena();
    let arena = app.world_mut().spawn(Clock::new()).id();
    let unit = app
        .world_mut()
        .spawn((attacking(), OnClock::new(arena)))
        .id();
    play(&mut app, 1);
    app.world_mut().spawn(SpeedModifier::new(unit, 0.5));
    play(&mut app, 2);
    assert_eq!(attacks(&app, unit), 2);
    assert_eq!(clock(&mut app, unit).parent(), Some(arena.into()));
    let now = move |clocks: Clocks| (clocks.now(arena), clocks.now(unit));
    let now = app.world_mut().run_system_once(now).unwrap();
    assert_eq!(
        now,
        (Ok(ms(3000)), Ok(ms(2000))),
        "it went on from the time of the arena"
    );
    change_clock(&mut app, arena, |clock| clock.pause());
    play(&mut app, 10);
    assert_eq!(attacks(&app, unit), 2);
}

#[test]
fn an_own_clock_and_the_clock_of_an_arena_work_together() {
    for is_clock_first in [true, false] {
        let mut app = arena();
        let arena = app.world_mut().spawn(Clock::new().with_speed(2.0)).id();
        let on = OnClock::new(arena);
        let mut unit = app.world_mut().spawn_empty();
        let unit = match is_clock_first {
            true => unit.insert((Clock::new(), on, attacking())).id(),
            false => unit.insert(on).insert((attacking(), Clock::new())).id(),
        };
        play(&mut app, 1);
        assert_eq!(attacks(&app, unit), 2, "the arena is fast");
        app.world_mut().spawn(SpeedModifier::new(unit, 0.25));
        play(&mut app, 4);
        assert_eq!(attacks(&app, unit), 4, "the unit is slow");
    }
}

#[test]
fn a_unit_with_a_clock_enters_an_arena() {
    let mut app = arena();
    let arena = app.world_mut().spawn(Clock::new().with_speed(2.0)).id();
    let unit = app.world_mut().spawn((attacking(), Clock::new())).id();
    play(&mut app, 1);
    change_clock(&mut app, unit, |clock| clock.set_parent(arena).unwrap());
    play(&mut app, 2);
    assert_eq!(attacks(&app, unit), 5);
}

#[test]
fn a_clock_that_comes_later_moves_what_it_would_have_run_from_the_start() {
    let mut app = arena();
    let ticks = UpdateComponent::new(|mut me| {
        let delta = me.delta.as_millis() as u32;
        me.entity.get_mut::<Attacks>().expect("it attacks").0 += delta;
    });
    let walker = app.world_mut().spawn((Attacks::default(), ticks)).id();
    let unit = app
        .world_mut()
        .spawn((attacking(), DespawnAfter::new(4.0)))
        .id();
    let real = (OwnedBy(unit), Timer::every(1.0).on(ClockId::Real));
    let real = app.world_mut().spawn((real, Attacks::default())).id();
    let other = app.world_mut().spawn(Clock::new().with_speed(3.0)).id();
    let moved = app
        .world_mut()
        .spawn((OwnedBy(unit), Timer::every(1.0)))
        .id();
    play(&mut app, 1);
    let leave = move |timer: &mut TimerMut| timer.set_clock(other).expect("it exists");
    app.world_mut().entity_mut(moved).change_own_timer(leave);
    for slowed in [unit, walker] {
        let clock = Clock::new().with_speed(0.5);
        app.world_mut().entity_mut(slowed).insert(clock);
    }
    let before = attacks(&app, unit);
    play(&mut app, 2);
    assert_eq!(attacks(&app, walker), 2000);
    let on = move |timers: ArmedTimers| {
        let clock = |timer| timers.get(timer).map(|timer| timer.clock);
        (clock(unit), clock(real), timers.lifetime(unit))
    };
    let (own, chosen, lifetime) = app.world_mut().run_system_once(on).unwrap();
    assert_eq!((own, chosen), (Some(unit.into()), Some(ClockId::Real)));
    assert_eq!(lifetime, Some(ms(2000)));
    // Its own timer once, the one on the real clock twice, and the one that was moved by hand six times.
    assert_eq!(attacks(&app, unit) - before, 1 + 2 + 6);
}

#[test]
fn of_a_group_of_slows_only_the_strongest_counts() {
    let mut app = app();
    let unit = app.world_mut().spawn_empty().id();
    let mut slow = |factor, seconds: f32| {
        let slow = SpeedModifier::new(unit, factor).in_group("slow");
        app.world_mut().spawn((slow, DespawnAfter::new(seconds)));
    };
    slow(0.75, 3.0);
    slow(0.5, 2.0);
    slow(0.5, 1.0);
    app.world_mut().spawn(SpeedModifier::new(unit, 2.0));
    let mut speeds = Vec::new();
    for _ in 0..4 {
        play(&mut app, 1);
        let speed = move |clocks: Clocks| clocks.speed(unit);
        speeds.push(app.world_mut().run_system_once(speed).unwrap().unwrap());
    }
    assert_eq!(speeds, [1.0, 1.5, 2.0, 2.0]);
}

#[test]
fn the_whole_speed_and_the_delta_of_a_clock_drive_a_movement() {
    let mut app = app();
    let arena = app.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let unit = app.world_mut().spawn(Clock::of(arena)).id();
    app.world_mut().spawn(SpeedModifier::new(unit, 3.0));
    let read = move |clocks: Clocks| (clocks.speed(unit), clocks.delta(unit));
    advance_ms(&mut app, 100);
    advance_ms(&mut app, 100);
    let before = app.world_mut().run_system_once(read).unwrap();
    assert_eq!(before, (Ok(1.5), Ok(ms(150))));
    let stop = move |mut clocks: ClocksMut| clocks.get_mut(arena).unwrap().pause();
    app.world_mut().run_system_once(stop).unwrap();
    advance_ms(&mut app, 100);
    let stopped = app.world_mut().run_system_once(read).unwrap();
    assert_eq!(stopped, (Ok(0.0), Ok(ms(0))));
}

#[test]
fn the_last_tick_comes_in_either_order() {
    for is_timer_first in [true, false] {
        let mut app = arena();
        let timer = Timer::every(1.0);
        let life = DespawnAfter::new(3.0);
        let unit = app.world_mut().spawn(Attacks::default()).id();
        match is_timer_first {
            true => app.world_mut().spawn((OwnedBy(unit), timer, life)),
            false => app.world_mut().spawn((life, timer, OwnedBy(unit))),
        };
        play(&mut app, 4);
        assert_eq!(attacks(&app, unit), 3);
    }
}

#[test]
fn a_day_that_is_skipped_brings_one_merchant_and_a_day_that_is_advanced_brings_each() {
    for (skips, expected) in [(true, 1), (false, 3)] {
        let mut app = arena();
        let world = app.world_mut();
        let sun = world.spawn(Clock::new()).id();
        let town = world.spawn(Clock::of(sun)).id();
        let visit = || (Attacks::default(), Timer::every(24.0));
        let merchants = [sun, town].map(|clock| {
            let merchant = world.spawn((visit(), OnClock::new(clock)));
            merchant.id()
        });
        play(&mut app, 1);
        change_clock(&mut app, sun, |clock| match skips {
            true => clock.skip_by(ms(72_000)),
            false => clock.advance_by(ms(72_000)),
        });
        play(&mut app, 1);
        assert_eq!(merchants.map(|it| attacks(&app, it)), [expected; 2]);
        // The grid is as before.
        play(&mut app, 21);
        assert_eq!(merchants.map(|it| attacks(&app, it)), [expected; 2]);
        play(&mut app, 1);
        assert_eq!(merchants.map(|it| attacks(&app, it)), [expected + 1; 2]);
    }
}
