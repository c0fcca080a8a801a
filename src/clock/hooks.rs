//! The hooks of [`Clock`], which keep the table in step with the world.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::Entity,
    error::BevyError,
    event::Event,
    lifecycle::HookContext,
    world::{DeferredWorld, World},
};

use super::{
    Clock, ClockId, NoSuchClock,
    table::{Cadence, ClockKey, ClockTable, Source},
};

/// A clock has ended: its [`Clock`] was removed or replaced, or its entity despawned.
#[derive(Event, Clone, Copy)]
pub(crate) struct ClockEnded {
    /// The key it had. No other clock has it yet.
    pub(crate) key: ClockKey,
}

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    add_clock(&mut world, entity);
}

pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let table = world.get_resource_mut::<ClockTable>();
    let Some(key) = table.and_then(|mut table| table.remove(entity)) else {
        return;
    };
    world.commands().queue(move |world: &mut World| {
        world.trigger(ClockEnded { key });
        world.flush();
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            table.vacate(key);
        }
    });
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
    let Some(mut table) = world.get_resource_mut::<ClockTable>() else {
        return;
    };
    if children.contains(&entity)
        || table.key_of(entity).is_some()
        || table.restore(entity, clock.read())
    {
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
