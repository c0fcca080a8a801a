//! The table as a resource, and the handles through which clocks reach their rows.

use alloc::vec::Vec;
use core::{mem, time::Duration};

use bevy_ecs::prelude::*;
use bevy_platform::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "serialize")]
use super::time_passed::TimePassed;
use super::{
    changes::Changes,
    id::{ClockId, InvalidParent, NoSuchClock},
    load::Saved,
    reading::Reading,
    readings::TimeSource,
    row::{Age, Cadence, ClockKey},
    state::ClockState,
    table::{Table, built_in_id},
};

/// The clocks of a world.
///
/// The table and the `Clock` components share one state, so that a write to a component takes
/// effect immediately, without a scan. No lock is held while other code runs.
#[derive(Resource, Clone, Debug)]
pub(crate) struct ClockTable(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    /// The counter of the table.
    changes: Changes,
}

/// The clocks that a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The clocks of a cadence.
    Of(Cadence),
    /// The clock of this key and its descendants.
    Under(ClockKey),
}

/// The clock of a timer or a callback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundClock {
    pub(crate) key: ClockKey,
    pub(crate) age: Age,
    pub(crate) cadence: Cadence,
}

/// The time on a clock in this run, as callbacks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    pub(crate) clock: ClockId,
    /// The time between this run and the previous one.
    pub(crate) delta: Duration,
    /// The reading of the clock.
    pub(crate) elapsed: Duration,
}

/// The reading of one clock in a run, kept until a clock changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    changes: Option<u64>,
    reading: Option<Reading>,
}

