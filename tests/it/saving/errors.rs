//! Data that can't be saved or loaded.

use core::{fmt::Write, time::Duration};

use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Clocks, OnClock, OwnedBy, Paused, Timer, TimerAction, TimerFired,
    prelude::*,
    save::{LoadError, SaveError, SaveWorldExt, SavedTimers, Unsavable, UnsavableTimer},
    timer::Keyed,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*, system::RunSystemOnce};
use bevy_time::{TimePlugin, TimeUpdateStrategy};

/// Returns a world with timers, clocks and pauses.
fn busy_app() -> App {
    let step = Duration::from_millis(250);
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()))
        .insert_resource(TimeUpdateStrategy::ManualDuration(step));
    app.update();
    let world = app.world_mut();
    let clock = world.spawn(Clock::new().with_speed(0.5)).id();
    let owner = world.spawn(DespawnAfter::new(60.0)).id();
    world.spawn((Timer::every(0.7).on(clock), OwnedBy(owner)));
    world.spawn((
        Timer::every_between(Duration::from_millis(10)..=Duration::from_millis(20)),
        OwnedBy(owner),
        Keyed::new("a"),
    ));
    world.spawn((Timer::after(9.0), Paused));
    app.update();
    app.world_mut().spawn(Timer::after(1.0));
    // The first system that runs once adds an entity.
    describe(&mut app);
    app
}

/// Describes everything that loading changes.
fn describe(app: &mut App) -> String {
    let world = app.world_mut();
    let mut text = String::new();
    let entities: Vec<Entity> = world.iter_entities().map(|entity| entity.id()).collect();
    writeln!(text, "{entities:?}").expect("a string");
    world.with_timers(|timers| {
        for timer in timers.iter() {
            writeln!(text, "{timer:?}").expect("a string");
        }
    });
    let built_in = |clocks: Clocks| {
        let ids = [
            ClockId::Real,
            ClockId::Virtual,
            ClockId::Frames,
            ClockId::Fixed,
        ];
        ids.map(|id| clocks.get(id).expect("built in"))
    };
    let built_in = world.run_system_once(built_in).expect("a system");
    let own: Vec<Clock> = world.query::<&Clock>().iter(world).cloned().collect();
    writeln!(text, "{built_in:?} {own:?}").expect("a string");
    text
}

/// Returns the saved timers of a busy world, and more entities with these components.
fn data(more: &[(Entity, &str)]) -> SavedTimers {
    let saved = busy_app().world_mut().save_timers();
    let text = ron::to_string(&saved.expect("no closures")).expect("data");
    let mut text = text
        .strip_suffix("]))")
        .expect("entities come last")
        .to_owned();
    for (entity, parts) in more {
        let bits = entity.to_bits();
        write!(text, ",(entity:{bits},parts:[{parts}])").expect("a string");
    }
    text.push_str("]))");
    ron::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the nth of the entities that no other world has.
fn saved(nth: u32) -> Entity {
    Entity::from_raw_u32(1_000_000 + nth).expect("a small number")
}

fn owned_by(owner: Entity) -> String {
    format!("OwnedBy(({}))", owner.to_bits())
}

fn clock_of(parent: Entity) -> String {
    let parent = parent.to_bits();
    format!(
        "Clock((clock:(parent:Chosen(Own({parent})),speed:1,paused:false,now:(secs:0,nanos:0))))"
    )
}

/// Loads into a busy world, checks that this changes nothing, and returns the error.
#[track_caller]
fn refused(
    more: &[(Entity, &str)],
    fill: impl FnOnce(&mut World, &mut EntityHashMap<Entity>),
) -> LoadError {
    let data = data(more);
    let mut app = busy_app();
    let mut map = EntityHashMap::default();
    fill(app.world_mut(), &mut map);
    let (before, map_before) = (describe(&mut app), map.clone());
    let loaded = app.world_mut().load_timers(&data, &mut map);
    assert_eq!(
        describe(&mut app),
        before,
        "the world should stay as it was"
    );
    assert_eq!(map, map_before, "the map should stay as it was");
    loaded.expect_err("the data is invalid")
}

#[track_caller]
fn assert_says(error: &impl core::fmt::Display, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} should contain {part:?}");
    }
}

#[test]
fn valid_data_is_loaded_beside_the_timers_of_a_busy_world() {
    let data = data(&[(saved(0), "Paused")]);
    let mut app = busy_app();
    let before = describe(&mut app);
    let mut map = EntityHashMap::default();
    let loaded = app.world_mut().load_timers(&data, &mut map);
    assert_eq!(loaded, Ok(()));
    assert_ne!(describe(&mut app), before);
    assert!(app.world().entity(map[&saved(0)]).contains::<Paused>());
}

