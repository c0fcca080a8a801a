//! The hooks that keep the rosters in step with the world.

use bevy_ecs::{
    entity::Entity,
    lifecycle::HookContext,
    world::{DeferredWorld, World},
};

use super::{
    UpdateComponent, UpdateOf, UpdateRun,
    run::{Added, Member},
};
use crate::timer::{Scope, Timelines, find_clock, warn};

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    enroll(world, entity);
}

/// Takes the `UpdateComponent` of `entity` in, for the next run. Without a plugin nothing happens.
pub(crate) fn enroll(mut world: DeferredWorld, entity: Entity) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let owner = world.get::<UpdateOf>(entity).map_or(entity, |of| of.0);
    let (told, priority, call) = (update.clock, update.priority, update.call.clone());
    let clock = match find_clock(&mut world, entity, owner, told) {
        None => return,
        Some(Ok(clock)) => clock,
        Some(Err(unknown)) => {
            warn(&mut world, unknown);
            let mut commands = world.commands();
            commands.queue(move |world: &mut World| {
                let update = world.get::<UpdateComponent>(entity);
                if update.is_some_and(|update| update.seat.get().is_none()) {
                    world.entity_mut(entity).remove::<UpdateComponent>();
                }
            });
            return;
        }
    };
    let Some(mut run) = world.get_resource_mut::<UpdateRun>() else {
        return;
    };
    let add_run = run.add_run.take();
    let is_fixed = clock.scope == Scope::Fixed;
    let nth = run.add(Added {
        priority,
        clock,
        member: Member {
            entity,
            call,
            line: clock.line,
            age: clock.age,
        },
    });
    if let Some(update) = world.get::<UpdateComponent>(entity) {
        update.seat.set(0, nth);
    }
    let timelines = world.get_resource_mut::<Timelines>().filter(|_| is_fixed);
    let add_fixed_run = timelines.and_then(|mut timelines| timelines.take_fixed_run());
    for add_run in add_run.into_iter().chain(add_fixed_run) {
        world.commands().queue(add_run);
    }
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let Some((_, nth)) = update.seat.take() else {
        return;
    };
    let priority = update.priority;
    if let Some(mut run) = world.get_resource_mut::<UpdateRun>() {
        run.remove(priority, nth);
    }
}
