//! The hooks of [`Clock`], which keep the table in step with the world.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, mem};

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, world::DeferredWorld,
};

use super::{
    Clock, Place,
    built_in::BuiltInClocks,
    id::{ClockId, NoSuchClock},
    modifier::{SpeedModifiers, factor},
    row::{Age, Brakes, ClockKey, Source},
    shared::ClockTable,
    state::ClockState,
    table::Start,
};

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    add_clock(&mut world, entity);
}

/// Removes a clock. Observers of `Remove<Clock>` run before this hook, and still find the clock.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(clock) = world.get_mut::<Clock>(entity) {
        let refused = settle(clock);
        warn_all(&mut world, refused);
    }
    let table = world.get_resource::<ClockTable>();
    let state = table.and_then(|table| table.lock().remove(entity));
    // Whoever takes the component out of the world gets a clock that shows the same time.
    if let Some(state) = state
        && let Some(mut clock) = world.get_mut::<Clock>(entity)
    {
        *clock = state.into();
    }
}

pub(crate) fn on_disable_clock(disabled: On<Add<Disabled>>, table: Option<Res<ClockTable>>) {
    set_disabled(table, disabled.entity, true);
}

pub(crate) fn on_enable_clock(enabled: On<Remove<Disabled>>, table: Option<Res<ClockTable>>) {
    set_disabled(table, enabled.entity, false);
}

fn set_disabled(table: Option<Res<ClockTable>>, entity: Entity, disabled: bool) {
    if let Some(table) = table {
        let mut table = table.lock();
        if let Some(key) = table.key_of(entity) {
            table.change(key, |row| row.brakes.disabled = disabled);
        }
    }
}

/// Adds the clock of `entity` to the table. If there is a clock on `entity` already, it takes over
/// the settings of the new one.
///
/// Does nothing in a world without a table, such as one that holds a scene.
pub(crate) fn add_clock(world: &mut DeferredWorld, entity: Entity) {
    let Some(table) = world.get_resource::<ClockTable>().cloned() else {
        return;
    };
    match table.key_of(entity) {
        Some(key) => replace(world, &table, key, entity),
        None => add(world, &table, entity),
    }
}

/// Adds a clock to the table. If its parent has not arrived yet, the clock waits for it.
fn add(world: &mut DeferredWorld, table: &ClockTable, entity: Entity) {
    let Some((state, saved)) = world.get::<Clock>(entity).map(Clock::saved_state) else {
        return;
    };
    let brakes = Brakes {
        factor: factor(world, entity),
        disabled: world.get::<Disabled>(entity).is_some(),
        ..Brakes::default()
    };
    let start = start(world, table, state.parent);
    let is_orphan = start.is_err();
    let start = start.unwrap_or(Start::ORPHANED);
    let clock = table
        .lock()
        .add(Some(entity), (state, saved), brakes, start);
    if saved.behind > 0 {
        table.lock().fall_behind(clock.0, saved.behind, &**world);
    }
    if is_orphan && let ClockId::Own(parent) = state.parent {
        table.lock().load.wait(parent, clock);
    }
    attach(world, table, clock, entity);
    adopt_waiting(world, table, entity);
}

/// Puts the clocks that have waited for a parent under it.
fn adopt_waiting(world: &mut DeferredWorld, table: &ClockTable, parent: Entity) {
    let waiting = table.lock().load.take_waiting(parent);
    for child in waiting {
        let result = table.lock().adopt(child, parent, &**world);
        if let Err(error) = result {
            warn(world, error);
        }
    }
}

/// Reports the parents and the modified clocks that have not arrived since the previous run.
pub(crate) fn report_orphans(world: &mut World) {
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    let mut table = table.lock();
    let (orphans, mut modified) = (table.take_orphans(), mem::take(&mut table.load.modified));
    modified.sort_unstable();
    modified.dedup();
    modified.retain(|&clock| {
        table.key_of(clock).is_none() && world.get::<SpeedModifiers>(clock).is_some()
    });
    drop(table);
    let modified = modified.into_iter().map(|clock| NoSuchClock(clock.into()));
    for error in orphans.into_iter().chain(modified) {
        warn(&mut world.into(), error);
    }
}

/// Returns how a clock on this parent starts.
fn start(world: &World, table: &ClockTable, parent: ClockId) -> Result<Start, NoSuchClock> {
    let mut table = table.lock();
    let (key, row) = table.find(parent)?;
    let (source, root) = (Source::Clock(key, row.age), row.root);
    let seen = table.live(key, world).map_or(0, |parent| parent.now);
    Ok(Start {
        source,
        root,
        seen,
        moment: table.moment(key, world),
        run: table.run_reading(key).unwrap_or_default(),
    })
}

