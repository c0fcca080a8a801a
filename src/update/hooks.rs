//! Hooks that keep the rosters in step with the world.

use bevy_ecs::{
    entity::Entity,
    lifecycle::HookContext,
    world::{DeferredWorld, World},
};

use super::{
    UpdateComponent, UpdateOf,
    run::{Member, UpdateRosters},
};
use crate::{
    clock::UnknownClock,
    timer::{Scope, Timelines, find_clock, warn},
};

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    enroll(world, entity);
}

/// Adds the `UpdateComponent` of `entity` for the next run. Without the plugin nothing happens.
pub(crate) fn enroll(mut world: DeferredWorld, entity: Entity) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let owner = world.get::<UpdateOf>(entity).map_or(entity, |of| of.0);
    let (clock, priority, callback) = (update.clock, update.priority, update.callback.clone());
    let clock = match find_clock(&mut world, entity, owner, clock) {
        None => return,
        Some(Ok(clock)) => clock,
        Some(Err(unknown)) => return refuse(&mut world, entity, unknown),
    };
    let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>() else {
        return;
    };
    let member = Member {
        entity,
        callback,
        line: clock.line,
        age: clock.age,
    };
    let (row, number) = rosters.add(clock.scope, priority, member);
    if let Some(update) = world.get::<UpdateComponent>(entity) {
        update.seat.set(row, number);
    }
    if clock.scope == Scope::Fixed
        && let Some(mut timelines) = world.get_resource_mut::<Timelines>()
        && let Some(add_fixed_run) = timelines.take_fixed_run()
    {
        world.commands().queue(add_fixed_run);
    }
}

/// Removes an `UpdateComponent` whose clock does not exist, unless it is replaced before.
fn refuse(world: &mut DeferredWorld, entity: Entity, unknown: UnknownClock) {
    warn(world, unknown);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| {
        let update = world.get::<UpdateComponent>(entity);
        if update.is_some_and(|update| update.seat.get().is_none()) {
            world.entity_mut(entity).remove::<UpdateComponent>();
        }
    });
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let (seat, priority) = (update.seat.take(), update.priority);
    if let Some((row, number)) = seat
        && let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>()
    {
        rosters.leave(row, priority, number);
    }
}
