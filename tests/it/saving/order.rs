//! What a loaded world keeps to the last bit, and in which order.

use core::time::Duration;

use bevy_app::App;
use bevy_due::{
    Clock, ClockId, DespawnAfter, OwnedBy, PausedBy, Timer, TimerCancelled, clock::SpeedModifier,
    prelude::*, save::SaveWorldExt, timer::TimerMut,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

/// The numbers of the entities that have despawned, in order.
#[derive(Resource, Default)]
struct Gone(Vec<u32>);

#[derive(Component, Clone, Copy)]
struct Number(u32);

fn app() -> App {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(
            250,
        )))
        .init_resource::<Gone>()
        .add_observer(
            |gone: On<Remove<Number>>, numbers: Query<&Number>, mut all: ResMut<Gone>| {
                all.0.push(numbers.get(gone.entity).expect("a number").0);
            },
        );
    app.update(); // Bevy's first frame takes no time.
    app
}

/// Returns a new app with what is saved of this one, and its names.
fn loaded(app: &mut App) -> (App, EntityHashMap<Entity>) {
    let saved = app.world_mut().save_timers().expect("all is data");
    let mut loaded = self::app();
    let mut names = EntityHashMap::default();
    let mut numbers = app.world_mut().query::<(Entity, &Number)>();
    for (entity, &number) in numbers.iter(app.world()) {
        names.insert(entity, loaded.world_mut().spawn(number).id());
    }
    let world = loaded.world_mut();
    world.load_timers(&saved, &mut names).expect("valid data");
    (loaded, names)
}

#[test]
fn a_loaded_clock_has_the_same_speed_to_the_last_bit() {
    let mut before = app();
    let world = before.world_mut();
    let clock = world.spawn(Clock::new()).id();
    world.spawn(SpeedModifier::new(clock, 0.1));
    let end = DespawnAfter::new(Duration::from_secs(3600));
    world.spawn((SpeedModifier::new(clock, 0.2), end));
    world.spawn(SpeedModifier::new(clock, 0.7));
    world.spawn(
        Timer::every(Duration::from_nanos(1))
            .times(u32::MAX)
            .on(clock),
    );
    for _ in 0..4 {
        before.update();
    }
    let (mut after, names) = loaded(&mut before);
    for _ in 0..40 {
        before.update();
        after.update();
        let expected = before.world().clock_now(clock);
        assert_eq!(after.world().clock_now(names[&clock]), expected);
    }
}

#[test]
fn pauses_despawn_in_the_same_order_after_loading() {
    let mut before = app();
    let world = before.world_mut();
    let hero = world.spawn(Number(0)).id();
    for secs in [1, 2, 3] {
        world.entity_mut(hero).pause_for(Duration::from_secs(secs));
        if secs == 1 {
            // The others are in another archetype.
            let first = world.get::<PausedBy>(hero).expect("a pause").iter().next();
            world.entity_mut(first.expect("a pause")).insert(Paused);
        }
    }
    let remaining = |app: &mut App, hero| {
        let pauses = app.world().get::<PausedBy>(hero).expect("pauses");
        let pauses: Vec<Entity> = pauses.iter().collect();
        let lifetime = |pause: Entity| {
            app.world()
                .get::<DespawnAfter>(pause)
                .map(DespawnAfter::delay)
        };
        pauses.into_iter().map(lifetime).collect::<Vec<_>>()
    };
    let expected = remaining(&mut before, hero);
    let (mut after, names) = loaded(&mut before);
    assert_eq!(remaining(&mut after, names[&hero]), expected);
}

#[test]
fn entities_that_await_their_end_despawn_in_the_same_order_after_loading() {
    let mut before = app();
    let world = before.world_mut();
    let at = |millis| Timer::after(Duration::from_millis(millis)).despawn_when_done();
    world.spawn((Number(1), at(200)));
    world.spawn((Number(2), at(100), Paused));
    world.spawn((Number(3), at(100)));
    world.spawn((Number(4), at(50), Paused));
    before.update();
    let mut paused = before.world_mut().query_filtered::<Entity, With<Paused>>();
    let paused: Vec<Entity> = paused.iter(before.world()).collect();
    for entity in paused {
        before.world_mut().entity_mut(entity).remove::<Paused>();
    }
    before.update();
    let (mut after, _) = loaded(&mut before);
    before.update();
    after.update();
    let expected = before.world().resource::<Gone>().0.clone();
    assert_eq!(expected.len(), 4, "all timers have fired: {expected:?}");
    assert!(after.world().resource::<Gone>().0.ends_with(&expected[2..]));
}

