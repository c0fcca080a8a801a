//! The hooks of [`Clock`], which keep the table in sync with the world.

use alloc::vec::Vec;
use core::iter;

use bevy_ecs::{entity::EntityHashSet, lifecycle::HookContext, prelude::*, world::DeferredWorld};

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
    if !world.contains_resource::<ClockTable>() {
        return;
    }
    for clock in missing_lineage(world, entity).into_iter().rev() {
        add(world, clock);
    }
}

/// Returns the clock of `entity` and its ancestors, up to the first that is in the table. In a
/// cycle, stops at the first clock seen twice.
fn missing_lineage(world: &DeferredWorld, entity: Entity) -> Vec<Entity> {
    let table = world.resource::<ClockTable>();
    let mut seen = EntityHashSet::default();
    let parent = |&child: &Entity| match world.get::<Clock>(child)?.parent() {
        _ if table.built_in_source(child).is_some() => None,
        ClockId::Own(parent) => Some(parent),
        _ => None,
    };
    iter::successors(Some(entity), parent)
        .take_while(|&clock| {
            let is_missing = world.get::<Clock>(clock).is_some() && table.key_of(clock).is_none();
            is_missing && seen.insert(clock)
        })
        .collect()
}

/// Adds a clock whose parent has been added, if it exists.
fn add(world: &mut DeferredWorld, entity: Entity) {
    let table = world.resource::<ClockTable>();
    let Some(&clock) = world.get::<Clock>(entity) else {
        return;
    };
    if let Some(source) = table.built_in_source(entity) {
        let seen = source_now(world, source);
        let mut table = world.resource_mut::<ClockTable>();
        return table.restore(entity, clock.read(), seen);
    }
    let (source, cadence, seen) = match table.find(clock.parent()) {
        Ok((key, parent)) => {
            let now = table.read_now(world, key).map_or(0, |parent| parent.now);
            (Source::Clock(key, parent.age), parent.cadence, now)
        }
        Err(error) => {
            warn(world, error);
            (Source::Missing, Cadence::Frame, 0)
        }
    };
    let mut table = world.resource_mut::<ClockTable>();
    table.add(entity, (source, cadence), clock.read(), seen);
}

/// Reports a missing clock to Bevy's error handler once commands can run.
pub(crate) fn warn(world: &mut DeferredWorld, error: NoSuchClock) {
    let result = Err::<(), _>(BevyError::warning(error));
    world.commands().queue(move |_: &mut World| result);
}
