//! Loading clocks: the order in which they run, their parents, and their exact time. Clocks and their parents arrive in
//! any order.

use core::time::Duration;

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{
    ClocksMut, DueWorldExt, OwnedBy, Timer, TimerFired, clock::ClockError, moving::MoveWorldExt,
    prelude::*, save::SaveWorldExt,
};
use bevy_ecs::{entity::EntityHashMap, error::FallbackErrorHandler, prelude::*};
use bevy_time::{Fixed, Time, TimePlugin};

fn recording_app() -> App {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    app
}

/// Loads a world into another one.
fn load(app: &mut App, saved: &mut App) -> EntityHashMap<Entity> {
    let mut map = EntityHashMap::default();
    let data = saved.world_mut().save_timers().expect("no closures");
    let loaded = app.world_mut().load_timers(&data, &mut map);
    loaded.expect("the data should be valid");
    // The game loads its own components.
    for (&before, &now) in &map {
        if let Some(&(mut tag)) = saved.world().get::<Tag>(before) {
            tag = Tag(tag.0);
            app.world_mut().entity_mut(now).insert(tag);
        }
    }
    map
}

fn spawn_clock(app: &mut App, tag: &'static str, clock: Clock) -> Entity {
    app.world_mut().spawn((Tag(tag), clock)).id()
}

/// Lets every clock with a tag fire a timer, and returns the order.
fn order(app: &mut App) -> Vec<&'static str> {
    fired(app);
    let world = app.world_mut();
    let mut clocks = world.query_filtered::<Entity, (With<Clock>, With<Tag>)>();
    let clocks: Vec<Entity> = clocks.iter(world).collect();
    for clock in clocks {
        world.entity_mut(clock).insert(Timer::after(ms(0)));
    }
    advance_ms(app, 1);
    fired(app)
}

#[test]
fn loaded_clocks_run_in_the_order_of_the_saved_world() {
    let mut saved = app();
    // Their entities have another order.
    let mut entities = [(); 4].map(|()| saved.world_mut().spawn_empty().id());
    entities.reverse();
    for (entity, tag) in entities.into_iter().zip(["a", "b", "c", "d"]) {
        let clock = (Tag(tag), Clock::new());
        saved.world_mut().entity_mut(entity).insert(clock);
    }
    let mut app = app();
    spawn_clock(&mut app, "old", Clock::new());
    load(&mut app, &mut saved);
    spawn_clock(&mut app, "new", Clock::new());
    let expected = ["old", "a", "b", "c", "d", "new"];
    assert_eq!(order(&mut app), expected);
    spawn_clock(&mut app, "newest", Clock::new());
    assert_eq!(order(&mut app).last(), Some(&"newest"));
    assert_eq!(order(&mut app)[..6], expected, "the order stays");
    let mut again = crate::support::app();
    load(&mut again, &mut app);
    assert_eq!(order(&mut again)[..6], expected, "through another save");
}

#[test]
fn a_second_load_comes_after_the_first() {
    let [mut first, mut second, mut app] = [app(), app(), app()];
    spawn_clock(&mut second, "a", Clock::new());
    spawn_clock(&mut first, "b", Clock::new());
    load(&mut app, &mut first);
    load(&mut app, &mut second);
    assert_eq!(order(&mut app), ["b", "a"]);
}

#[test]
fn a_load_is_in_order_for_a_fast_forward_before_the_next_run() {
    let mut saved = app();
    let root = spawn_clock(&mut saved, "root", Clock::new());
    for tag in ["a", "b"] {
        spawn_clock(&mut saved, tag, Clock::of(root));
    }
    for clock in saved
        .world_mut()
        .query::<(Entity, &Clock)>()
        .iter(saved.world())
        .map(|it| it.0)
        .collect::<Vec<_>>()
    {
        saved
            .world_mut()
            .entity_mut(clock)
            .insert(Timer::after(ms(0)));
    }
    let mut app = app();
    let map = load(&mut app, &mut saved);
    app.world_mut()
        .fast_forward(map[&root], ms(5))
        .expect("the clock exists");
    assert_eq!(fired(&mut app), ["root", "a", "b"]);
}