#[test]
fn an_entity_that_has_nothing_but_a_pause_is_saved() {
    let mut before = app();
    let hero = before.world_mut().spawn_empty().id();
    before
        .world_mut()
        .entity_mut(hero)
        .pause_for(Duration::from_secs(1));
    let saved = before.world_mut().save_timers().expect("all is data");
    let mut after = app();
    let mut names = EntityHashMap::default();
    after
        .world_mut()
        .load_timers(&saved, &mut names)
        .expect("all targets are saved");
    assert!(after.world().get::<PausedBy>(names[&hero]).is_some());
}

#[test]
fn a_loaded_timer_that_is_cancelled_at_once_names_its_clock() {
    #[derive(Resource, Default)]
    struct Clocks(Vec<ClockId>);

    let mut before = app();
    let hero = before
        .world_mut()
        .spawn(Timer::after(Duration::from_secs(1)))
        .id();
    before.update();
    let mut unit = before.world_mut().entity_mut(hero);
    unit.insert(Clock::new());
    let stays = |timer: &mut TimerMut| timer.set_clock(ClockId::Virtual).expect("it exists");
    unit.change_own_timer(stays);
    before.update();
    let (mut after, names) = loaded(&mut before);
    let note = |cancelled: On<TimerCancelled>, mut clocks: ResMut<Clocks>| {
        clocks.0.push(cancelled.clock());
    };
    after.init_resource::<Clocks>().add_observer(note);
    after.world_mut().entity_mut(names[&hero]).remove::<Timer>();
    after.update();
    assert_eq!(after.world().resource::<Clocks>().0, [ClockId::Virtual]);
}

/// Returns an app with timers of equal deadlines in two archetypes, which are saved one after the other.
fn app_with_equal_deadlines() -> (App, Vec<Entity>) {
    let mut app = app();
    let spawn = |nth| {
        let mut timer = app.world_mut().spawn((Number(nth), Timer::every(0.25)));
        if nth % 2 == 1 {
            timer.insert(DespawnAfter::new(10.0));
        }
        timer.id()
    };
    let timers = (0..10).map(spawn).collect();
    (app, timers)
}

/// Returns the deadlines and the numbers of the timers that fire in the next frames.
fn fired(mut app: App, frames: u32) -> Vec<(Duration, u32)> {
    #[derive(Resource, Default)]
    struct Fired(Vec<(Duration, u32)>);

    let note = |fired: On<TimerFired>, numbers: Query<&Number>, mut all: ResMut<Fired>| {
        let Number(number) = *numbers.get(fired.entity()).expect("a number");
        all.0.push((fired.deadline(), number));
    };
    app.init_resource::<Fired>().add_observer(note);
    (0..frames).for_each(|_| app.update());
    app.world_mut().resource_mut::<Fired>().0.split_off(0)
}