#[test]
fn a_world_without_the_plugin_is_refused() {
    let mut world = World::new();
    let entities = world.entities().count_spawned();
    let mut map = EntityHashMap::default();
    let loaded = world.load_timers(&data(&[]), &mut map);
    assert_eq!(loaded, Err(LoadError::NoPlugin));
    assert_says(&LoadError::NoPlugin, &["DuePlugin"]);
    assert_eq!(world.entities().count_spawned(), entities);
    assert!(map.is_empty());
}

#[test]
fn an_entity_that_is_saved_twice_is_refused() {
    let [entity, name] = [saved(0), saved(0)];
    let error = refused(&[(entity, "Paused"), (entity, "")], |_, _| {});
    assert_eq!(error, LoadError::DuplicateEntity(entity));
    assert_says(&error, &[&name.to_string()]);
}

#[test]
fn a_component_that_is_saved_twice_is_refused() {
    let entity = saved(0);
    for (name, component) in [
        ("Paused", "Paused"),
        ("Clock", &clock_of(Entity::PLACEHOLDER)),
        ("OwnedBy", &owned_by(entity)),
    ] {
        let twice = format!("{component},{component}");
        let error = refused(&[(entity, &twice)], |_, _| {});
        assert_eq!(error, LoadError::DuplicateComponent(entity, name.into()));
        assert_says(&error, &[&entity.to_string(), name]);
    }
}

#[test]
fn a_reference_to_an_unknown_entity_is_refused() {
    let (entity, to) = (saved(0), saved(1));
    let bits = to.to_bits();
    for (component, part) in [
        ("OwnedBy", owned_by(to)),
        ("OnClock", format!("OnClock((Own({bits})))")),
        ("Clock", clock_of(to)),
    ] {
        let error = refused(&[(entity, &part)], |_, _| {});
        let expected = LoadError::UnknownEntity {
            entity,
            component: component.into(),
            to,
        };
        assert_eq!(error, expected);
        assert_says(&error, &[&entity.to_string(), component, &to.to_string()]);
    }
}

#[test]
fn a_component_of_no_entity_is_refused() {
    let (entity, to) = (saved(0), Entity::PLACEHOLDER);
    let bits = to.to_bits();
    for (component, part) in [
        ("OwnedBy", owned_by(to)),
        ("Pauses", format!("Pauses(({bits}))")),
        (
            "SpeedModifier",
            format!("SpeedModifier((clock:{bits},factor:2))"),
        ),
    ] {
        let error = refused(&[(entity, &part)], |_, _| {});
        let expected = LoadError::UnknownEntity {
            entity,
            component: component.into(),
            to,
        };
        assert_eq!(error, expected);
    }
}

#[test]
fn an_entity_of_the_map_that_does_not_exist_is_refused() {
    let (entity, mut to) = (saved(0), Entity::PLACEHOLDER);
    let error = refused(&[(entity, "Paused")], |world, map| {
        to = world.spawn_empty().id();
        world.despawn(to);
        map.insert(entity, to);
    });
    assert_eq!(error, LoadError::NotInWorld { entity, to });
    assert_says(&error, &[&entity.to_string(), &to.to_string()]);
}

#[test]
fn a_map_with_one_entity_for_two_is_refused() {
    let (entities, mut to) = ([saved(0), saved(1)], Entity::PLACEHOLDER);
    let error = refused(&[(entities[0], "Paused")], |world, map| {
        to = world.spawn_empty().id();
        map.extend(entities.map(|entity| (entity, to)));
    });
    let mut sorted = entities;
    sorted.sort();
    let entities = sorted;
    assert_eq!(error, LoadError::MappedTwice { entities, to });
    assert_says(
        &error,
        &[&entities[0].to_string(), &entities[1].to_string()],
    );
}

#[test]
fn clocks_that_drive_each_other_are_refused() {
    let clocks = [0, 1, 2].map(saved);
    let [a, b, c] = [1, 2, 0].map(|parent| clock_of(clocks[parent]));
    let error = refused(
        &[(clocks[0], &a), (clocks[1], &b), (clocks[2], &c)],
        |_, _| {},
    );
    let LoadError::ClockCycle(mut cycle) = error.clone() else {
        panic!("{error}");
    };
    cycle.sort();
    let mut expected = clocks.to_vec();
    expected.sort();
    assert_eq!(cycle, expected);
    assert_says(
        &error,
        &clocks
            .map(|clock| clock.to_string())
            .each_ref()
            .map(String::as_str),
    );
}

#[test]
fn clocks_that_would_drive_each_other_in_the_world_are_refused() {
    let (clock, parent) = (saved(0), saved(1));
    let part = clock_of(parent);
    let error = refused(&[(clock, &part)], |world, map| {
        let below = world.spawn(Clock::new()).id();
        let above = world.spawn(Clock::of(below)).id();
        let top = world.spawn(Clock::of(above)).id();
        map.extend([(clock, below), (parent, top)]);
    });
    assert_eq!(error, LoadError::ClockCycle([clock, parent].into()));
}