/// Builds a family of four clocks, some ahead of a run, and returns the app and the clocks.
fn family(root: ClockId) -> (App, [Entity; 4]) {
    let mut app = app();
    app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let grand = spawn_clock(&mut app, "grand", Clock::of(root).with_speed(1.0 / 3.0));
    let parent = spawn_clock(&mut app, "parent", Clock::of(grand).with_speed(7.0));
    let child = spawn_clock(&mut app, "child", Clock::of(parent).with_speed(1.0 / 7.0));
    let sibling = spawn_clock(&mut app, "sibling", Clock::of(parent).with_speed(0.1));
    for nanos in [1, 10_000_001, 20_000_003] {
        advance(&mut app, Duration::from_nanos(nanos));
    }
    (app, [grand, parent, child, sibling])
}

#[test]
fn loaded_clocks_go_on_to_the_last_bit() {
    for (root, jump) in [ClockId::Virtual, ClockId::Real, ClockId::Fixed]
        .into_iter()
        .flat_map(|root| [(root, ms(0)), (root, ms(30))])
    {
        let (mut saved, clocks) = family(root);
        change_clock(&mut saved, clocks[0], |clock| clock.advance_by(jump));
        let mut app = recording_app();
        app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
        // Both apps take the same fixed steps from here.
        for nanos in [1, 10_000_001, 20_000_003] {
            advance(&mut app, Duration::from_nanos(nanos));
        }
        let map = load(&mut app, &mut saved);
        for nanos in [0, 3, 10_000_000, 333_333_333] {
            for clock in clocks {
                let loaded = now(&app, map[&clock]);
                assert_eq!(loaded, now(&saved, clock), "{clock} on {root}");
            }
            advance(&mut app, Duration::from_nanos(nanos));
            advance(&mut saved, Duration::from_nanos(nanos));
        }
        assert_eq!(errors(), [""; 0], "on {root}");
    }
}

