//! Reading the clocks: once per frame, and once per fixed step. And the hooks that keep the table in
//! step with the world.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, mem};

use bevy_ecs::{
    change_detection::{ContiguousComponentTicksRef, ContiguousRef, Tick as ChangeTick},
    entity_disabling::Disabled,
    lifecycle::HookContext,
    prelude::*,
    system::SystemState,
    world::DeferredWorld,
};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{
    Clock, Jump, Settings,
    id::{ClockError, ClockId},
    load::SavedTime,
    modifier::factor,
    params::{OnClock, component, with_component},
    row::{BUILT_IN, Brakes, Cadence, ClockKey, Driver},
    table::ClockTable,
    time::{Speed, saturating_nanos},
};
use crate::report::report;

/// The systems that read the clocks. They run after Bevy's time systems.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReadClocks;

/// The components of the clocks on entities.
pub(crate) type ClockComponents<'w, 's> =
    Query<'w, 's, (Entity, Ref<'static, Clock>, Has<Disabled>)>;

/// Returns `true` if the component of one of the `own` clocks on entities may have been written since the query last
/// ran. The query may miss some, because the game hides their entities.
pub(crate) fn is_any_written(clocks: &ClockComponents, own: usize) -> bool {
    let Ok(groups) = clocks.contiguous_iter() else {
        return true;
    };
    let mut seen = 0;
    for (entities, clocks, _) in groups {
        if ticks_if_written(clocks).is_some() {
            return true;
        }
        seen += entities.len();
    }
    seen != own
}

/// Returns the change ticks of a group of clocks, or `None` if nothing was written since the query last ran. That costs
/// one look.
fn ticks_if_written<'w>(
    clocks: ContiguousRef<'w, Clock>,
) -> Option<ContiguousComponentTicksRef<'w>> {
    let (_, ticks) = ContiguousRef::split(clocks);
    (ticks.summary_tick_is_changed() != Some(false)).then_some(ticks)
}

/// Finds the clocks whose components were written.
pub(crate) type EditedClocks = SystemState<(
    ClockComponents<'static, 'static>,
    ResMut<'static, ClockTable>,
)>;

/// Reads the clocks of a cadence. `before_changes` runs before changes of clocks are taken over.
pub(crate) fn read_clocks(
    world: &mut World,
    cadence: Cadence,
    edited: &mut EditedClocks,
    before_changes: impl FnOnce(&mut World),
) -> Result {
    let mut times = [(0, 0); BUILT_IN.len()];
    for &root in cadence.roots() {
        times[root as usize] = bevy_time(world, BUILT_IN[root as usize]);
    }
    let now = world.change_tick();
    let (own, mut table) = edited.get_mut(world)?;
    let edited = table.take_edited(&own, now);
    if edited.is_empty() && table.is_settled() {
        table.advance(cadence, times);
        return Ok(());
    }
    before_changes(world);
    let skipped = take_over(world, edited);
    let mut table = world.resource_mut::<ClockTable>();
    table.end_load();
    table.advance(cadence, times);
    for key in skipped {
        table.note_skip(key, cadence);
    }
    Ok(())
}

/// Takes over the changes of all components. The changes count from the time that the clocks show.
pub(crate) fn take_changes(world: &mut World, edited: &mut EditedClocks) -> Result {
    let now = world.change_tick();
    let (own, mut table) = edited.get_mut(world)?;
    let edited = table.take_edited(&own, now);
    if !edited.is_empty() || !table.is_settled() {
        take_over(world, edited);
    }
    Ok(())
}

/// Takes over the changes of these clocks, and of those that were loaded. Returns the clocks that have skipped time.
fn take_over(world: &mut World, edited: Vec<ClockKey>) -> Vec<ClockKey> {
    world.resource_mut::<ClockTable>().order_loaded();
    take_settings_of(world, edited.iter().copied());
    for error in world.resource_mut::<ClockTable>().end_waiting() {
        warn(&mut world.into(), error);
    }
    world.resource_mut::<ClockTable>().adopt();
    let jumps = edited.into_iter().filter_map(|key| {
        let enter = |clock: &mut Clock| {
            clock.enter_world();
            mem::take(&mut clock.jump)
        };
        let jump = with_component(world, key, enter)?;
        (jump != Jump::default()).then_some((key, jump))
    });
    let jumps: Vec<_> = jumps.collect();
    let mut table = world.resource_mut::<ClockTable>();
    // All jump from the time that they show. Then each follows the jump of its parent.
    jumps.iter().for_each(|&(key, _)| table.settle(key));
    for &(key, jump) in &jumps {
        table.change_settled(key, |row| jump.apply(&mut row.time));
    }
    let skipped = jumps.iter().filter(|(_, jump)| !jump.skip_by.is_zero());
    skipped.map(|&(key, _)| key).collect()
}

