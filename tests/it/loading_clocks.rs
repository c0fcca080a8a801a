//! Loading clocks: the order in which they run, their parents, and their exact time.

use core::time::Duration;

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{DueWorldExt, Timer, clock::ClockError, prelude::*, save::SaveWorldExt};
use bevy_ecs::{
    entity::{EntityHashMap, MapEntities},
    error::FallbackErrorHandler,
    prelude::*,
};
use bevy_time::{Fixed, Time, TimePlugin};

fn recording_app() -> App {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    app
}

/// A saved clock: its entity in the saved world, its tag, and its data.
type Saved = (Entity, &'static str, String);

fn save(app: &mut App, clocks: &[Entity]) -> Vec<Saved> {
    app.world_mut().write_timer_states();
    let world = app.world();
    let saved = clocks.iter().map(|&entity| {
        let clock = world.get::<Clock>(entity).expect("a clock");
        let tag = world.get::<Tag>(entity).map_or("", |tag| tag.0);
        (
            entity,
            tag,
            ron::to_string(clock).expect("a clock can be saved"),
        )
    });
    saved.collect()
}

/// Spawns the saved clocks one by one, with a timer each that is due in the next run.
fn load<'a>(app: &mut App, saved: impl IntoIterator<Item = &'a Saved>) -> Vec<Entity> {
    let mut map = EntityHashMap::default();
    let mut entities = Vec::new();
    for (entity, tag, text) in saved {
        let mut clock: Clock = ron::from_str(text).expect("the data should be valid");
        let mut mapped = |world: &mut World, entity: Entity| {
            *map.entry(entity)
                .or_insert_with(|| world.spawn_empty().id())
        };
        if let Some(ClockId::Own(parent)) = clock.parent() {
            let mut to = EntityHashMap::default();
            to.insert(parent, mapped(app.world_mut(), parent));
            clock.map_entities(&mut to);
        }
        let entity = mapped(app.world_mut(), *entity);
        let timer = Timer::after(ms(0));
        app.world_mut()
            .entity_mut(entity)
            .insert((Tag(tag), clock, timer));
        entities.push(entity);
    }
    entities
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
    let mut saved_app = app();
    let clocks = ["a", "b", "c", "d"].map(|tag| spawn_clock(&mut saved_app, tag, Clock::new()));
    let [a, b, c, d] = [0, 1, 2, 3];
    for nth in [[a, b, c, d], [d, c, b, a], [c, a, d, b], [b, d, a, c]] {
        let saved = save(&mut saved_app, &clocks);
        let mut app = app();
        spawn_clock(&mut app, "old", Clock::new());
        load(&mut app, [&saved[nth[0]], &saved[nth[1]]]);
        spawn_clock(&mut app, "new", Clock::new());
        load(&mut app, [&saved[nth[2]], &saved[nth[3]]]);
        spawn_clock(&mut app, "newer", Clock::new());
        let expected = ["old", "a", "b", "c", "d", "new", "newer"];
        assert_eq!(order(&mut app), expected, "loaded in the order {nth:?}");
        spawn_clock(&mut app, "newest", Clock::new());
        assert_eq!(order(&mut app).last(), Some(&"newest"));
        assert_eq!(order(&mut app)[..7], expected, "the order stays");
    }
}

#[test]
fn clocks_loaded_between_the_same_runs_keep_their_order_through_another_save() {
    let mut app = app();
    let clocks = ["a", "b", "c"].map(|tag| spawn_clock(&mut app, tag, Clock::new()));
    let mut saved = save(&mut app, &clocks);
    for runs in [0, 1, 0] {
        let mut next = crate::support::app();
        spawn_clock(&mut next, "other", Clock::new());
        saved.rotate_left(1);
        let loaded = load(&mut next, saved.iter().rev());
        for _ in 0..runs {
            advance_ms(&mut next, 1);
        }
        saved = save(&mut next, &loaded);
        app = next;
    }
    assert_eq!(order(&mut app), ["other", "a", "b", "c"]);
}

#[test]
fn a_second_load_comes_after_the_first() {
    let mut saved_app = app();
    let clocks = ["a", "b"].map(|tag| spawn_clock(&mut saved_app, tag, Clock::new()));
    let saved = save(&mut saved_app, &clocks);
    let mut app = app();
    load(&mut app, [&saved[1]]);
    advance_ms(&mut app, 1);
    load(&mut app, [&saved[0]]);
    assert_eq!(order(&mut app), ["b", "a"]);
}

#[test]
fn data_without_an_order_and_clones_count_as_new() {
    let mut app = app();
    let clocks = ["a", "b"].map(|tag| spawn_clock(&mut app, tag, Clock::new()));
    let copies = clocks.map(|clock| app.world().get::<Clock>(clock).expect("a clock").clone());
    let [a, b] = copies;
    spawn_clock(&mut app, "b2", b);
    let text = "(parent: Chosen(Virtual), speed: 1.0, paused: false, now: (secs: 1, nanos: 0))";
    let written: Clock = ron::from_str(text).expect("the order is optional");
    let written = spawn_clock(&mut app, "written", written);
    assert_eq!(now(&app, written), Duration::from_secs(1));
    spawn_clock(&mut app, "a2", a);
    assert_eq!(order(&mut app), ["a", "b", "b2", "written", "a2"]);
}

#[test]
fn a_load_is_in_order_for_a_fast_forward_before_the_next_run() {
    let mut saved_app = app();
    let root = spawn_clock(&mut saved_app, "root", Clock::new());
    let [a, b] = ["a", "b"].map(|tag| spawn_clock(&mut saved_app, tag, Clock::of(root)));
    let saved = save(&mut saved_app, &[b, a, root]);
    let mut app = app();
    let loaded = load(&mut app, &saved);
    app.world_mut()
        .fast_forward(loaded[2], ms(5))
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
fn a_clock_may_be_loaded_before_its_parent() {
    const ORDERS: [[usize; 4]; 5] = [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
        [2, 0, 3, 1],
        [1, 3, 2, 0],
        [2, 3, 0, 1],
    ];
    for ((root, jump), order) in [ClockId::Virtual, ClockId::Real, ClockId::Fixed]
        .into_iter()
        .flat_map(|root| [(root, ms(0)), (root, ms(30))])
        .flat_map(|case| ORDERS.map(|order| (case, order)))
    {
        let (mut saved_app, clocks) = family(root);
        change_clock(&mut saved_app, clocks[0], |clock| clock.advance_by(jump));
        let saved = save(&mut saved_app, &clocks);
        // Both apps take the same fixed steps from here.
        let mut app = recording_app();
        app.insert_resource(Time::<Fixed>::from_duration(ms(10)));
        for nanos in [1, 10_000_001, 20_000_003] {
            advance(&mut app, Duration::from_nanos(nanos));
        }
        let loaded = load(&mut app, order.map(|nth| &saved[nth]));
        for nanos in [0, 3, 10_000_000, 333_333_333] {
            for (nth, &clock) in order.iter().zip(&loaded) {
                assert_eq!(
                    now(&app, clock),
                    now(&saved_app, clocks[*nth]),
                    "clock {nth}, loaded in the order {order:?} on {root}"
                );
            }
            advance(&mut app, Duration::from_nanos(nanos));
            advance(&mut saved_app, Duration::from_nanos(nanos));
        }
        assert_eq!(errors(), [""; 0], "loaded in the order {order:?} on {root}");
        let mut tags = fired(&mut app);
        tags.sort_unstable();
        assert_eq!(tags, ["child", "grand", "parent", "sibling"]);
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