/// Lets a clock take over the settings of the component that was inserted over it.
fn replace(world: &mut DeferredWorld, table: &ClockTable, key: ClockKey, entity: Entity) {
    let Some(age) = table.lock().get(key).map(|row| row.age) else {
        return;
    };
    if let Some(settings) = world
        .get::<Clock>(entity)
        .and_then(|clock| clock.overwrites(table, key, age))
    {
        take_over(world, table, (key, age), settings);
    }
}

/// Lets clocks take over the settings of components that were overwritten in place.
pub(crate) fn adopt_overwritten(world: &mut World) {
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    let mut overwritten = table.lock().take_overwritten();
    if overwritten.is_empty() {
        return;
    }
    let table = table.clone();
    let mut found = Vec::new();
    // All are read before the first changes: two clocks may have been swapped.
    let mut next = 0;
    while let Some(&(key, age)) = overwritten.get(next) {
        next += 1;
        if let Some(clock) = component_mut(world, &table, key, age) {
            let refused = settle(clock);
            warn_all(&mut world.into(), refused);
        }
        let Some(clock) = component_of(world, &table, key, age) else {
            continue;
        };
        if let Some(settings) = clock.overwrites(&table, key, age) {
            found.push(((key, age), settings));
            if let Place::Table(other) = &clock.place
                && !overwritten.contains(&(other.key, other.age))
            {
                overwritten.push((other.key, other.age));
            }
        }
    }
    for (place, settings) in found {
        take_over(&mut world.into(), &table, place, settings);
    }
}

/// Returns the component of a clock.
fn component_of<'a>(
    world: &'a World,
    table: &ClockTable,
    key: ClockKey,
    age: Age,
) -> Option<&'a Clock> {
    let entity = table.lock().get_of_age(key, age)?.entity;
    match entity {
        Some(entity) => world.get(entity),
        None => world.get_resource::<BuiltInClocks>()?.0.get(key as usize),
    }
}

/// Returns the component of a clock.
fn component_mut<'a>(
    world: &'a mut World,
    table: &ClockTable,
    key: ClockKey,
    age: Age,
) -> Option<Mut<'a, Clock>> {
    let entity = table.lock().get_of_age(key, age)?.entity;
    match entity {
        Some(entity) => world.get_mut(entity),
        None => {
            let clocks = world.get_resource_mut::<BuiltInClocks>()?;
            clocks.filter_map_unchanged(|clocks| clocks.0.get_mut(key as usize))
        }
    }
}

fn take_over(
    world: &mut DeferredWorld,
    table: &ClockTable,
    (key, age): (ClockKey, Age),
    settings: ClockState,
) {
    let result = table.lock().take_over(key, settings);
    if let Err(error) = result {
        warn(world, error);
    }
    let entity = table.lock().get(key).and_then(|row| row.entity);
    match entity {
        Some(entity) => attach(world, table, (key, age), entity),
        None => {
            if let Some(mut clocks) = world.get_resource_mut::<BuiltInClocks>() {
                clocks.0[key as usize] = table.handle(key, age).into();
            }
        }
    }
}

/// Makes a component the handle of its clock.
fn attach(
    world: &mut DeferredWorld,
    table: &ClockTable,
    (key, age): (ClockKey, Age),
    entity: Entity,
) {
    if let Some(mut clock) = world.get_mut::<Clock>(entity) {
        let refused = settle(clock.reborrow());
        *clock.bypass_change_detection() = table.handle(key, age).into();
        warn_all(world, refused);
    }
}

/// The reasons why changes by reflection were refused.
type Refused = Vec<Box<dyn Error + Send + Sync>>;

/// Lets a component take over the changes made by reflection, and forget what it has shown.
fn settle(mut clock: Mut<Clock>) -> Refused {
    let clock = clock.bypass_change_detection();
    clock.settle();
    #[cfg(feature = "bevy_reflect")]
    return clock.fields.take_refused();
    #[cfg(not(feature = "bevy_reflect"))]
    Refused::new()
}

fn warn_all(world: &mut DeferredWorld, errors: Refused) {
    for error in errors {
        warn(world, error);
    }
}

impl Clock {
    /// Returns the settings of this component, unless it is the handle of this clock.
    fn overwrites(&self, table: &ClockTable, key: ClockKey, age: Age) -> Option<ClockState> {
        match &self.place {
            Place::Table(handle) if handle.is_of(table, key, age) => None,
            _ => Some(self.state()),
        }
    }
}

/// Reports a problem with a clock to Bevy's error handler once commands can run.
pub(crate) fn warn(world: &mut DeferredWorld, error: impl Into<Box<dyn Error + Send + Sync>>) {
    let error: Box<dyn Error + Send + Sync> = error.into();
    let result = Err::<(), _>(BevyError::warning(error));
    world.commands().queue(move |_: &mut World| result);
}