#[test]
fn a_parent_that_arrives_later_drives_from_the_next_reading_on() {
    let mut app = recording_app();
    let parent = app.world_mut().spawn_empty().id();
    let child = spawn_clock(&mut app, "child", Clock::of(parent).with_now(ms(500)));
    app.world_mut()
        .entity_mut(parent)
        .insert(Clock::new().with_now(ms(900)));
    assert_eq!((now(&app, parent), now(&app, child)), (ms(900), ms(500)));
    advance_ms(&mut app, 8);
    assert_eq!((now(&app, parent), now(&app, child)), (ms(908), ms(508)));
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_parent_that_is_missing_at_the_next_run_is_one_warning() {
    let mut app = recording_app();
    let parent = app.world_mut().spawn_empty().id();
    let child = spawn_clock(&mut app, "child", Clock::of(parent));
    let gone = spawn_clock(&mut app, "gone", Clock::of(parent));
    app.world_mut().despawn(gone);
    app.world_mut().flush();
    assert_eq!(errors(), [""; 0], "the parent may still arrive");
    advance_ms(&mut app, 10);
    assert_eq!(
        errors(),
        [ClockError::NoSuchClock(parent.into()).to_string()]
    );
    app.world_mut().entity_mut(parent).insert(Clock::new());
    assert_eq!(now(&app, child), ms(0), "it stood still");
    advance_ms(&mut app, 10);
    assert_eq!(errors(), [""; 0]);
    assert_eq!(now(&app, child), ms(10), "it follows from now on");
}

#[test]
fn loaded_clocks_that_drive_each_other_are_a_warning() {
    let mut app = recording_app();
    let b = app.world_mut().spawn_empty().id();
    let a = spawn_clock(&mut app, "a", Clock::of(b));
    app.world_mut().entity_mut(b).insert(Clock::of(a));
    advance_ms(&mut app, 10);
    let cycle = ClockError::Cycle(vec![a, b]).to_string();
    assert_eq!(errors(), [cycle]);
    assert_eq!((now(&app, a), now(&app, b)), (ms(0), ms(0)));
}

#[test]
fn clocks_from_before_the_plugin_find_their_parents_in_any_order() {
    let mut app = App::new();
    app.insert_resource(FallbackErrorHandler(record));
    let [a, b, c, d, e] = [(); 5].map(|()| app.world_mut().spawn_empty().id());
    for (clock, parent) in [(a, b), (b, c), (c, a)] {
        app.world_mut().entity_mut(clock).insert(Clock::of(parent));
    }
    app.world_mut().entity_mut(d).insert(Clock::of(e));
    let fast = Clock::new().with_speed(2.0);
    app.world_mut().entity_mut(e).insert(fast);
    app.add_plugins((TimePlugin, DuePlugin::default()));
    advance_ms(&mut app, 0); // Bevy's first frame takes no time.
    let recorded = errors();
    assert_eq!(recorded.len(), 1, "one warning for the cycle: {recorded:?}");
    let names = [a, b, c].map(|clock| clock.to_string());
    assert!(
        names.iter().all(|name| recorded[0].contains(name)),
        "{recorded:?}"
    );
    advance_ms(&mut app, 10);
    assert_eq!(errors(), [""; 0]);
    assert_eq!(
        [a, b, c, d].map(|clock| now(&app, clock)),
        [0, 0, 0, 20].map(ms)
    );
}

#[test]
fn a_clock_that_got_another_parent_while_it_waited_keeps_it() {
    for arrives in [true, false] {
        let mut app = recording_app();
        let parent = app.world_mut().spawn_empty().id();
        let child = spawn_clock(&mut app, "child", Clock::of(parent));
        change_clock(&mut app, child, |clock| {
            clock.set_parent(ClockId::Frames).unwrap();
        });
        if arrives {
            let fast = Clock::new().with_speed(5.0);
            app.world_mut().entity_mut(parent).insert(fast);
        }
        advance_ms(&mut app, 10);
        assert_eq!(now(&app, child), Duration::from_secs(1));
        assert_eq!(errors(), [""; 0]);
    }
}

#[test]
fn a_clock_that_got_another_parent_while_it_waited_leaves_the_first_one_for_good() {
    let mut app = recording_app();
    let [first, second] = [(); 2].map(|()| app.world_mut().spawn_empty().id());
    let child = spawn_clock(&mut app, "child", Clock::of(first));
    app.world_mut().entity_mut(second).insert(Clock::new());
    change_clock(&mut app, child, |clock| clock.set_parent(second).unwrap());
    app.world_mut().despawn(second);
    app.world_mut().entity_mut(first).insert(Clock::new());
    advance_ms(&mut app, 10);
    assert_eq!((now(&app, first), now(&app, child)), (ms(10), ms(0)));
    assert_eq!(
        errors(),
        [""; 0],
        "its parent has despawned, which is normal"
    );
}

/// The time of a clock, and the remaining time of its timer.
fn shown(app: &mut App, clocks: &[Entity]) -> Vec<(Duration, Duration)> {
    let shown = clocks.iter().map(|&clock| {
        let remaining = app
            .world_mut()
            .with_timers(|timers| timers.get(clock).map(|timer| timer.remaining));
        (now(app, clock), remaining.expect("a timer"))
    });
    shown.collect()
}

#[test]
fn a_loaded_clock_shows_a_jump_of_its_parent_as_the_saved_one_does() {
    let mut saved_app = app();
    saved_app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
    let lead = spawn_clock(&mut saved_app, "lead", Clock::of(ClockId::Fixed));
    let middle = spawn_clock(&mut saved_app, "middle", Clock::of(lead).with_speed(0.5));
    let last = spawn_clock(&mut saved_app, "last", Clock::of(middle).with_speed(2.0));
    let clocks = [lead, middle, last];
    for clock in clocks {
        let timer = Timer::after(ms(500));
        saved_app.world_mut().entity_mut(clock).insert(timer);
    }
    advance_ms(&mut saved_app, 20);
    change_clock(&mut saved_app, lead, |clock| clock.advance_by(ms(60)));
    for frame in 0..3 {
        let saved = saved_app.world_mut().save_timers().expect("no closures");
        let mut loaded_app = app();
        let mut map = EntityHashMap::default();
        let loaded = loaded_app.world_mut().load_timers(&saved, &mut map);
        loaded.expect("the data should be valid");
        assert_eq!(
            shown(&mut loaded_app, &clocks.map(|clock| map[&clock])),
            shown(&mut saved_app, &clocks),
            "saved after {frame} frames"
        );
        advance_ms(&mut saved_app, 4);
    }
    assert_eq!(now(&saved_app, middle), now(&saved_app, lead) / 2);
}

/// Gives a unit its clock, for which another clock with a timer waits, and returns what fires.
fn awaited(app: &mut App, unit: Entity, timer: Entity) -> Vec<&'static str> {
    let world = app.world_mut();
    world.entity_mut(timer).insert(Tag("due"));
    world.entity_mut(unit).insert(Clock::new());
    for _ in 0..10 {
        advance_ms(app, 100);
    }
    fired(app)
}

