//! The feature `bevy_reflect`: timers inserted by an editor or a scene.

#![cfg(feature = "bevy_reflect")]

mod support;

use bevy_app::App;
use bevy_due::{Clock, Owned, OwnedBy, Timer, TimerFired};
use bevy_ecs::{
    entity::{EntityHashMap, SceneEntityMapper},
    reflect::{AppTypeRegistry, ReflectComponent},
    relationship::RelationshipHookMode,
    resource::IsResource,
};
use bevy_reflect::{GetTypeRegistration, PartialReflect, TypeRegistry};
use core::any::TypeId;
use support::*;

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
    let mut clocks = game.world_mut().query::<&Clock>();
    let [clock] = *clocks.iter(game.world()).collect::<Vec<_>>() else {
        panic!("there should be one clock");
    };
    assert_eq!(clock.now(), ms(10), "a loaded clock brings its time");
    assert_eq!(clock.speed(), 0.5);
}
