//! The feature `bevy_reflect`: timers inserted by an editor or a scene.

use core::{
    any::TypeId,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use crate::support::{errors::*, *};
use bevy_app::App;
use bevy_due::{
    Clock, ClockId, Owned, OwnedBy, Timer, TimerFired, clock::ClockError, save::SaveWorldExt,
};
use bevy_ecs::{
    entity::{EntityHashMap, SceneEntityMapper},
    error::FallbackErrorHandler,
    prelude::*,
    reflect::{AppTypeRegistry, ReflectComponent},
    relationship::RelationshipHookMode,
    resource::IsResource,
};
use bevy_reflect::{
    FromReflect, GetPath, GetTypeRegistration, PartialReflect, Reflect, TypeRegistry,
    structs::{DynamicStruct, Struct},
};

fn reflect_component<C: 'static>(registry: &TypeRegistry) -> ReflectComponent {
    registry
        .get_type_data::<ReflectComponent>(TypeId::of::<C>())
        .expect("should be registered")
        .clone()
}

#[test]
fn a_timer_inserted_by_reflection_is_armed() {
    let mut app = app();
    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let registry = registry.read();
    let component = reflect_component::<Timer>(&registry);
    let timer = Timer::every(ms(10)).times(2);
    let value: Box<dyn PartialReflect> = timer.reflect_clone().unwrap().into_partial_reflect();

    let mut entity = app.world_mut().spawn(Tag("x"));
    component.insert(&mut entity, &*value, &registry);
    let entity = entity.id();
    assert_eq!(app.world().get::<Timer>(entity), Some(&timer));
    advance_ms(&mut app, 20);
    assert_eq!(fired(&mut app), ["x", "x"]);
}

#[test]
fn timer_types_are_registered_for_reflection() {
    let app = app();
    let registry = app.world().resource::<AppTypeRegistry>().read();
    reflect_component::<OwnedBy>(&registry);
    reflect_component::<Owned>(&registry);
    #[cfg(feature = "serialize")]
    for relation in [TypeId::of::<Owned>(), TypeId::of::<OwnedBy>()] {
        let serialize = registry.get_type_data::<bevy_reflect::ReflectSerialize>(relation);
        assert!(
            serialize.is_some(),
            "a scene saves both sides of the relation"
        );
    }
    let fired = TimerFired::get_type_registration();
    assert!(registry.contains(fired.type_id()));
}

/// Copies every reflected component into a new app, as a scene does.
fn save_and_load(saved: &App) -> App {
    let mut loaded = app();
    let registry = saved.world().resource::<AppTypeRegistry>().read();
    let mut map = EntityHashMap::default();
    for entity in saved.world().iter_entities() {
        if entity.contains::<IsResource>() {
            continue;
        }
        let copy = loaded.world_mut().spawn_empty().id();
        map.insert(entity.id(), copy);
        for &id in entity.archetype().components() {
            let type_id = saved.world().components().get_info(id).unwrap().type_id();
            let component = type_id.and_then(|id| registry.get_type_data::<ReflectComponent>(id));
            let Some(component) = component else {
                continue;
            };
            let value = component.reflect(entity).unwrap();
            SceneEntityMapper::world_scope(&mut map, loaded.world_mut(), |world, mapper| {
                component.apply_or_insert_mapped(
                    &mut world.entity_mut(copy),
                    value.as_partial_reflect(),
                    &registry,
                    mapper,
                    RelationshipHookMode::Skip,
                );
            });
        }
    }
    drop(registry);
    loaded
}

#[test]
fn saving_and_loading_a_world_adds_no_clocks() {
    let mut game = app();
    game.world_mut().spawn(Clock::new().with_speed(0.5));
    advance_ms(&mut game, 20);
    for _ in 0..3 {
        game = save_and_load(&game);
    }
    let mut clocks = game.world_mut().query::<(Entity, &Clock)>();
    let [(own, clock)] = *clocks.iter(game.world()).collect::<Vec<_>>() else {
        panic!("there should be one clock");
    };
    assert_eq!(now(&game, own), ms(0), "a clock in a scene is a new one");
    assert_eq!(clock.speed(), 0.5);
}