#[test]
fn a_clock_that_waits_for_its_parent_waits_in_the_loaded_world() {
    for unit in [None, Some(Timer::after(100.0))] {
        let mut saved = app();
        let world = saved.world_mut();
        let at = world.spawn_empty().id();
        if let Some(timer) = unit {
            world.entity_mut(at).insert(timer);
        }
        let clock = world.spawn(Clock::of(at)).id();
        let timer = world.spawn(Timer::after(0.5).on(clock)).id();
        advance_ms(&mut saved, 100);
        let mut app = app();
        let map = load(&mut app, &mut saved);
        assert_eq!(awaited(&mut app, map[&at], map[&timer]), ["due"]);
        assert_eq!(awaited(&mut saved, at, timer), ["due"]);
    }
}

#[test]
fn a_clock_that_waits_for_its_parent_waits_after_a_move() {
    let mut app = recording_app();
    let world = app.world_mut();
    let unit = world.spawn_empty().id();
    let clock = world.spawn((OwnedBy(unit), Clock::of(unit))).id();
    let on_clock = (OwnedBy(unit), Timer::after(0.5).on(clock));
    let timer = world.spawn(on_clock).id();
    advance_ms(&mut app, 100);
    assert_eq!(errors().len(), 1, "its parent is missing");
    let world = app.world_mut();
    let moved = world.take_entity(unit).expect("it is data");
    let mut map = EntityHashMap::default();
    let put = world.put_entity(moved, ms(100), &mut map);
    put.expect("valid data");
    assert_eq!(awaited(&mut app, map[&unit], map[&timer]), ["due"]);
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_save_does_not_end_the_wait_for_a_parent() {
    let mut app = recording_app();
    let world = app.world_mut();
    let [own, parent] = [world.spawn(Clock::new()).id(), world.spawn_empty().id()];
    world.entity_mut(own).insert(Clock::of(parent));
    world.save_timers().expect("all is data");
    world
        .entity_mut(parent)
        .insert(Clock::new().with_speed(2.0));
    advance_ms(&mut app, 10);
    assert_eq!(clock(&mut app, own).parent(), Some(parent.into()));
    assert_eq!(now(&app, own), ms(20));
    assert_eq!(reports(), []);
}

#[test]
fn a_skip_within_a_frame_with_fixed_steps_ends_as_in_the_saved_world() {
    for [skips, skipped] in [
        [ClockId::Fixed; 2],
        [ClockId::Fixed, ClockId::Virtual],
        [ClockId::Virtual; 2],
    ] {
        let new = || {
            let mut app = app();
            app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
            app
        };
        let mut saved = new();
        let own = spawn_clock(&mut saved, "own", Clock::of(skipped));
        let clocks = [skipped, own.into()];
        let timers = clocks.map(|clock| spawn(&mut saved, "every", Timer::every(1.0).on(clock)));
        advance_ms(&mut saved, 5);
        let skipper = Timer::after(0.02).on(skips);
        saved.world_mut().spawn(skipper).observe(
            move |_: On<TimerFired>, mut clocks: ClocksMut| {
                let mut clock = clocks.get_mut(skipped).expect("built in");
                clock.skip_by(Duration::from_secs(10));
            },
        );
        advance_ms(&mut saved, 45);
        let mut loaded = new();
        let map = load(&mut loaded, &mut saved);
        let [played, again] = [
            (&mut saved, timers),
            (&mut loaded, timers.map(|it| map[&it])),
        ]
        .map(|(app, timers)| {
            firings(app);
            for _ in 0..3 {
                advance_ms(app, 45);
            }
            let place = |timer| timers.iter().position(|&it| it == timer);
            let fired = firings(app).into_iter();
            let fired = fired.map(|it| (place(it.entity()), it.count(), it.missed()));
            fired.collect::<Vec<_>>()
        });
        assert_eq!(again, played, "{skips:?} skips {skipped:?}");
    }
}
