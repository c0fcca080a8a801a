//! Reading the clocks: once per frame, and once per fixed step. And the hooks that keep the table in
//! step with the world.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, mem};

use bevy_ecs::{
    change_detection::Tick, entity_disabling::Disabled, lifecycle::HookContext, prelude::*,
    system::SystemParam, world::DeferredWorld,
};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{
    Clock, Jump, Settings,
    id::{ClockError, ClockId},
    load::SavedTime,
    modifier::{SpeedModifiers, factor},
    params::BuiltInClocks,
    row::{Age, BUILT_IN, Brakes, Cadence, ClockKey, Driver, Row, built_in_id},
    speed::Speed,
    state::saturating_nanos,
    table::ClockTable,
};

/// The systems that read the clocks. They run after Bevy's time systems.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReadClocks;

/// Reads the clocks of frames.
pub(crate) fn read_frame_clocks(mut clocks: Reader) {
    clocks.read(Cadence::Frame);
}

/// Reads the clocks of the fixed schedule.
pub(crate) fn read_fixed_clocks(mut clocks: Reader) {
    clocks.read(Cadence::FixedStep);
}

/// Everything that a reading looks at and changes.
#[derive(SystemParam)]
pub(crate) struct Reader<'w, 's> {
    table: ResMut<'w, ClockTable>,
    built_in: ResMut<'w, BuiltInClocks>,
    changed: Query<'w, 's, (Entity, &'static mut Clock), (Changed<Clock>, Allow<Disabled>)>,
    modified: Query<'w, 's, (), (With<SpeedModifiers>, Allow<Disabled>)>,
    times: Times<'w>,
    commands: Commands<'w, 's>,
}

/// Bevy's clocks.
#[derive(SystemParam)]
struct Times<'w> {
    real: Option<Res<'w, Time<Real>>>,
    game: Option<Res<'w, Time<Virtual>>>,
    fixed: Option<Res<'w, Time<Fixed>>>,
}

impl Reader<'_, '_> {
    fn read(&mut self, cadence: Cadence) {
        self.take_changes();
        let mut modified = mem::take(&mut self.table.load.modified);
        modified.sort_unstable();
        modified.dedup();
        for clock in modified {
            if self.table.key_of(clock).is_none() && self.modified.contains(clock) {
                report(&mut self.commands, ClockError::NoSuchClock(clock.into()));
            }
        }
        self.table.end_load();
        let times = &self.times;
        self.table.advance(cadence, |root| times.of(root));
    }

    /// Takes over the changes of all components. They count from the time that the clocks show.
    pub(crate) fn take_changes(&mut self) {
        let Self {
            table,
            built_in,
            changed,
            commands,
            ..
        } = self;
        let mut changes = Vec::new();
        for (entity, mut clock) in changed.iter_mut() {
            let written = clock.last_changed();
            let clock = clock.bypass_change_detection();
            changes.extend(table.change_of(ClockId::Own(entity), clock, written));
        }
        if built_in.is_changed() {
            let written = built_in.last_changed();
            let clocks = &mut built_in.bypass_change_detection().0;
            for (id, clock) in BUILT_IN.into_iter().zip(clocks) {
                changes.extend(table.change_of(id, clock, written));
            }
        }
        table.order_loaded();
        let mut refused = table.take_settings(&mut changes);
        refused.extend(table.adopt_waiting());
        table.jump(&changes);
        for (clock, error) in refused {
            report(commands, error);
            let mut own = match clock {
                ClockId::Own(entity) => changed.get_mut(entity).ok(),
                _ => None,
            };
            let own = own.as_mut().map(|(_, own)| own.bypass_change_detection());
            let built_in = built_in.bypass_change_detection();
            if let Some(component) = own.or_else(|| built_in.get_mut(clock)) {
                table.undo(clock, component);
            }
        }
    }
}

impl Times<'_> {
    /// Returns the time of a built-in clock and its latest step, in nanoseconds.
    fn of(&self, clock: ClockKey) -> (u64, u64) {
        match built_in_id(clock) {
            Some(ClockId::Real) => read(self.real.as_deref()),
            Some(ClockId::Virtual) => read(self.game.as_deref()),
            Some(ClockId::Fixed) => read(self.fixed.as_deref()),
            _ => (0, 0),
        }
    }
}

fn read<T: Default>(time: Option<&Time<T>>) -> (u64, u64) {
    let read = |time: &Time<T>| {
        let (elapsed, delta) = (time.elapsed(), time.delta());
        (saturating_nanos(elapsed), saturating_nanos(delta))
    };
    time.map_or((0, 0), read)
}

/// Returns the time that Bevy shows for a built-in clock, in nanoseconds.
pub(crate) fn elapsed(world: &World, clock: ClockKey) -> u64 {
    let (elapsed, _) = match built_in_id(clock) {
        Some(ClockId::Real) => read::<Real>(world.get_resource()),
        Some(ClockId::Virtual) => read::<Virtual>(world.get_resource()),
        Some(ClockId::Fixed) => read::<Fixed>(world.get_resource()),
        _ => (0, 0),
    };
    elapsed
}

/// The settings that a component asks of its clock.
struct Change {
    age: Age,
    key: ClockKey,
    clock: ClockId,
    settings: Settings,
    jump: Jump,
}

/// A change that a clock can't take.
type Refused = (ClockId, ClockError);