/// Brings loaded clocks into their order. Lets clocks take over the settings of their components before the
/// next reading, so that they can be saved.
#[cfg(feature = "serialize")]
pub(crate) fn take_settings(world: &mut World) {
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        table.order_loaded();
        let clocks: Vec<_> = table.rows.iter().map(|(key, _)| key).collect();
        take_settings_of(world, clocks);
        world.resource_mut::<ClockTable>().adopt();
    }
}

/// Returns `true` if the component of the clock on an entity was written since the last reading.
pub(super) fn is_written(world: &World, table: &ClockTable, entity: Entity) -> bool {
    let now = world.read_change_tick();
    let clock = world.entity(entity).get_ref::<Clock>();
    clock.is_some_and(|clock| clock.last_changed().is_newer_than(table.taken, now))
}

/// Lets clocks take over the settings of their components. A component gets the settings back that its
/// clock can't take.
fn take_settings_of(world: &mut World, clocks: impl IntoIterator<Item = ClockKey>) {
    let table = world.resource::<ClockTable>();
    let edited = clocks.into_iter().filter_map(|key| {
        let (row, clock) = table.rows.get(key).zip(component(world, key))?;
        let settings = clock.settings();
        (settings != row.settings).then_some((key, settings))
    });
    let mut edited: Vec<_> = edited.collect();
    let mut table = world.resource_mut::<ClockTable>();
    for error in table.take_all_settings(&mut edited) {
        warn(&mut world.into(), error);
    }
    for (key, settings) in edited {
        let row = world.resource::<ClockTable>().rows.get(key);
        let kept = row.map(|row| row.settings);
        if let Some(kept) = kept.filter(|&kept| kept != settings) {
            with_component(world, key, |clock| clock.set_settings(kept));
        }
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
    /// Returns the clocks whose components were written since the last time, up to the tick `now`.
    fn take_edited(&mut self, own: &ClockComponents, now: ChangeTick) -> Vec<ClockKey> {
        let mut edited = Vec::new();
        let mut note = |clock: ClockId| {
            let found = self.find(clock).ok();
            edited.extend(found.map(|found| found.key));
        };
        // The frame and the fixed schedule both look for changes.
        let is_new = |changed: ChangeTick| changed.is_newer_than(self.taken, now);
        if self.own_clocks() > 0 {
            match own.contiguous_iter() {
                Ok(groups) => {
                    for (entities, clocks, _) in groups {
                        if let Some(ticks) = ticks_if_written(clocks) {
                            let clocks = entities.iter().zip(ticks.changed());
                            let edited = clocks.filter(|&(_, &changed)| is_new(changed));
                            edited.for_each(|(&entity, _)| note(entity.into()));
                        }
                    }
                }
                // The game hides entities with a component that is not stored in tables.
                Err(_) => {
                    let edited = own.iter();
                    let edited = edited.filter(|(_, clock, _)| is_new(clock.last_changed()));
                    edited.for_each(|(entity, ..)| note(entity.into()));
                }
            }
        }
        let edits = self.changes.edits();
        if edits != self.taken_edits {
            self.edited().for_each(note);
        }
        (self.taken, self.taken_edits) = (now, edits);
        edited
    }

    /// Returns the built-in clocks whose components were edited.
    fn edited(&self) -> impl Iterator<Item = ClockId> {
        let clocks = (0..).zip(&self.built_in);
        let edited = clocks.filter(|&(key, clock)| {
            let row = self.rows.get(key);
            row.is_some_and(|row| clock.is_edited(row))
        });
        edited.map(|(key, _)| BUILT_IN[key as usize])
    }

    /// Lets clocks take over settings in the order of the clocks, except for invalid parents and speeds.
    pub(super) fn take_all_settings(
        &mut self,
        edited: &mut [(ClockKey, Settings)],
    ) -> Vec<ClockError> {
        edited.sort_unstable_by_key(|&(key, _)| self.rows.order(key));
        // All are settled before the first changes, because one may drive another.
        for &(key, _) in &*edited {
            self.settle(key);
        }
        let edited = edited.iter();
        let errors = edited.flat_map(|&(key, settings)| self.take_settings(key, settings));
        errors.flatten().collect()
    }

    /// Lets a clock take over settings, except for an invalid parent or speed.
    fn take_settings(&mut self, key: ClockKey, settings: Settings) -> [Option<ClockError>; 2] {
        let Some(row) = self.rows.get(key) else {
            return [None, None];
        };
        // The parent of a built-in clock is no setting.
        let moves = row.driver != Driver::Bevy && settings.parent != row.settings.parent;
        let moved = match moves {
            true => self.set_parent(key, settings.parent),
            false => Ok(()),
        };
        let speed = Speed::try_from(settings.speed);
        self.change(key, |row| {
            row.settings.paused = settings.paused;
            if speed.is_ok() {
                row.settings.speed = settings.speed;
            }
        });
        [moved.err(), speed.err()]
    }

    /// Puts clocks without a parent on their parents that exist by now.
    pub(super) fn adopt(&mut self) {
        if self.rows.orphans == 0 {
            return;
        }
        let orphans = self.rows.iter();
        let orphans = orphans.filter(|(_, row)| row.driver == Driver::Missing);
        let orphans = orphans.map(|(key, row)| (row.order, key, row.settings.parent));
        let mut orphans: Vec<_> = orphans.collect();
        orphans.sort_unstable_by_key(|&(order, ..)| order);
        for (_, key, parent) in orphans {
            self.set_parent(key, parent).ok();
        }
    }

    /// Returns why the clocks that were added before their parents still have none.
    fn end_waiting(&mut self) -> Vec<ClockError> {
        let waiting = mem::take(&mut self.load.waiting).into_iter();
        let errors = waiting.filter_map(|(key, age)| {
            let row = self.rows.get_of_age(key, age)?;
            let is_orphan = row.driver == Driver::Missing;
            let parent = row.settings.parent;
            is_orphan.then(|| self.set_parent(key, parent).err())?
        });
        errors.collect()
    }
}

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    add_clock(&mut world, entity);
}

