//! Entities that come together find each other. What leads to an entity that does not come is dropped.

use core::time::Duration;

use bevy_app::First;
use bevy_due::{
    Clock, ClockId, Clocks, Cooldown, OnClock, OwnedBy, PausedBy, Timer, clock::SpeedModifier,
    conditions::run_clock_if, moving::TimePassed, timer::Pauses,
};
use bevy_ecs::{error::FallbackErrorHandler, system::RunSystemOnce};

use super::*;
use crate::support::errors;

/// Copies entities into a new world, in the order of their numbers, after half a second in which the old one did
/// not run.
fn restart(before: &mut App, entities: &[Entity], order: &[usize]) -> (App, EntityHashMap<Entity>) {
    let copies = before.world_mut().copy_entities(entities).into_iter();
    let copies: Vec<_> = copies
        .map(|copy| through_text(&copy.expect("it is data")))
        .collect();
    let copies: Vec<(MovedEntity, _)> = order
        .iter()
        .map(|&nth| (copies[nth].clone(), TimePassed::from(ms(500))))
        .collect();
    let mut after = zone();
    let mut map = EntityHashMap::default();
    for entity in after.world_mut().put_entities(copies, &mut map) {
        entity.expect("valid data");
    }
    (after, map)
}

fn remaining(app: &mut App, entity: Entity) -> Duration {
    let timer = app.world_mut().with_timers(|timers| timers.get(entity));
    timer.expect("a timer").remaining
}

#[test]
fn a_stun_by_another_entity_survives_in_any_order() {
    let mut before = zone();
    let world = before.world_mut();
    let [mage, orc] = [(); 2].map(|()| world.spawn(Timer::after(10.0)).id());
    let stun = (OwnedBy(mage), Pauses(orc), Timer::after(2.0));
    let stun = world.spawn(stun).id();
    for order in [[0, 1], [1, 0]] {
        let (mut after, map) = restart(&mut before, &[mage, orc], &order);
        let stun = map[&stun];
        assert_eq!(remaining(&mut after, stun), ms(1500));
        assert_eq!(remaining(&mut after, map[&mage]), ms(9500));
        assert_eq!(
            remaining(&mut after, map[&orc]),
            ms(10_000),
            "it was paused"
        );
        let world = after.world();
        assert_eq!(world.get::<OwnedBy>(stun), Some(&OwnedBy(map[&mage])));
        assert_eq!(world.get::<Pauses>(stun), Some(&Pauses(map[&orc])));
        advance_ms(&mut after, 1500);
        advance_ms(&mut after, 0);
        advance_ms(&mut after, 1000);
        assert_eq!(remaining(&mut after, map[&orc]), ms(9000));
    }
}

#[test]
fn timers_on_clocks_of_others_survive_in_any_order() {
    let mut before = zone();
    let world = before.world_mut();
    let slow = world.spawn(Clock::new().with_speed(0.5)).id();
    let fast = world.spawn(Clock::new().with_speed(2.0)).id();
    world.entity_mut(slow).insert(Timer::after(10.0));
    world.entity_mut(fast).insert(Timer::after(10.0).on(slow));
    let below = world.spawn((Clock::of(slow), Timer::after(10.0))).id();
    let on_below = world
        .spawn((OnClock(below.into()), Timer::after(10.0)))
        .id();
    // A slow of another entity: its clock runs at a quarter.
    world.spawn((OwnedBy(fast), SpeedModifier::new(slow, 0.5)));
    let all = [slow, fast, below, on_below];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let (mut after, map) = restart(&mut before, &all, &order);
        let mut remaining = |entity| remaining(&mut after, map[&entity]);
        assert_eq!(remaining(on_below), ms(9875));
        assert_eq!(remaining(below), ms(9875));
        assert_eq!(remaining(slow), ms(9875), "on its own clock");
        assert_eq!(remaining(fast), ms(9875));
    }
}

#[test]
fn entities_that_need_each_others_clocks_keep_their_timers() {
    let mut before = zone();
    let world = before.world_mut();
    let [slow, fast] = [0.5, 2.0].map(|speed| world.spawn(Clock::new().with_speed(speed)).id());
    for (entity, clock) in [(slow, fast), (fast, slow)] {
        let timer = Timer::every(1.0).first_after(10.0).on(clock);
        world.entity_mut(entity).insert(timer);
    }
    for _ in 0..4 {
        advance_ms(&mut before, 5000);
    }
    for order in [[0, 1], [1, 0]] {
        let (mut after, map) = restart(&mut before, &[slow, fast], &order);
        let timers = [slow, fast].map(|timer| {
            let timer = after
                .world_mut()
                .with_timers(|timers| timers.get(map[&timer]));
            let timer = timer.expect("a timer");
            (timer.count, timer.remaining)
        });
        // Forty seconds on the fast clock, ten on the slow one, and half a second of game time on the way.
        assert_eq!(timers, [(31, ms(0)), (1, ms(750))]);
    }
}