/// Sets a field of a clock by path. The component is immutable, so an inspector inserts another one.
fn set_field<T: Reflect>(app: &mut App, clock: Entity, path: &str, value: T) {
    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let reflect = reflect_component::<Clock>(&registry.read());
    let mut changed = component(app, clock).clone();
    *changed.path_mut::<T>(path).expect("a field of this type") = value;
    let mut entity = app.world_mut().entity_mut(clock);
    reflect.insert(&mut entity, &changed, &registry.read());
}

/// Reads a field of a clock by path.
fn field<T: Reflect + Clone>(app: &App, clock: Entity, path: &str) -> T {
    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let component = reflect_component::<Clock>(&registry.read());
    let reflected = component.reflect(app.world().entity(clock));
    let reflected = reflected.expect("there should be a clock");
    reflected
        .path::<T>(path)
        .expect("a field of this type")
        .clone()
}

fn component(app: &App, clock: Entity) -> &Clock {
    app.world().get(clock).expect("there should be a clock")
}

#[test]
fn the_fields_of_a_clock_agree_with_its_methods() {
    let mut app = app();
    let parent = spawn_clock(&mut app, Clock::new());
    let own = spawn_clock(&mut app, Clock::of(parent).with_speed(0.5));
    let fields = |app: &App| {
        (
            field::<ClockId>(app, own, "parent.0"),
            field::<f64>(app, own, "speed"),
            field::<bool>(app, own, "paused"),
        )
    };
    assert_eq!(fields(&app), (parent.into(), 0.5, false));
    let other = Clock::of(ClockId::Real).with_speed(3.0).paused();
    app.world_mut().entity_mut(own).insert(other);
    assert_eq!(fields(&app), (ClockId::Real, 3.0, true));
}

#[test]
fn a_clock_inserted_with_another_field_takes_it_over_at_once() {
    let mut app = app();
    let fast = spawn_clock(&mut app, Clock::new().with_speed(10.0));
    let own = spawn_clock(&mut app, Clock::of(ClockId::Virtual));
    spawn(&mut app, "x", Timer::after(ms(100)).on(own));
    advance_ms(&mut app, 10);

    set_field(&mut app, own, "speed", 0.5);
    assert_eq!(field::<f64>(&app, own, "speed"), 0.5);
    assert_eq!(clock(&mut app, own).speed(), 0.5);
    advance_ms(&mut app, 20);
    assert_eq!(now(&app, own), ms(20));

    set_field(&mut app, own, "paused", true);
    advance_ms(&mut app, 1000);
    assert_eq!(now(&app, own), ms(20));

    set_field(&mut app, own, "paused", false);
    set_field(&mut app, own, "parent.0", ClockId::Own(fast));
    assert_eq!(clock(&mut app, own).parent(), Some(fast.into()));
    advance_ms(&mut app, 15);
    assert_eq!(now(&app, own), ms(95));
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 1);
    assert_eq!(fired_at(&mut app), [("x", 100)]);
}

#[test]
fn invalid_fields_are_reported_and_leave_the_clock_as_it_was() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let own = spawn_clock(&mut app, Clock::new().with_speed(0.5));
    let child = spawn_clock(&mut app, Clock::of(own));
    let nowhere = app.world_mut().spawn_empty().id();
    let before = clock(&mut app, own);

    for bad in [f64::NAN, -1.0, f64::INFINITY] {
        set_field(&mut app, own, "speed", bad);
        advance_ms(&mut app, 0);
        assert_eq!(errors(), [ClockError::InvalidSpeed(bad).to_string()]);
        assert_eq!(clock(&mut app, own), before);
    }
    let cycle = ClockError::Cycle(vec![own, child]).to_string();
    let missing = ClockError::NoSuchClock(nowhere.into()).to_string();
    for (bad, error) in [(child, cycle), (nowhere, missing)] {
        app.world_mut().entity_mut(own).insert(before.clone());
        set_field(&mut app, own, "parent.0", ClockId::Own(bad));
        advance_ms(&mut app, 0);
        assert_eq!(errors(), [error]);
        assert_eq!(clock(&mut app, own), before);
    }
}