impl ClockTable {
    /// Returns what a component has changed, and takes its jump.
    fn change_of(&mut self, id: ClockId, clock: &mut Clock, written: Tick) -> Option<Change> {
        let key = self.find(id).ok()?.key;
        let row = self.rows.get_mut(key)?;
        let is_written = mem::replace(&mut row.written, written) != written;
        clock.enter_world();
        let (settings, jump) = (clock.settings(), mem::take(&mut clock.jump));
        // The parent of an orphan may exist again.
        let is_orphan = row.driver == Driver::Missing;
        let is_changed = settings != row.settings || is_orphan && is_written;
        (is_changed || jump != Jump::default()).then_some(Change {
            age: row.age,
            key,
            clock: id,
            settings,
            jump,
        })
    }

    /// Lets clocks take over the settings of their components, the oldest clock first.
    fn take_settings(&mut self, changes: &mut [Change]) -> Vec<Refused> {
        changes.sort_unstable_by_key(|change| change.age);
        // All are settled before the first changes, because one may drive another.
        for change in &*changes {
            self.settle(change.key);
        }
        let refused = changes.iter().flat_map(|change| {
            let errors = self.take_settings_of(change).into_iter().flatten();
            errors.map(|error| (change.clock, error))
        });
        refused.collect()
    }

    fn jump(&mut self, changes: &[Change]) {
        for &Change { key, jump, .. } in changes {
            if jump != Jump::default() {
                self.change(key, |row| jump.apply(&mut row.time));
            }
        }
    }

    /// Gives a component back the settings that its clock has kept.
    fn undo(&self, clock: ClockId, component: &mut Clock) {
        let key = self.find(clock).map(|found| found.key);
        if let Some(row) = key.ok().and_then(|key| self.rows.get(key)) {
            component.set_settings(row.settings);
        }
    }

    /// Lets a clock take over settings, except for an invalid parent or speed.
    fn take_settings_of(&mut self, change: &Change) -> [Option<ClockError>; 2] {
        let &Change { key, settings, .. } = change;
        let Some(&Row {
            settings: before,
            driver,
            ..
        }) = self.rows.get(key)
        else {
            return [None, None];
        };
        let is_changed = settings.parent != before.parent;
        let is_there = || self.find(settings.parent).is_ok();
        let moves = match driver {
            // The parent of a built-in clock is no setting.
            Driver::Bevy => false,
            Driver::Clock(_) | Driver::Waiting => is_changed,
            Driver::Missing => is_changed || is_there(),
        };
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

    /// Puts the clocks that have waited for a parent under it. A clock whose parent has not arrived
    /// waits no longer.
    fn adopt_waiting(&mut self) -> Vec<Refused> {
        let mut refused = Vec::new();
        for (key, age) in mem::take(&mut self.load.waiting) {
            if let Some(row) = self.rows.get_of_age(key, age)
                && row.driver == Driver::Waiting
                && let Some(entity) = row.entity
                && let Err(error) = self.set_parent(key, row.settings.parent)
            {
                self.rows.set_driver(key, Driver::Missing);
                refused.push((entity.into(), error));
            }
        }
        refused
    }
}

/// Lets clocks take over the settings of their components before the next reading, so that they can be
/// saved and compared.
pub(crate) fn take_settings(world: &mut World) {
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    let changes = table.rows.iter().filter_map(|(key, row)| {
        let clock = super::copy::component(world, row.entity, key)?;
        (clock.settings() != row.settings).then_some(Change {
            age: row.age,
            key,
            clock: table.id(key)?,
            settings: clock.settings(),
            jump: Jump::default(),
        })
    });
    let mut changes: Vec<_> = changes.collect();
    world.resource_scope(|world, mut table: Mut<ClockTable>| {
        for (clock, error) in table.take_settings(&mut changes) {
            warn(&mut world.into(), error);
            if let ClockId::Own(entity) = clock
                && let Some(mut component) = world.get_mut::<Clock>(entity)
            {
                table.undo(clock, component.bypass_change_detection());
            }
        }
    });
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
    if !world.contains_resource::<ClockTable>() {
        return;
    }
    let brakes = Brakes {
        factor: factor(world, entity),
        disabled: world.get::<Disabled>(entity).is_some(),
        ..Brakes::default()
    };
    let Some(mut clock) = world.get_mut::<Clock>(entity) else {
        return;
    };
    let written = clock.last_changed();
    let clock = clock.bypass_change_detection();
    let start = clock.enter_world();
    let speed = Speed::try_from(clock.speed());
    if speed.is_err() {
        clock.set_speed(1.0);
    }
    let settings = clock.settings();
    if let Some(mut table) = world.get_resource_mut::<ClockTable>()
        && table.key_of(entity).is_none()
    {
        table.add(entity, settings, brakes, (start, written));
    }
    if let Err(error) = speed {
        warn(world, error);
    }
}

pub(crate) fn on_disable_clock(disabled: On<Add<Disabled>>, table: Option<ResMut<ClockTable>>) {
    set_disabled(table, disabled.entity, true);
}

pub(crate) fn on_enable_clock(enabled: On<Remove<Disabled>>, table: Option<ResMut<ClockTable>>) {
    set_disabled(table, enabled.entity, false);
}

fn set_disabled(table: Option<ResMut<ClockTable>>, entity: Entity, disabled: bool) {
    if let Some(mut table) = table
        && let Some(key) = table.key_of(entity)
    {
        table.change(key, |row| row.brakes.disabled = disabled);
    }
}

/// Reports a problem with a clock to Bevy's error handler once commands can run.
pub(crate) fn warn(world: &mut DeferredWorld, error: impl Into<Box<dyn Error + Send + Sync>>) {
    report(&mut world.commands(), error);
}

fn report(commands: &mut Commands, error: impl Into<Box<dyn Error + Send + Sync>>) {
    let error: Box<dyn Error + Send + Sync> = error.into();
    let result = Err::<(), _>(BevyError::warning(error));
    commands.queue(move |_: &mut World| result);
}
