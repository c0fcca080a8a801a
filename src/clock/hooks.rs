//! The hooks of [`Clock`], which keep the table in sync with the world.

use alloc::vec::Vec;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    Clock, ClockId, NoSuchClock,
    read::source_now,
    table::{Cadence, ClockTable, Source},
};

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    add_clock(&mut world, entity);
}

/// Removes a clock. Observers of `Discard<Clock>` run before this hook, and still find the clock.
pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        table.remove(entity);
    }
}

/// Adds the clock of `entity` and its ancestors to the table, unless they are there already.
///
/// Does nothing in a world without a table, such as one that holds a scene.
pub(crate) fn add_clock(world: &mut DeferredWorld, entity: Entity) {
    add_after_parent(world, entity, &mut Vec::new());
}

fn add_after_parent(world: &mut DeferredWorld, entity: Entity, children: &mut Vec<Entity>) {
    let Some(&clock) = world.get::<Clock>(entity) else {
        return;
    };
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    if children.contains(&entity) || table.key_of(entity).is_some() {
        return;
    }
    if let Some(source) = table.built_in_source(entity) {
        let seen = source_now(world, source);
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            table.restore(entity, clock.read(), seen);
        }
        return;
    }
    if let ClockId::Own(parent) = clock.parent() {
        children.push(entity);
        add_after_parent(world, parent, children);
    }
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    let (source, cadence, seen) = match table.find(clock.parent()) {
        Ok((key, parent)) => {
            let now = table.read_now(world, key).map_or(0, |parent| parent.now);
            (Source::Clock(key), parent.cadence, now)
        }
        Err(error) => {
            warn(world, error);
            (Source::Missing, Cadence::Frame, 0)
        }
    };
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        table.add(entity, (source, cadence), clock.read(), seen);
    }
}

/// Reports a missing clock to Bevy's error handler once commands can run.
pub(crate) fn warn(world: &mut DeferredWorld, error: NoSuchClock) {
    let result = Err::<(), _>(BevyError::warning(error));
    world.commands().queue(move |_: &mut World| result);
}