#[test]
fn an_invalid_field_of_a_clock_that_is_not_in_a_world_is_reported_at_insertion() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let mut value = Clock::new().with_now(ms(6));
    *value.path_mut::<f64>("speed").expect("a field") = -2.0;
    *value.path_mut::<bool>("paused").expect("a field") = true;
    assert!(value.is_paused());
    let own = spawn_clock(&mut app, value);
    app.world_mut().flush();
    assert_eq!(errors(), [ClockError::InvalidSpeed(-2.0).to_string()]);
    advance_ms(&mut app, 10);
    assert_eq!(clock(&mut app, own).speed(), 1.0);
    assert_eq!(now(&app, own), ms(6));
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn a_replacement_with_an_invalid_speed_keeps_the_speed() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let own = spawn_clock(&mut app, Clock::new().with_speed(2.0));
    advance_ms(&mut app, 10);
    let mut value = Clock::of(ClockId::Real);
    *value.path_mut::<f64>("speed").expect("a field") = -1.0;
    app.world_mut().entity_mut(own).insert(value);
    advance_ms(&mut app, 10);
    assert_eq!(errors(), [ClockError::InvalidSpeed(-1.0).to_string()]);
    let clock = clock(&mut app, own);
    assert_eq!((clock.speed(), clock.parent()), (2.0, Some(ClockId::Real)));
    assert_eq!(now(&app, own), ms(40));
}

#[test]
fn reading_a_clock_by_reflection_changes_nothing() {
    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new());
    advance_ms(&mut app, 10);
    let changed = |app: &App| {
        let clock = app.world().entity(own).get_ref::<Clock>();
        clock.expect("a clock").last_changed()
    };
    let before = changed(&app);
    assert_eq!(field::<f64>(&app, own, "speed"), 1.0);
    advance_ms(&mut app, 10);
    assert_eq!(changed(&app), before);
    assert_eq!(now(&app, own), ms(20));
    // An inspector inserts what it shows.
    set_field(&mut app, own, "speed", 1.0);
    advance_ms(&mut app, 10);
    assert_eq!(now(&app, own), ms(30), "the time is not set back");
}

#[test]
fn a_clock_is_made_from_a_dynamic_struct() {
    let clock = Clock::of(ClockId::Real).with_speed(0.25).with_now(ms(3));
    let dynamic = clock.to_dynamic().expect("a dynamic struct");
    assert_eq!(Clock::from_reflect(&*dynamic), Some(clock));

    let mut partial = DynamicStruct::default();
    partial.insert("speed", 2.0_f64);
    let clock = Clock::from_reflect(&partial);
    assert_eq!(clock, Some(Clock::new().with_speed(2.0)));
    partial.insert("paused", "of another type".to_owned());
    assert!(Clock::new().try_apply(&partial).is_err());

    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new());
    let mut pause = DynamicStruct::default();
    pause.insert("paused", true);
    let mut paused = component(&app, own).clone();
    paused.apply(&pause);
    app.world_mut().entity_mut(own).insert(paused);
    advance_ms(&mut app, 10);
    assert_eq!(crate::support::now(&app, own), ms(0));
}

#[cfg(feature = "serialize")]
#[test]
fn a_clock_is_serialized_by_reflection_as_by_serde() {
    use bevy_reflect::serde::{ReflectDeserializer, ReflectSerializer};
    use serde::de::DeserializeSeed;

    let mut app = app();
    let own = spawn_clock(&mut app, Clock::new().with_speed(1.0 / 3.0));
    advance(&mut app, Duration::from_nanos(10));
    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let registry = registry.read();
    let text = ron::to_string(&ReflectSerializer::new(component(&app, own), &registry));
    let text = text.expect("a clock can be serialized");
    let serde = ron::to_string(component(&app, own)).expect("a clock can be serialized");
    assert!(text.contains(&serde), "{text} should contain {serde}");

    let mut deserializer = ron::Deserializer::from_str(&text).expect("it is RON");
    let value = ReflectDeserializer::new(&registry).deserialize(&mut deserializer);
    let value = value.expect("a clock can be deserialized");
    let loaded = Clock::from_reflect(&*value).expect("it is a clock");
    let text = ron::to_string(&loaded).expect("a clock can be serialized");
    assert_eq!(text, serde);
}

#[test]
fn a_parent_applied_by_reflection_is_mapped() {
    let mut app = app();
    app.insert_resource(FallbackErrorHandler(record));
    let fast = spawn_clock(&mut app, Clock::new().with_speed(4.0));
    let own = spawn_clock(&mut app, Clock::new());
    let elsewhere = World::new().spawn_empty().id();
    let value = Clock::of(elsewhere).to_dynamic().expect("a dynamic struct");
    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let component = reflect_component::<Clock>(&registry.read());
    let mut map = EntityHashMap::default();
    map.insert(elsewhere, fast);
    SceneEntityMapper::world_scope(&mut map, app.world_mut(), |world, mapper| {
        component.apply_or_insert_mapped(
            &mut world.entity_mut(own),
            &*value,
            &registry.read(),
            mapper,
            RelationshipHookMode::Run,
        );
    });
    advance_ms(&mut app, 10);
    assert_eq!(clock(&mut app, own).parent(), Some(fast.into()));
    assert_eq!(now(&app, own), ms(40));
    assert_eq!(errors(), [""; 0]);
}