#[test]
fn a_clock_whose_parent_in_the_world_is_no_clock_is_refused() {
    let (clock, parent) = (saved(0), saved(1));
    let part = clock_of(parent);
    let expected = LoadError::NoClock {
        entity: clock,
        component: "Clock".into(),
        clock: parent,
    };
    let error = refused(&[(clock, &part)], |world, map| {
        map.insert(parent, world.spawn_empty().id());
    });
    assert_eq!(error, expected);
    assert_says(&error, &[&clock.to_string(), &parent.to_string()]);
}

#[test]
fn two_timers_of_an_owner_with_the_same_key_are_refused() {
    let owner = saved(0);
    let part = format!("{},Keyed(\"wave\")", owned_by(owner));
    let error = refused(
        &[(owner, ""), (saved(1), &part), (saved(2), &part)],
        |_, _| {},
    );
    assert_eq!(
        error,
        LoadError::DuplicateKey {
            owner,
            key: "wave".into()
        }
    );
    assert_says(&error, &[&owner.to_string(), "wave"]);
}

#[test]
fn an_unknown_version_is_an_error_that_names_it() {
    let text = ron::to_string(&data(&[])).expect("data");
    let later = text.replacen("V2", "V99", 1);
    let error = ron::from_str::<SavedTimers>(&later).expect_err("unknown");
    assert_says(&error, &["V99", "V2"]);
}

#[test]
fn text_that_ends_anywhere_is_an_error() {
    let text = ron::to_string(&data(&[])).expect("data");
    for len in (0..text.len()).step_by(7) {
        let loaded = ron::from_str::<SavedTimers>(&text[..len]);
        assert!(loaded.is_err(), "the first {len} bytes are not enough");
    }
}

/// Returns the timers that can't be saved.
fn timers(unsavable: &[Unsavable]) -> Vec<&UnsavableTimer> {
    let timers = unsavable.iter().map(|unsavable| match unsavable {
        Unsavable::Timer(timer) => timer,
        other => panic!("{other}"),
    });
    timers.collect()
}

#[test]
fn a_closure_is_an_error_that_names_the_entity_and_the_alternative() {
    let mut app = busy_app();
    let world = app.world_mut();
    let boss = world.spawn_empty().id();
    let closure = TimerAction::call(|_: &mut World, _: TimerFired| {});
    let own = world.spawn((Timer::after(1.0), closure.clone())).id();
    let owned = world.spawn((Timer::after(1.0), closure, OwnedBy(boss)));
    let owned = owned.id();
    world.commands().after(1.0).queue(|_: &mut Commands| {});
    world.flush();
    let error = world.save_timers().expect_err("closures");
    let SaveError::Unsavable(unsavable) = &error else {
        panic!("{error}");
    };
    let closures = timers(unsavable);
    assert_eq!(closures.len(), 3, "{error}");
    let owner = |of| {
        let mut timers = closures.iter().filter(|timer| timer.entity == of);
        timers.next().map(|timer| timer.owner)
    };
    assert_eq!(owner(own), Some(own));
    assert_eq!(owner(owned), Some(boss));
    let (own, owned) = (own.to_string(), owned.to_string());
    assert_says(
        &error,
        &[&own, &owned, "add_timer_handler", "TimerAction::named"],
    );
    let of_boss = world.save_entity(boss).expect_err("a closure");
    assert!(
        matches!(&of_boss, SaveError::Unsavable(closures) if closures.len() == 1),
        "{of_boss}"
    );
}

#[test]
fn an_error_names_the_key_of_the_timer_and_the_closure_of_the_user() {
    let mut app = busy_app();
    let world = app.world_mut();
    let boss = world.spawn_empty().id();
    let mut commands = world.commands();
    let closure = TimerAction::call(|_: &mut World, _: TimerFired| {});
    let cast = (Timer::after(1.0), closure);
    commands.entity(boss).set_timer("cast", cast);
    commands.after(1.0).queue(|_: &mut Commands| {});
    world.flush();
    let error = world.save_timers().expect_err("closures");
    assert_says(&error, &["\"cast\"", &boss.to_string(), "errors::an_error"]);
    assert!(!error.to_string().contains("TimedCommands"), "{error}");
}

#[test]
fn an_entity_that_does_not_exist_is_not_saved() {
    let mut app = busy_app();
    let gone = app.world_mut().spawn_empty().id();
    app.world_mut().despawn(gone);
    let error = app.world_mut().save_entity(gone).expect_err("gone");
    assert_eq!(error, SaveError::NoSuchEntity(gone));
    assert_says(&error, &[&gone.to_string()]);
}

