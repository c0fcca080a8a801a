//! Saved timers that are loaded into a world which has some of their entities already.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use crate::support::*;
use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Cooldown, Timer,
    prelude::*,
    save::{LoadError, SaveWorldExt},
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

#[test]
fn a_clock_that_is_there_takes_over_the_saved_time() {
    let mut before = app();
    let arena = before.world_mut().spawn(Clock::new().with_speed(0.5)).id();
    let timer = Timer::every(ms(100)).on(arena);
    let timer = before.world_mut().spawn((timer, Tag("saved"))).id();
    advance_ms(&mut before, 130);
    let saved = before.world_mut().save_timers().expect("it is data");

    let mut after = app();
    advance_ms(&mut after, 500);
    let there = after.world_mut().spawn((Clock::new(), Tag("arena"))).id();
    let earlier = Timer::after(ms(30)).on(there);
    after.world_mut().spawn((earlier, Tag("earlier")));
    let copy = after.world_mut().spawn(Tag("saved")).id();
    advance_ms(&mut after, 10);
    let mut map = EntityHashMap::from_iter([(arena, there), (timer, copy)]);
    let loaded = after.world_mut().load_timers(&saved, &mut map);
    assert_eq!(loaded, Ok(()));

    let clock = after.world().get::<Clock>(there).expect("it is there");
    assert_eq!(now(&after, there), ms(65), "the clock shows the saved time");
    assert_eq!(clock.speed(), 0.5);
    // 20 ms are left for the earlier timer, and 35 ms for the saved one, at half speed.
    advance_ms(&mut after, 39);
    assert_eq!(fired(&mut after), Vec::<&str>::new());
    advance_ms(&mut after, 1);
    assert_eq!(fired(&mut after), ["earlier"]);
    advance_ms(&mut after, 30);
    assert_eq!(fired(&mut after), ["saved"]);
}

#[test]
fn a_cooldown_keeps_its_remaining_time_in_a_world_whose_clock_shows_another_time() {
    for (there, here) in [(10_000, 2_000), (2_000, 10_000)] {
        let (mut before, mut after) = (app(), app());
        advance_ms(&mut before, there);
        advance_ms(&mut after, here);
        let mut dash = Cooldown::new(60.0);
        assert!(dash.try_use(game_time(&before)));
        let hero = before.world_mut().spawn(dash).id();
        let slow = Clock::new().with_now(ms(70_000));
        let mut shield = Cooldown::new(20.0);
        assert!(shield.try_use(ms(70_000)));
        let guard = before.world_mut().spawn((slow, shield, OwnedBy(hero))).id();
        advance_ms(&mut before, 100);
        let saved = before.world_mut().save_entity(hero).expect("it is data");
        let mut map = EntityHashMap::default();
        let loaded = after.world_mut().load_timers(&saved, &mut map);
        assert_eq!(loaded, Ok(()));
        let world = after.world();
        let dash = world.get::<Cooldown>(map[&hero]).expect("it is loaded");
        assert_eq!(dash.remaining(game_time(&after)), ms(59_900));
        let guard = map[&guard];
        let shield = world.get::<Cooldown>(guard).expect("it is loaded");
        let now = world.clock_now(guard).expect("it is loaded");
        assert_eq!(shield.remaining(now), ms(19_900), "its clock came along");
    }
}

#[test]
fn clocks_that_are_there_get_the_saved_parents() {
    let mut before = app();
    let world = before.world_mut();
    let [bottom, middle, top] = [(); 3].map(|()| world.spawn(Clock::new()).id());
    for (clock, parent) in [(middle, top), (bottom, middle)] {
        let changed = world.change_clock(clock, |clock| clock.set_parent(parent));
        assert_eq!(changed, Ok(Ok(())));
    }
    let saved = before.world_mut().save_timers().expect("it is data");

    // There, they drive each other the other way round, and one of them is missing.
    for missing in [None, Some(top), Some(middle), Some(bottom)] {
        let mut after = app();
        let mut map = EntityHashMap::default();
        let mut parent = ClockId::Virtual;
        for clock in [bottom, middle, top] {
            if missing != Some(clock) {
                let there = after.world_mut().spawn(Clock::of(parent)).id();
                map.insert(clock, there);
                parent = there.into();
            }
        }
        let loaded = after.world_mut().load_timers(&saved, &mut map);
        assert_eq!(loaded, Ok(()));
        let parent = |clock| {
            after
                .world()
                .get::<Clock>(map[clock])
                .and_then(Clock::parent)
        };
        assert_eq!(parent(&top), Some(ClockId::Virtual));
        assert_eq!(parent(&middle), Some(map[&top].into()), "{missing:?}");
        assert_eq!(parent(&bottom), Some(map[&middle].into()), "{missing:?}");
    }
}