#[test]
fn the_time_on_the_way_is_no_part_of_a_frame() {
    let mut before = zone();
    let world = before.world_mut();
    let arena = world.spawn(Clock::new().with_speed(2.0)).id();
    let unit = world.spawn((Clock::of(arena), OnClock(arena.into()))).id();
    let order = [0, 1];
    let (mut after, map) = restart(&mut before, &[arena, unit], &order);
    for (millis, expected) in [(0, 0), (100, 200), (100, 200)] {
        advance_ms(&mut after, millis);
        for clock in [arena, unit].map(|clock| map[&clock]) {
            let delta = move |clocks: Clocks| clocks.delta(clock);
            let delta = after.world_mut().run_system_once(delta).expect("a system");
            assert_eq!(delta, Ok(ms(expected)));
        }
    }
}

#[test]
fn on_a_clock_that_a_condition_holds_no_time_passes_on_the_way() {
    #[derive(Component)]
    struct Level;

    let (mut forest, mut town) = (zone(), zone());
    forest.add_systems(First, run_clock_if::<Level, _>(|| false));
    let arenas = [&mut forest, &mut town].map(|zone| {
        let arena = zone.world_mut().spawn((Clock::new(), Level)).id();
        advance_ms(zone, 0);
        arena
    });
    let [arena, there] = arenas;
    let mut used = Cooldown::new(10.0);
    assert!(used.try_use(ms(0)));
    let hero = (OnClock(arena.into()), used, Timer::after(10.0));
    let hero = forest.world_mut().spawn(hero).id();
    advance_ms(&mut forest, 1000);
    let moved = take(&mut forest, hero);
    let mut map = EntityHashMap::from_iter([(arena, there)]);
    put_with(&mut town, moved, 500, &mut map);
    assert_eq!(remaining(&mut town, map[&hero]), ms(10_000));
    let cooldown = town.world().get::<Cooldown>(map[&hero]);
    assert_eq!(cooldown.expect("it came").remaining(ms(0)), ms(10_000));
}

#[test]
fn an_entity_comes_without_what_leads_to_one_that_does_not() {
    let mut forest = zone();
    let world = forest.world_mut();
    let other = world.spawn(Clock::new()).id();
    let hero = world
        .spawn((
            ears(),
            OwnedBy(other),
            OnClock(other.into()),
            Timer::after(10.0),
        ))
        .id();
    let sand = world
        .spawn((OwnedBy(hero), Timer::after(5.0).on(other)))
        .id();
    let clock = world.spawn((OwnedBy(hero), Clock::of(other))).id();
    let pause = world.spawn((OwnedBy(hero), Pauses(other))).id();
    let slow = world
        .spawn((OwnedBy(hero), SpeedModifier::new(other, 0.5)))
        .id();
    let moved = take(&mut forest, hero);
    let mut town = zone();
    let mut map = EntityHashMap::default();
    town.insert_resource(FallbackErrorHandler(errors::record));
    put_with(&mut town, moved, 500, &mut map);
    let warnings = errors::errors();
    assert_eq!(warnings.len(), 7, "each relation: {warnings:#?}");
    let world = town.world();
    let [hero, clock, pause, slow, sand] = [hero, clock, pause, slow, sand].map(|it| map[&it]);
    assert!(!world.entity(hero).contains::<OwnedBy>());
    assert!(!world.entity(hero).contains::<OnClock>());
    assert_eq!(
        world.get::<Clock>(clock).and_then(Clock::parent),
        Some(ClockId::Virtual)
    );
    assert!(!world.entity(pause).contains::<Pauses>());
    assert!(!world.entity(slow).contains::<SpeedModifier>());
    // Their owner was paused, so no time has passed on the way.
    assert_eq!(remaining(&mut town, hero), ms(10_000));
    assert_eq!(remaining(&mut town, sand), ms(5000));
    advance_ms(&mut town, 5000);
    assert_eq!(firings(&mut town).len(), 1);
}

#[test]
fn a_stun_by_an_entity_that_stays_ends_when_its_target_leaves() {
    let (mut forest, mut town) = (zone(), zone());
    let world = forest.world_mut();
    let mage = world.spawn_empty().id();
    let orc = world.spawn((ears(), Timer::after(10.0))).id();
    let stun = world.spawn((OwnedBy(mage), Pauses(orc))).id();
    let here = carry(&mut forest, orc, &mut town);
    assert!(!town.world().entity(here).contains::<PausedBy>());
    assert!(forest.world().get_entity(stun).is_err());
    assert!(forest.world().get_entity(mage).is_ok());
    advance_ms(&mut town, 1000);
    assert_eq!(remaining(&mut town, here), ms(9000));
}

#[test]
fn an_entity_that_contradicts_an_earlier_one_stays_away_alone() {
    let mut before = zone();
    let hero = before.world_mut().spawn(Timer::after(10.0)).id();
    let copies = before.world_mut().copy_entities(&[hero, hero]);
    let copies = copies
        .into_iter()
        .map(|copy| (copy.expect("it is data"), TimePassed::default()));
    let mut after = zone();
    let mut map = EntityHashMap::default();
    let mut results = after
        .world_mut()
        .put_entities(copies.collect(), &mut map)
        .into_iter();
    let first = results.next().expect("two results");
    assert_eq!(first.expect("it is alone so far"), map[&hero]);
    let second = results.next().expect("two results");
    let PutError { moved, reason } = second.expect_err("it is there");
    let twice = bevy_due::save::LoadError::DuplicateEntity(hero);
    assert_eq!(reason, MoveError::Load(twice));
    assert_eq!(moved.entity(), hero);
}