#[test]
fn reflection_shows_the_settings_of_a_timer() {
    let plain = Timer::every(ms(10)).times(3);
    assert_eq!(plain.path::<u64>("delay"), Ok(&10_000_000));
    let interval = NonZeroU64::new(10_000_000);
    assert_eq!(plain.path::<Option<NonZeroU64>>("interval"), Ok(&interval));
    assert_eq!(
        plain.path::<Option<NonZeroU32>>("times"),
        Ok(&NonZeroU32::new(3))
    );
    assert!(plain.path::<u64>("seat").is_err());
    assert!(plain.iter_fields().all(|(name, field)| {
        let same = plain.field(name).unwrap();
        field.reflect_partial_eq(same) != Some(false)
    }));
}

#[test]
fn a_timer_is_made_from_fields() {
    let mut fields = DynamicStruct::default();
    fields.insert("delay", 20_000_000_u64);
    fields.insert("interval", NonZeroU64::new(30_000_000));
    let timer = Timer::from_reflect(&fields);
    let expected = Timer::every(ms(30)).first_after(ms(20));
    assert_eq!(timer, Some(expected));

    // The dynamic copy of a timer has all its settings.
    let timer = Timer::every_between(ms(10)..=ms(20))
        .times(4)
        .with_jitter(ms(1))
        .keep_when_done();
    let copy = timer.to_dynamic_struct().expect("all fields can be copied");
    assert_eq!(Timer::from_reflect(&copy), Some(timer));

    let mut wrong = DynamicStruct::default();
    wrong.insert("delay", "soon".to_owned());
    assert_eq!(Timer::from_reflect(&wrong), None, "a field of another type");
    let mut wrong = DynamicStruct::default();
    wrong.insert("times", NonZeroU32::new(2));
    assert_eq!(Timer::from_reflect(&wrong), None, "no interval");
}

#[test]
fn a_timer_made_from_fields_is_inserted_and_fires() {
    let mut app = app();
    let registry = app.world().resource::<AppTypeRegistry>().clone();
    let registry = registry.read();
    let component = reflect_component::<Timer>(&registry);
    let entity = app
        .world_mut()
        .spawn((Tag("x"), Timer::after(ms(500))))
        .id();
    advance_ms(&mut app, 10);

    let mut fields = component
        .reflect(app.world().entity(entity))
        .and_then(|timer| timer.reflect_ref().as_struct().ok())
        .expect("a timer is a struct")
        .to_dynamic_struct()
        .expect("all fields can be copied");
    fields.insert("delay", 20_000_000_u64);
    component.insert(&mut app.world_mut().entity_mut(entity), &fields, &registry);
    advance_ms(&mut app, 10);
    assert!(fired(&mut app).is_empty());
    advance_ms(&mut app, 10);
    assert_eq!(fired(&mut app), ["x"]);
}

#[test]
fn a_timer_with_fields_that_contradict_each_other_fires_once_and_can_be_saved() {
    let mut timer = Timer::after(ms(10));
    let edit: &mut dyn Struct = &mut timer;
    let times = edit.field_mut("times").expect("a field");
    times.apply(&NonZeroU32::new(3));
    assert_eq!(timer.max_firings(), Some(1), "it has no interval");
    let mut app = app();
    let entity = app.world_mut().spawn((Tag("x"), timer)).id();
    #[cfg(feature = "serialize")]
    {
        let saved = app.world_mut().save_timers().expect("no closures");
        let text = ron::to_string(&saved).expect("it can be saved");
        let saved: bevy_due::save::SavedTimers = ron::from_str(&text).expect("it can be loaded");
        assert!(saved.entities().any(|saved| saved == entity));
    }
    advance_ms(&mut app, 50);
    assert_eq!(fired(&mut app), ["x"]);
    assert!(app.world().get::<Timer>(entity).is_none());
}