impl ClockTable {
    /// Creates a table with the built-in clocks.
    pub(crate) fn new(world: &World) -> Self {
        let table = Table::new(world);
        let changes = table.counters.changes.clone();
        let table = Mutex::new(table);
        Self(Arc::new(Shared { table, changes }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic leaves no clock half changed.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn handle(&self, key: ClockKey, age: Age) -> Handle {
        let table = self.clone();
        Handle { table, key, age }
    }

    pub(crate) fn find(&self, clock: ClockId) -> Result<FoundClock, NoSuchClock> {
        let table = self.lock();
        let (key, row) = table.find(clock)?;
        Ok(FoundClock {
            key,
            age: row.age,
            cadence: row.cadence,
        })
    }

    /// Finds a clock, and reads it at this moment.
    pub(crate) fn read(
        &self,
        clock: ClockId,
        world: &World,
    ) -> Result<(FoundClock, Reading), NoSuchClock> {
        self.find_state(clock, |table, key| table.live(key, world))
    }

    /// Finds a clock, and reads it at this moment. A clock that is new shows the time that it would show
    /// in a run of the saved world.
    pub(crate) fn read_for_load(
        &self,
        clock: ClockId,
        world: &World,
    ) -> Result<(FoundClock, Reading), NoSuchClock> {
        self.find_state(clock, |table, key| match table.is_new(key) {
            true => table.settled(key),
            false => table.live(key, world),
        })
    }

    /// Returns the reading of a clock as of the last run, with all changes since then, also those of
    /// its parents.
    pub(crate) fn read_to_save(&self, key: ClockKey) -> Option<Reading> {
        Some(self.lock().settled(key)?.read(false))
    }

    fn find_state(
        &self,
        clock: ClockId,
        state: impl FnOnce(&mut Table, ClockKey) -> Option<ClockState>,
    ) -> Result<(FoundClock, Reading), NoSuchClock> {
        let mut table = self.lock();
        let (key, row) = table.find(clock)?;
        let found = FoundClock {
            key,
            age: row.age,
            cadence: row.cadence,
        };
        let state = state(&mut table, key).ok_or(NoSuchClock(clock))?;
        Ok((found, state.read(false)))
    }

    /// Returns how far a clock advances while the built-in clocks advance, at its present speed.
    #[cfg(feature = "serialize")]
    pub(crate) fn share(&self, clock: ClockId, passed: &TimePassed) -> u64 {
        let table = self.lock();
        let found = table.find(clock).map(|(key, _)| key);
        found.map_or(0, |key| table.share(key, passed))
    }

    /// Lets the clock on an entity advance as if its parent had advanced by `nanos`.
    #[cfg(feature = "serialize")]
    pub(crate) fn pass(&self, clock: Entity, nanos: u64) {
        let mut table = self.lock();
        if let Some(key) = table.key_of(clock) {
            table.pass(key, nanos);
        }
    }

    /// Returns the time that a clock shows at this moment.
    #[cfg(feature = "serialize")]
    pub(crate) fn shown_now(&self, clock: ClockId, world: &World) -> Option<Duration> {
        let (_, reading) = self.read(clock, world).ok()?;
        Some(reading.shown(reading.now))
    }

    /// Returns the key of the clock on `entity`.
    pub(crate) fn key_of(&self, entity: Entity) -> Option<ClockKey> {
        self.lock().key_of(entity)
    }

    /// Returns the parent of the clock on `entity`.
    pub(crate) fn parent_of(&self, entity: Entity) -> Option<ClockId> {
        let table = self.lock();
        let (_, row) = table.find(entity.into()).ok()?;
        Some(row.state.parent)
    }

    pub(crate) fn id(&self, key: ClockKey) -> Option<ClockId> {
        built_in_id(key).or_else(|| self.lock().id(key))
    }

    /// Returns the cadence of the clock of this key and age, if it still exists.
    pub(crate) fn cadence(&self, key: ClockKey, age: Age) -> Option<Cadence> {
        let table = self.lock();
        table.get_of_age(key, age).map(|row| row.cadence)
    }

    /// Returns the number of changes of clocks so far. Each run is one.
    pub(crate) fn changes(&self) -> u64 {
        self.0.changes.get()
    }

    /// Returns the number of frames so far, whatever the clocks show.
    pub(crate) fn frame(&self) -> u64 {
        self.lock().counters.runs[Cadence::Frame as usize]
    }

    /// Lets everything count as out of date that holds until a clock changes.
    pub(crate) fn note_change(&self) {
        self.0.changes.note();
    }

    /// Returns `true` once if a clock has changed its cadence.
    pub(crate) fn take_moved(&self) -> bool {
        mem::take(&mut self.lock().has_moved)
    }

    /// Returns `true` if a clock is missing, a component may have been overwritten, or a clock has
    /// changed its cadence.
    pub(crate) fn has_news(&self) -> bool {
        let table = self.lock();
        table.load.has_missing() || table.is_overwritten() || table.has_moved
    }

    /// Starts a run on the clocks of a cadence.
    pub(crate) fn begin_run(&self, cadence: Cadence, world: &World) {
        self.lock().begin_run(cadence, world);
    }

    /// Advances a clock on its own, without its parent. Its descendants follow.
    pub(crate) fn fast_forward(&self, key: ClockKey, nanos: u64) {
        self.lock().fast_forward(key, nanos);
    }

    /// Finds the clocks in a scope on which a deadline may have passed, in the order in which they
    /// run.
    pub(crate) fn find_due(&self, scope: Scope, due: &mut Vec<(Age, ClockKey)>) {
        let mut table = self.lock();
        match scope {
            Scope::Of(cadence) => table.find_due(Table::built_in(cadence), due),
            Scope::Under(root) => table.find_due(&[root], due),
        }
    }

    /// Returns the first clock under `root` on which something will be due, and the time on `root`
    /// until then. Both are wrong if a deadline was set too early.
    pub(crate) fn next_due(&self, root: ClockKey) -> Option<(ClockKey, u64)> {
        self.lock().next_due(root)
    }

    /// Returns the time of Bevy at which something will be due on a built-in clock or its descendants.
    /// It is too early if a deadline was set too early.
    #[cfg(feature = "worlds")]
    pub(crate) fn next_due_on_source(&self, root: ClockKey) -> Option<u64> {
        self.lock().next_due_on_source(root)
    }

    /// Sets the first deadline on a clock, and returns `true` if this is a change. Too early is
    /// harmless.
    pub(crate) fn set_deadline(&self, key: ClockKey, deadline: Option<u64>) -> bool {
        let mut table = self.lock();
        let before = table.get(key).map(|row| row.plan.deadline);
        let is_changed = before.is_some_and(|before| before != deadline);
        if is_changed {
            table.set_deadline(key, deadline);
        }
        is_changed
    }

    /// Returns `true` if the clock exists and is in a scope.
    pub(crate) fn is_in(&self, key: ClockKey, scope: Scope) -> bool {
        let table = self.lock();
        match scope {
            Scope::Of(cadence) => table.get(key).is_some_and(|row| row.cadence == cadence),
            Scope::Under(root) => {
                let mut at = Some(key).filter(|&key| table.get(key).is_some());
                while let Some(clock) = at.filter(|&clock| clock != root) {
                    at = table.parent(clock);
                }
                at.is_some()
            }
        }
    }

    /// Returns the time on a clock in this run, if it exists.
    pub(crate) fn run_time(&self, key: ClockKey) -> Option<u64> {
        Some(self.lock().run_reading(key)?.now)
    }

    /// Returns the reading of the clock of this key and age in this run, or `None` if the clock or
    /// an ancestor of it in the scope is stopped or gone by now.
    pub(crate) fn reading(&self, key: ClockKey, age: Age, scope: Scope) -> Option<Reading> {
        match scope {
            Scope::Of(_) => self.reading_under(key, age, None),
            Scope::Under(root) => self.reading_under(key, age, Some(root)),
        }
    }

    fn reading_under(
        &self,
        key: ClockKey,
        age: Age,
        forwarded: Option<ClockKey>,
    ) -> Option<Reading> {
        let mut table = self.lock();
        table.get_of_age(key, age)?;
        let reading = table.run_reading(key)?;
        let is_running = !reading.stopped && table.is_running(key, forwarded);
        is_running.then_some(reading)
    }

    /// Returns the time that a clock shows in this run, stopped or not. If the clock is gone, this is
    /// the game time.
    pub(crate) fn shown(&self, clock: Option<(ClockKey, Age)>) -> Duration {
        let game_clock = self.find(ClockId::Virtual).ok().map(|found| found.key);
        let mut table = self.lock();
        let own = clock.filter(|&(key, age)| table.get_of_age(key, age).is_some());
        let key = own.map(|(key, _)| key).or(game_clock);
        let reading = key.and_then(|key| table.run_reading(key));
        reading.map_or(Duration::ZERO, |reading| reading.shown(reading.now))
    }

    /// Returns the same as [`reading`](Self::reading), and looks at the clocks again only if one of
    /// them has changed.
    pub(crate) fn watch(
        &self,
        key: ClockKey,
        age: Age,
        scope: Scope,
        watch: &mut Watch,
    ) -> Option<Reading> {
        let changes = Some(self.changes());
        if watch.changes != changes {
            let reading = self.reading(key, age, scope);
            *watch = Watch { changes, reading };
        }
        watch.reading
    }

    /// Returns the time on the clock of this key and age in this run, or `None` if it is stopped.
    pub(crate) fn tick(&self, key: ClockKey, age: Age) -> Option<Tick> {
        let reading = self.reading_under(key, age, None)?;
        let mut table = self.lock();
        let ticks = table.ticks(key)?;
        Some(Tick {
            clock: table.id(key)?,
            delta: Duration::from_nanos(ticks.last.saturating_sub(ticks.previous)),
            elapsed: reading.shown(reading.now),
        })
    }

    /// Returns `true` if the clock of this key and age can be fast-forwarded: it exists, has a
    /// source, and is not stopped itself. Its parent may be stopped.
    pub(crate) fn can_forward(&self, key: ClockKey, age: Age) -> bool {
        let table = self.lock();
        let row = table.get_of_age(key, age);
        row.is_some_and(|row| !row.is_stopped()) && !table.is_orphaned(key)
    }

    /// Returns the built-in clock that drives the clock of this key and age, or `None` if the clock or an
    /// ancestor of it is stopped or gone by now.
    #[cfg(feature = "worlds")]
    pub(crate) fn running_root(&self, key: ClockKey, age: Age) -> Option<ClockId> {
        let table = self.lock();
        let root = table.get_of_age(key, age)?.root;
        let is_running = table.is_running(key, None);
        table.id(root).filter(|_| is_running)
    }

    /// Returns the reading of a clock as of the last run, with all changes since then.
    pub(crate) fn current(&self, key: ClockKey) -> Option<Reading> {
        Some(self.lock().current(key)?.read(false))
    }

    /// Returns the reading of a clock at this moment.
    pub(crate) fn read_now(&self, world: &World, key: ClockKey) -> Option<Reading> {
        Some(self.live(key, world)?.read(false))
    }

    pub(super) fn live(&self, key: ClockKey, times: &impl TimeSource) -> Option<ClockState> {
        self.lock().live(key, times)
    }
}

/// The place of a `Clock` component in the table.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) table: ClockTable,
    pub(super) key: ClockKey,
    pub(super) age: Age,
}

impl Handle {
    /// Returns `true` if this is the handle of this clock of a table.
    pub(super) fn is_of(&self, table: &ClockTable, key: ClockKey, age: Age) -> bool {
        Arc::ptr_eq(&self.table.0, &table.0) && (self.key, self.age) == (key, age)
    }

    /// Returns the state of the clock, unless the clock is gone.
    pub(super) fn state(&self) -> Option<ClockState> {
        let mut table = self.table.lock();
        table.get_of_age(self.key, self.age)?;
        table.current(self.key)
    }

    /// Returns `true` if the clock has no parent any more, or not yet.
    pub(super) fn has_lost_parent(&self) -> bool {
        let table = self.table.lock();
        table.get_of_age(self.key, self.age).is_some() && table.has_lost_parent(self.key)
    }

    /// Returns the part of the saved clock that is not its state.
    pub(super) fn saved(&self) -> Saved {
        let mut table = self.table.lock();
        match table.get_of_age(self.key, self.age) {
            Some(_) => table.saved(self.key),
            None => Saved::default(),
        }
    }

    /// Changes the clock, unless it is gone.
    pub(super) fn change(&self, change: impl FnOnce(&mut ClockState)) {
        let mut table = self.table.lock();
        if table.get_of_age(self.key, self.age).is_some() {
            table.change(self.key, |row| change(&mut row.state));
            table.note_overwritten(self.key);
        }
    }

    /// Notes that the component needs a look in the next run, unless its clock is gone.
    pub(super) fn note(&self) {
        let mut table = self.table.lock();
        if table.get_of_age(self.key, self.age).is_some() {
            table.note_overwritten(self.key);
        }
    }

    /// Puts the clock on another parent.
    pub(super) fn set_parent(&self, parent: ClockId) -> Result<(), InvalidParent> {
        let mut table = self.table.lock();
        match table.get_of_age(self.key, self.age) {
            Some(_) => table.set_parent(self.key, parent),
            None => Ok(()),
        }
    }
}

impl Drop for Handle {
    /// The component was overwritten.
    fn drop(&mut self) {
        self.note();
    }
}
