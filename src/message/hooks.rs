//! The hooks that keep the rosters in step with the world.

use bevy_ecs::{entity::Entity, lifecycle::HookContext, world::DeferredWorld};
use smallvec::SmallVec;

use super::{Follows, Mail, MessageComponent, mail::Places, packet::Topic, written::Writing};

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    follow(world, entity);
}

/// Takes the `MessageComponent` of `entity` in, for the next run. Without a plugin nothing happens.
pub(crate) fn follow(mut world: DeferredWorld, entity: Entity) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    let follows = component.follows.clone();
    let mut places = Places::new();
    for Follows {
        topic,
        handler,
        written: of,
        ..
    } in follows
    {
        let next = of.map_or(0, |written| (written.start)(&world));
        let Some(mut mail) = world.get_resource_mut::<Mail>() else {
            return;
        };
        let writing = || of.map(|of| Writing::new(of, next));
        places.push((mail.expect(topic, writing), handler));
    }
    let Some(mut mail) = world.get_resource_mut::<Mail>() else {
        return;
    };
    let nth = mail.add(entity, places);
    let is_first = mail.add_run.is_some();
    if let Some(component) = world.get::<MessageComponent>(entity) {
        component.seat.set(0, nth);
    }
    if is_first {
        world.commands().queue(Mail::begin_run);
    }
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(component) = world.get::<MessageComponent>(entity) else {
        return;
    };
    let Some((_, nth)) = component.seat.take() else {
        return;
    };
    let follows = component.follows.iter();
    let topics: SmallVec<[Topic; 4]> = follows.map(|follows| follows.topic).collect();
    if let Some(mut mail) = world.get_resource_mut::<Mail>() {
        mail.remove(&topics, nth);
    }
}