/// Removes a clock. Observers of `Remove<Clock>` run before this hook, and still find the clock.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let table = world.get_resource_mut::<ClockTable>();
    let time = table.and_then(|mut table| table.remove(entity));
    // Whoever takes the component out of the world gets a clock that starts with the same time.
    if let Some(time) = time
        && let Some(mut clock) = world.get_mut::<Clock>(entity)
    {
        clock.leave_world(SavedTime::new(&time, None));
    }
}

/// Adds the clock of `entity` to the table. If there is a clock on `entity` already, the next reading
/// takes the settings of the new one over.
///
/// Does nothing in a world without a table, such as one that holds a scene.
pub(crate) fn add_clock(world: &mut DeferredWorld, entity: Entity) {
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    let is_there = table.key_of(entity).is_some();
    let brakes = Brakes {
        factor: factor(world, entity),
        disabled: world.get::<Disabled>(entity).is_some(),
        ..Brakes::default()
    };
    let on = world.get::<OnClock>(entity).map(|on| on.0);
    let Some(mut clock) = world.get_mut::<Clock>(entity) else {
        return;
    };
    let clock = clock.bypass_change_detection();
    let start = clock.enter_world();
    if let Some(on) = on
        && clock.parent == ClockId::default()
        && on != entity.into()
        && !start.names_parent
    {
        clock.parent = on;
    }
    if is_there {
        return;
    }
    let speed = Speed::try_from(clock.speed());
    if speed.is_err() {
        clock.set_speed(1.0);
    }
    let settings = clock.settings();
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        table.add(entity, settings, brakes, start);
    }
    if let Err(error) = speed {
        warn(world, error);
    }
}

impl ClockTable {
    /// Notes that the entity of a clock is disabled or enabled.
    pub(crate) fn set_disabled(&mut self, entity: Entity, disabled: bool) {
        if let Some(key) = self.key_of(entity) {
            self.change(key, |row| row.brakes.disabled = disabled);
        }
    }
}

/// Reports a problem with a clock to Bevy's error handler once commands can run.
pub(crate) fn warn(world: &mut DeferredWorld, error: impl Into<Box<dyn Error + Send + Sync>>) {
    let error: Box<dyn Error + Send + Sync> = error.into();
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| report::<Clock>(world, BevyError::warning(error)));
}

#[cfg(test)]
mod tests {
    use bevy_app::App;
    use bevy_ecs::change_detection::Tick;
    use bevy_time::TimePlugin;

    use super::*;
    use crate::DuePlugin;

    /// Ticks wrap around, and an old one can seem to lie in the future.
    #[test]
    fn an_edit_after_ages_without_one_is_taken_over() {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()));
        let own = app.world_mut().spawn(Clock::new()).id();
        app.update();
        let world = app.world_mut();
        let soon = world.change_tick().get().wrapping_add(1000);
        world.resource_mut::<ClockTable>().taken = Tick::new(soon);
        app.update();
        let world = app.world_mut();
        let mut clock = world.get_mut::<Clock>(own).expect("it is there");
        clock.set_speed(2.0);
        for _ in 0..2000 {
            world.increment_change_tick();
        }
        app.update();
        let table = app.world().resource::<ClockTable>();
        let row = table.key_of(own).and_then(|key| table.rows.get(key));
        assert_eq!(row.map(|row| row.settings.speed), Some(2.0));
    }
}