#[test]
fn a_long_chain_of_clocks_is_checked_in_a_moment() {
    let mut before = app();
    let mut clock = Clock::new();
    for _ in 0..2000 {
        let parent = before.world_mut().spawn(clock).id();
        clock = Clock::of(parent);
    }
    let last = before.world_mut().spawn(clock).id();
    let saved = before.world_mut().save_entity(last).expect("it is data");
    let mut after = app();
    let loaded = after
        .world_mut()
        .load_timers(&saved, &mut EntityHashMap::default());
    assert!(
        matches!(
            &loaded,
            Err(LoadError::UnknownEntity { component, .. }) if component == "Clock"
        ),
        "the parent belongs to nobody: {loaded:?}"
    );
    let saved = before.world_mut().save_timers().expect("it is data");
    let mut map = EntityHashMap::default();
    let loaded = after.world_mut().load_timers(&saved, &mut map);
    assert_eq!(loaded, Ok(()));
    assert_eq!(map.len(), 2001);
    let parent = after
        .world()
        .get::<Clock>(map[&last])
        .and_then(Clock::parent);
    let saved_parent = before.world().get::<Clock>(last).and_then(Clock::parent);
    let mapped = saved_parent.map(|parent| match parent {
        ClockId::Own(parent) => ClockId::Own(map[&parent]),
        built_in => built_in,
    });
    assert_eq!(parent, mapped);
}

#[test]
fn a_clock_that_is_there_becomes_manual_if_it_was_saved_so() {
    let mut before = app();
    let turns = spawn_clock(&mut before, Clock::manual().with_now(ms(70)));
    let below = spawn_clock(&mut before, Clock::of(turns));
    let saved = before.world_mut().save_timers().expect("it is data");

    // There, the clocks drive each other the other way round.
    let mut after = app();
    let top = spawn_clock(&mut after, Clock::new());
    let own = spawn_clock(&mut after, Clock::of(top));
    let mut map = EntityHashMap::from_iter([(turns, own), (below, top)]);
    let loaded = after.world_mut().load_timers(&saved, &mut map);
    assert_eq!(loaded, Ok(()));
    let parents = [own, top].map(|it| clock(&mut after, it).parent());
    assert_eq!(parents, [None, Some(own.into())]);
    advance_ms(&mut after, 100);
    assert_eq!([own, top].map(|it| now(&after, it)), [70, 0].map(ms));
}

/// Saves the timers of an app, and loads them into a new one that has had its first frame.
fn save_and_load(before: &mut App) -> (App, EntityHashMap<Entity>) {
    let saved = before.world_mut().save_timers().expect("it is data");
    let mut after = app();
    let mut map = EntityHashMap::default();
    let loaded = after.world_mut().load_timers(&saved, &mut map);
    assert_eq!(loaded, Ok(()));
    (after, map)
}

fn exists(app: &App, entity: Entity) -> bool {
    app.world().get_entity(entity).is_ok()
}

#[test]
fn a_finished_timer_despawns_after_the_load() {
    let mut before = app();
    let owner = before.world_mut().spawn_empty().id();
    let timer = (OwnedBy(owner), Timer::after(ms(10)));
    let timer = before.world_mut().spawn(timer).id();
    advance_ms(&mut before, 10);
    assert!(exists(&before, timer), "it lives one more frame");

    let (mut after, map) = save_and_load(&mut before);
    assert!(exists(&after, map[&timer]));
    advance_ms(&mut after, 0);
    assert!(!exists(&after, map[&timer]));
    assert!(exists(&after, map[&owner]));
}

#[test]
fn an_end_that_a_panic_broke_off_is_completed_after_the_load() {
    #[derive(Component)]
    struct Fragile;

    let mut before = app();
    before
        .world_mut()
        .add_observer(|_: On<Despawn<Fragile>>| panic!("it breaks"));
    let lifetime = DespawnAfter::new(ms(10));
    let fragile = before.world_mut().spawn((Fragile, lifetime)).id();
    let frame = catch_unwind(AssertUnwindSafe(|| advance_ms(&mut before, 10)));
    assert!(frame.is_err(), "the observer should have panicked");
    assert!(exists(&before, fragile));

    let (mut after, map) = save_and_load(&mut before);
    advance_ms(&mut after, 0);
    assert!(!exists(&after, map[&fragile]));
}

#[test]
fn timers_that_are_saved_again_before_they_are_armed_come_after_the_armed_ones() {
    let mut before = app();
    let saved = before.world_mut().spawn(Timer::after(ms(10))).id();
    advance_ms(&mut before, 0);
    let data = before.world_mut().save_timers().expect("it is data");

    let mut busy = app();
    let armed = [(); 3].map(|()| busy.world_mut().spawn(Timer::after(ms(10))).id());
    advance_ms(&mut busy, 0);
    let mut map = EntityHashMap::default();
    let loaded = busy.world_mut().load_timers(&data, &mut map);
    assert_eq!(loaded, Ok(()));

    let (mut after, copies) = save_and_load(&mut busy);
    advance_ms(&mut after, 10);
    let order = firings(&mut after).into_iter().map(|fired| fired.entity());
    let expected = [armed[0], armed[1], armed[2], map[&saved]].map(|timer| copies[&timer]);
    assert_eq!(order.collect::<Vec<_>>(), expected);
}