#[test]
fn a_world_without_the_plugin_is_not_saved() {
    let error = World::new().save_timers().expect_err("no plugin");
    assert_eq!(error, SaveError::NoPlugin);
    let mut world = World::new();
    let entity = world.spawn_empty().id();
    assert_eq!(world.save_entity(entity).err(), Some(SaveError::NoPlugin));
}

#[test]
fn a_clock_that_is_mapped_to_an_entity_without_one_is_refused() {
    let mut app = busy_app();
    let world = app.world_mut();
    let arena = world.spawn(Clock::new()).id();
    let armed = (Timer::after(1.0), DespawnAfter::new(2.0));
    let unit = world.spawn((armed, OnClock::new(arena))).id();
    app.update();
    let saved = app.world_mut().save_entity(unit).expect("data");
    let mut other = busy_app();
    let world = other.world_mut();
    let plain = world.spawn_empty().id();
    let mut map = EntityHashMap::from_iter([(arena, plain)]);
    let error = world.load_timers(&saved, &mut map).expect_err("no clock");
    let expected = LoadError::NoClock {
        entity: unit,
        component: "Timer".into(),
        clock: arena,
    };
    assert_eq!(error, expected);
    assert_says(&error, &["Timer", &unit.to_string(), &arena.to_string()]);
    world.entity_mut(plain).insert(Clock::new());
    assert_eq!(world.load_timers(&saved, &mut map), Ok(()));
}

#[test]
fn an_overstep_of_years_is_refused() {
    let saved = busy_app().world_mut().save_timers().expect("data");
    let saved = ron::to_string(&saved).expect("data");
    let at = saved.find("overstep:(secs:").expect("an overstep") + "overstep:(secs:".len();
    let end = at + saved[at..].find(',').expect("nanoseconds");
    let damaged = format!("{}999999999{}", &saved[..at], &saved[end..]);
    let damaged: SavedTimers = ron::from_str(&damaged).expect("data");
    let mut app = busy_app();
    let mut map = EntityHashMap::default();
    let error = app.world_mut().load_timers(&damaged, &mut map);
    let error = error.expect_err("too much");
    assert!(matches!(error, LoadError::TooManySteps { .. }), "{error}");
    assert_says(&error, &["999999999"]);
}

#[test]
fn without_closures_the_other_timers_are_saved_and_no_empty_entities() {
    let mut app = busy_app();
    let expected = app.world_mut().save_timers().expect("no closures");
    let world = app.world_mut();
    let closure = || TimerAction::call(|_: &mut World, _: TimerFired| {});
    let clock = world.spawn(Clock::new()).id();
    let left_out = [
        world.spawn((Timer::after(1.0), closure())).id(),
        world
            .spawn((
                Timer::after(1.0).on(clock),
                closure(),
                OwnedBy(clock),
                Keyed::new("a"),
            ))
            .id(),
    ];
    let living = world
        .spawn((Timer::after(1.0), closure(), DespawnAfter::new(5.0)))
        .id();
    world.commands().after(1.0).queue(|_: &mut Commands| {});
    world.flush();
    let (saved, unsavable) = world.save_timers_without_closures();
    let entities: Vec<Entity> = timers(&unsavable)
        .iter()
        .map(|timer| timer.entity)
        .collect();
    assert_eq!(entities.len(), 4);
    for entity in left_out.into_iter().chain([living]) {
        assert!(entities.contains(&entity), "{entity} is left out");
    }
    let mut found: Vec<Entity> = saved.entities().collect();
    let mut expected: Vec<Entity> = expected.entities().chain([clock, living]).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    let mut loaded = App::new();
    loaded.add_plugins((TimePlugin, DuePlugin::default()));
    let before = loaded.world().entities().count_spawned();
    let mut map = EntityHashMap::default();
    let result = loaded.world_mut().load_timers(&saved, &mut map);
    assert_eq!(result, Ok(()));
    let after = loaded.world().entities().count_spawned();
    assert_eq!((after - before) as usize, expected.len());
    let living = loaded.world().entity(map[&living]);
    assert!(living.contains::<DespawnAfter>());
    assert!(!living.contains::<Timer>() && !living.contains::<TimerAction>());
}

#[test]
fn a_timer_that_waits_for_a_clock_is_saved_with_the_entity_of_the_clock() {
    let mut app = App::new();
    app.add_plugins((TimePlugin, DuePlugin::default()));
    let zone = app.world_mut().spawn_empty().id();
    app.world_mut()
        .spawn((Timer::after(1.0), OnClock::new(zone)));
    let saved = app.world_mut().save_timers().expect("it can be saved");
    let mut new = App::new();
    new.add_plugins((TimePlugin, DuePlugin::default()));
    let mut map = EntityHashMap::default();
    let loaded = new.world_mut().load_timers(&saved, &mut map);
    assert_eq!(loaded, Ok(()));
    assert!(map.contains_key(&zone));
}
