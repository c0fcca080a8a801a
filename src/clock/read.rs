//! Reading the clocks: once per frame, and once per fixed step. And the hooks that write the table.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, mem};

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, world::DeferredWorld,
};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{
    Clock, Parent,
    id::{ClockError, ClockId},
    modifier::{SpeedModifiers, factor},
    params::OnClock,
    row::{BUILT_IN, Brakes, Cadence},
    table::ClockTable,
    time::{Speed, saturating_nanos},
};
use crate::report::report;

/// Reads the clocks of a cadence. `before` runs before the clocks advance if some have just arrived.
pub(crate) fn read_clocks(world: &mut World, cadence: Cadence, before: impl FnOnce(&mut World)) {
    let mut times = [(0, 0); BUILT_IN.len()];
    for &root in cadence.roots() {
        times[root as usize] = bevy_time(world, BUILT_IN[root as usize]);
    }
    end_arrival(world, before);
    world.resource_mut::<ClockTable>().advance(cadence, times);
}

/// Ends the wait of clocks for their parents, before time passes. `before` runs first if anything waits.
pub(crate) fn end_arrival(world: &mut World, before: impl FnOnce(&mut World)) {
    if !world.resource::<ClockTable>().is_settled() {
        before(world);
        settle_clocks(world);
        let missing = world.resource_mut::<ClockTable>().end_waiting();
        for error in missing {
            warn(&mut world.into(), error);
        }
    }
}

/// Puts the clocks that wait for their parents on those that have arrived, and reports the clocks that can't follow
/// theirs.
pub(crate) fn settle_clocks(world: &mut World) {
    let Some(mut table) = world.get_resource_mut::<ClockTable>() else {
        return;
    };
    for error in table.settle_waiting() {
        warn(&mut world.into(), error);
    }
}

/// Returns the time of Bevy that drives a built-in clock and its latest step, in nanoseconds.
pub(crate) fn bevy_time(world: &World, clock: ClockId) -> (u64, u64) {
    fn read<T: Default + Send + Sync + 'static>(world: &World) -> (u64, u64) {
        world.get_resource::<Time<T>>().map_or((0, 0), |time| {
            let (elapsed, delta) = (time.elapsed(), time.delta());
            (saturating_nanos(elapsed), saturating_nanos(delta))
        })
    }
    match clock {
        ClockId::Real => read::<Real>(world),
        ClockId::Virtual => read::<Virtual>(world),
        ClockId::Fixed => read::<Fixed>(world),
        ClockId::Frames | ClockId::Own(_) => (0, 0),
    }
}

impl ClockTable {
    /// Puts the clocks that were inserted before their parents on these, and returns why some can't. Those whose parents
    /// have not arrived still wait.
    fn settle_waiting(&mut self) -> Vec<ClockError> {
        let waiting = mem::take(&mut self.pending.waiting).into_iter();
        let errors = waiting.filter_map(|(key, (age, parent))| {
            self.rows.get_of_age(key, age)?;
            match self.set_parent(key, parent) {
                Err(ClockError::NoSuchClock(_)) => {
                    self.pending.waiting.insert(key, (age, parent));
                    None
                }
                result => result.err(),
            }
        });
        errors.collect()
    }

    /// Ends the wait of the other clocks, and returns an error for each.
    fn end_waiting(&mut self) -> Vec<ClockError> {
        let waiting = mem::take(&mut self.pending.waiting);
        let missing = waiting.into_values().filter_map(|(_, parent)| parent.id());
        missing.map(ClockError::NoSuchClock).collect()
    }

    /// Notes that the entity of a clock is disabled or enabled.
    pub(crate) fn set_disabled(&mut self, entity: Entity, disabled: bool) {
        if let Some(key) = self.key_of(entity) {
            self.change(key, |row| row.brakes.disabled = disabled);
        }
    }
}

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    add_clock(&mut world, entity);
}

/// Removes a clock. Observers of `Remove<Clock>` run before this hook, and still find the clock.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        table.remove(entity);
    }
}

/// Adds the clock of `entity` to the table, and reports what is wrong with it.
pub(crate) fn add_clock(world: &mut DeferredWorld, entity: Entity) {
    for error in put_clock(world, entity).into_iter().flatten() {
        warn(world, error);
    }
}

/// Adds the clock of `entity` to the table. If there is one already, it takes over the settings of the component.
/// Returns what is wrong with the speed and the parent.
///
/// Does nothing in a world without a table, such as one that holds a scene.
pub(super) fn put_clock(world: &mut DeferredWorld, entity: Entity) -> [Option<ClockError>; 2] {
    let Some(mut clock) = world.get::<Clock>(entity).cloned() else {
        return [None, None];
    };
    if let Parent::Default(_) = clock.parent
        && let Some(&OnClock(on)) = world.get(entity)
        && on != entity.into()
    {
        clock.parent = Parent::Default(on);
    }
    // Reflection and a scene can write any number.
    let speed = Speed::try_from(clock.speed);
    if speed.is_err() {
        clock.speed = 1.0;
    }
    let brakes = Brakes {
        factor: factor(world, entity),
        disabled: world.get::<Disabled>(entity).is_some(),
        ..Brakes::default()
    };
    let is_modified = world.get::<SpeedModifiers>(entity).is_some();
    let Some(mut table) = world.get_resource_mut::<ClockTable>() else {
        return [None, None];
    };
    let replaced = match table.key_of(entity) {
        None => {
            table.add(entity, &clock, brakes);
            table
                .pending
                .reparented
                .extend(is_modified.then_some(entity));
            Ok(())
        }
        Some(key) => {
            if speed.is_err() {
                clock.speed = table.rows.get(key).map_or(1.0, |row| row.settings.speed);
            }
            table.replace(key, clock.settings())
        }
    };
    [speed.err(), replaced.err()]
}

/// Puts the clock of an entity on the clock that a new [`OnClock`] names, unless it chose its parent.
pub(crate) fn follow_on_clock(world: &mut DeferredWorld, entity: Entity, on: ClockId) {
    let Some(mut table) = world.get_resource_mut::<ClockTable>() else {
        return;
    };
    if let Some(key) = table.key_of(entity)
        && let Some(mut settings) = table.rows.get(key).map(|row| row.settings)
        && let Parent::Default(parent) = &mut settings.parent
        && *parent != on
        && on != entity.into()
    {
        *parent = on;
        if let Err(error) = table.replace(key, settings) {
            warn(world, error);
        }
    }
}

/// Reports a problem with a clock to Bevy's error handler once commands can run.
pub(crate) fn warn(world: &mut DeferredWorld, error: impl Into<Box<dyn Error + Send + Sync>>) {
    let error: Box<dyn Error + Send + Sync> = error.into();
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| report::<Clock>(world, BevyError::warning(error)));
}
