//! The hooks that keep the rosters in step with the world.

use bevy_ecs::{
    entity::Entity,
    lifecycle::HookContext,
    world::{DeferredWorld, World},
};
use bevy_platform::sync::atomic::Ordering;

use super::{Mail, MessageComponent, NOWHERE, mail::Places, written::Writing};

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    follow(world, entity);
}

/// Takes the `MessageComponent` of `entity` in, for the next run. Without a plugin nothing happens.
pub(crate) fn follow(mut world: DeferredWorld, entity: Entity) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    let component = component.clone();
    let mut places = Places::new();
    for follows in &component.follows {
        let of = follows.written;
        let next = of.map_or(0, |written| (written.start)(&world));
        let Some(mut mail) = world.get_resource_mut::<Mail>() else {
            return;
        };
        let writing = || of.map(|of| Writing::new(of, next));
        let place = mail.expect(follows.topic, writing);
        places.push((place, follows.handler.clone()));
    }
    let Some(mut mail) = world.get_resource_mut::<Mail>() else {
        return;
    };
    let nth = mail.add(entity, places);
    let is_first = mail.add_run.is_some();
    if let Some(component) = world.get::<MessageComponent>(entity) {
        component.nth.store(nth, Ordering::Relaxed);
    }
    if is_first {
        world
            .commands()
            .queue(|world: &mut World| Mail::begin_run(world));
    }
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    let nth = component.nth.swap(NOWHERE, Ordering::Relaxed);
    let component = component.clone();
    if let Some(mut mail) = world.get_resource_mut::<Mail>() {
        mail.remove(&component, nth);
    }
}
