//! With `bevy_reflect`: what an editor or a scene does to timers.

#![cfg(feature = "bevy_reflect")]

mod support;

use bevy_due::{OwnedBy, Timer, TimerFired};
use bevy_ecs::reflect::{AppTypeRegistry, ReflectComponent};
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
fn the_types_are_registered() {
    let app = app();
    let registry = app.world().resource::<AppTypeRegistry>().read();
    reflect_component::<OwnedBy>(&registry);
    let fired = TimerFired::get_type_registration();
    assert!(registry.contains(fired.type_id()));
}