#[track_caller]
fn assert_fires_in_order(app: App) {
    let fired: Vec<u32> = fired(app, 1).into_iter().map(|(_, nth)| nth).collect();
    assert_eq!(fired, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/// The timers were saved in the order in which they had been loaded.
#[test]
fn a_world_that_is_saved_again_before_its_first_frame_keeps_the_order_of_equal_deadlines() {
    let (mut before, _) = app_with_equal_deadlines();
    let (mut once, _) = loaded(&mut before);
    let (twice, _) = loaded(&mut once);
    assert_fires_in_order(twice);
}

/// The timer kept the place in which it had been loaded.
#[test]
fn a_timer_that_is_changed_before_its_first_frame_keeps_its_place_among_equal_deadlines() {
    let (mut before, timers) = app_with_equal_deadlines();
    let (mut app, names) = loaded(&mut before);
    let changed = app
        .world_mut()
        .change_timer(names[&timers[2]], |timer| timer.set_interval(0.5));
    changed.expect("it is armed");
    assert_fires_in_order(app);
}

#[test]
fn equal_deadlines_of_timers_with_slack_keep_their_order_after_loading() {
    let (mut before, timers) = app_with_equal_deadlines();
    // Each timer takes one of two deadlines.
    let timer = Timer::every(0.25).slack(Duration::from_nanos(2));
    for entity in timers {
        before.world_mut().entity_mut(entity).insert(timer.clone());
    }
    let (new, _) = loaded(&mut before);
    before.update();
    let (running, _) = loaded(&mut before);
    for (app, name) in [(new, "new"), (running, "running")] {
        let fired = fired(app, 4);
        assert!(fired.len() >= 30, "{name}: {fired:?}");
        assert!(fired.is_sorted(), "{name}, not in order: {fired:?}");
        let ties = fired.windows(2).filter(|it| it[0].0 == it[1].0).count();
        assert!(ties >= 20, "{name}, only {ties} ties: {fired:?}");
    }
}

#[test]
fn a_deep_chain_of_clocks_is_saved_as_fast_as_clocks_side_by_side() {
    let time_to_save = |is_deep: bool| {
        let mut app = app();
        let mut parent = ClockId::Virtual;
        for _ in 0..3_000 {
            let clock = app.world_mut().spawn(Clock::of(parent)).id();
            if is_deep {
                parent = clock.into();
            }
        }
        app.update();
        let save = |_| {
            let started = std::time::Instant::now();
            app.world_mut().save_timers().expect("all is data");
            started.elapsed()
        };
        (0..5).map(save).min().expect("a time")
    };
    let (deep, flat) = (time_to_save(true), time_to_save(false));
    // Going up the chain for each clock takes many times as long.
    assert!(
        deep < 6 * flat,
        "{deep:?} for a chain, and {flat:?} side by side"
    );
}

/// What depends on a despawned entity ends in the same order in a loaded world.
#[test]
fn the_dependents_of_a_despawned_unit_end_in_the_same_order_after_loading() {
    #[derive(Resource, Default)]
    struct Order(Vec<Entity>);
    let order = |app: &mut App, unit: Entity| {
        app.init_resource::<Order>();
        app.add_observer(|cancelled: On<TimerCancelled>, mut order: ResMut<Order>| {
            order.0.push(cancelled.entity());
        });
        app.world_mut().despawn(unit);
        app.world().resource::<Order>().0.clone()
    };
    let mut before = app();
    let world = before.world_mut();
    let unit = world.spawn_empty().id();
    world.entity_mut(unit).insert(Clock::new());
    let modifier = world.spawn(SpeedModifier::new(unit, 0.0)).id();
    before.update();
    let world = before.world_mut();
    world
        .commands()
        .entity(unit)
        .set_timer("a", Timer::after(1.0));
    world.flush();
    let keyed = world.with_timers(|timers| timers.keyed(unit, "a").unwrap().entity);
    before.update();
    let world = before.world_mut();
    world
        .entity_mut(modifier)
        .insert((Clock::of(ClockId::Real).with_speed(0.0), Timer::after(1.0)));
    for _ in 0..10 {
        before.update();
    }
    let (mut after, names) = loaded(&mut before);
    let expected = order(&mut before, unit);
    assert_eq!(expected.len(), 2);
    let expected: Vec<_> = expected.iter().map(|entity| names[entity]).collect();
    let shown = order(&mut after, names[&unit]);
    assert_eq!(shown, expected, "{keyed} {modifier} {names:?}");
}

/// The timer of a loaded unit follows a clock that comes before the first run.
#[test]
fn a_loaded_timer_follows_a_clock_that_comes_later() {
    let mut before = app();
    let world = before.world_mut();
    let unit = world
        .spawn((Timer::after(4.0), DespawnAfter::new(9.0)))
        .id();
    let owned = world.spawn((OwnedBy(unit), Timer::after(3.0))).id();
    before.update();
    let (mut after, names) = loaded(&mut before);
    let slow = |app: &mut App, unit: Entity| {
        let clock = Clock::new().with_speed(0.5);
        app.world_mut().entity_mut(unit).insert(clock);
        for _ in 0..4 {
            app.update();
        }
    };
    let left = |app: &mut App, [unit, owned]: [Entity; 2]| {
        app.world_mut().with_timers(|timers| {
            let timer = |timer| timers.get(timer).map(|it| (it.clock, it.remaining));
            (timer(unit), timer(owned), timers.lifetime(unit))
        })
    };
    slow(&mut before, unit);
    slow(&mut after, names[&unit]);
    let expected = left(&mut before, [unit, owned]);
    assert_eq!(expected.0.map(|(clock, _)| clock), Some(unit.into()));
    let shown = left(&mut after, [names[&unit], names[&owned]]);
    let clock =
        |it: Option<(ClockId, Duration)>| it.map(|(_, left)| (ClockId::from(names[&unit]), left));
    assert_eq!(shown, (clock(expected.0), clock(expected.1), expected.2));
}
