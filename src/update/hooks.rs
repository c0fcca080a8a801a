//! Hooks that keep the rosters in step with the world.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    UpdateComponent,
    run::{Member, UpdateRosters},
};
use crate::{
    clock::{ClockTable, NoSuchClock, find_clock, warn},
    missing_plugin::warn_without_plugin,
    owner::owner_of,
    roster::Intake,
};

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    enroll(world, entity);
}

/// Adds the `UpdateComponent` of `entity` for the next run. Does nothing without the plugin.
pub(crate) fn enroll(mut world: DeferredWorld, entity: Entity) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let owner = owner_of(world.entity(entity));
    let (clock, priority, callback) = (update.clock, update.priority, update.callback.clone());
    let clock = match find_clock(&mut world, entity, owner, clock) {
        None => return warn_without_plugin(&mut world, "an `UpdateComponent`"),
        Some(Ok(clock)) => clock,
        Some(Err(unknown)) => return refuse(&mut world, entity, unknown),
    };
    let Some(mut intake) = world.get_resource_mut::<Intake>() else {
        return;
    };
    let number = intake.next_number();
    let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>() else {
        return;
    };
    let member = Member {
        entity,
        callback,
        clock: clock.key,
        age: clock.age,
    };
    rosters.add(clock.cadence, priority, number, member);
    if let Some(update) = world.get::<UpdateComponent>(entity) {
        update.seat.set(clock.cadence, number);
    }
}

/// Removes an `UpdateComponent` whose clock does not exist, unless it has been replaced by then.
fn refuse(world: &mut DeferredWorld, entity: Entity, unknown: NoSuchClock) {
    warn(world, unknown);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| {
        let update = world.get::<UpdateComponent>(entity);
        if update.is_some_and(|update| update.seat.is_empty()) {
            world.entity_mut(entity).remove::<UpdateComponent>();
        }
    });
}

/// Moves the callbacks on clocks that have changed their cadence to the other schedule. They join in
/// its next run, as if they had just been inserted.
pub(crate) fn follow_clocks(world: &mut World) {
    let table = world.resource::<ClockTable>().clone();
    if !table.take_moved() {
        return;
    }
    let mut rosters = world.resource_mut::<UpdateRosters>();
    for (cadence, priority, member) in rosters.take_moved(&table) {
        let number = world.resource_mut::<Intake>().next_number();
        if let Some(update) = world.get::<UpdateComponent>(member.entity) {
            update.seat.set(cadence, number);
        }
        let mut rosters = world.resource_mut::<UpdateRosters>();
        rosters.add(cadence, priority, number, member);
    }
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(update) = world.get::<UpdateComponent>(entity) else {
        return;
    };
    let (seat, priority) = (update.seat.take(), update.priority);
    if let Some((cadence, number)) = seat
        && let Some(mut rosters) = world.get_resource_mut::<UpdateRosters>()
    {
        rosters.leave(cadence, priority, number);
    }
}
