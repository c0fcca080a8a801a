//! The clocks of a world as a resource: their times, their stops and their parents.

use alloc::vec::Vec;
use core::{mem, time::Duration};

use bevy_ecs::{change_detection::Tick as ChangeTick, prelude::*};
use bevy_platform::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use smallvec::SmallVec;

#[cfg(feature = "serialize")]
use super::save::TimePassed;
use super::{
    Clock, Settings,
    due::Wakes,
    id::{ClockError, ClockId},
    load::{Load, SavedTime},
    row::{
        Age, BUILT_IN, Brakes, Cadence, ClockKey, Driver, FRAMES, Past, Row, Rows, VIRTUAL,
        built_in_id, built_in_key,
    },
    time::Reading,
};

/// The length of one frame on the frame clock.
pub(crate) const FRAME: u64 = 1_000_000_000;

/// The clocks of a world.
///
/// A clock shows one time from one reading of its cadence to the next. It is computed when it is asked
/// for, from the time of the parent, so that a clock costs nothing while it is neither read nor changed. The
/// readings, hooks and exclusive code write the table. A change of a [`Clock`](crate::Clock) component
/// is no write: the next reading takes it over.
#[derive(Resource, Clone, Debug)]
pub(crate) struct ClockTable {
    pub(super) rows: Rows,
    /// The component of each built-in clock, by key. These clocks are not entities.
    pub(super) built_in: [Clock; BUILT_IN.len()],
    pub(super) wakes: Wakes,
    pub(super) load: Load,
    /// The number of readings of each cadence.
    pub(super) rounds: [u64; 2],
    /// Whether each condition may hold a clock, by the order of their first checks.
    pub(super) conditions: Vec<bool>,
    pub(super) changes: Changes,
    /// Whether a clock has changed its cadence, which callbacks have not followed yet.
    pub(super) has_moved: bool,
    /// When the settings of the components were last taken over.
    pub(super) taken: ChangeTick,
    /// The number of edits of the built-in clocks then.
    pub(super) taken_edits: u64,
    /// The longest step of game time, while it is raised by the time of a sleep.
    #[cfg(feature = "worlds")]
    pub(crate) max_delta: Option<Duration>,
}

/// Counts what makes a computed time or a written state stale. Each reading counts.
///
/// Copies share the counters. Reading them takes no lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    changes: AtomicU64,
    /// The edits of the components of built-in clocks.
    edits: AtomicU64,
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
    /// The time that the clock shows.
    pub(crate) elapsed: Duration,
}

impl ClockTable {
    /// The key and the age of the game clock.
    pub(crate) const GAME: (ClockKey, Age) = (VIRTUAL, VIRTUAL as Age);

    /// Creates a table with the built-in clocks. `elapsed` returns the time that Bevy shows.
    pub(crate) fn new(elapsed: impl Fn(ClockId) -> u64) -> Self {
        let mut table = Self {
            rows: Rows::default(),
            built_in: BUILT_IN.map(|id| {
                let mut clock = Clock::of(id);
                clock.enter_world();
                clock
            }),
            wakes: Wakes::default(),
            load: Load::default(),
            rounds: [0; 2],
            conditions: Vec::new(),
            changes: Changes::default(),
            has_moved: false,
            taken: ChangeTick::new(0),
            taken_edits: 0,
            #[cfg(feature = "worlds")]
            max_delta: None,
        };
        for (key, id) in (0..).zip(BUILT_IN) {
            let seen = elapsed(id);
            let mut time = Reading::ZERO;
            time.advance(seen);
            table.rows.add(Row {
                driver: Driver::Bevy,
                root: key,
                seen,
                ..Row::new(None, Clock::of(id).settings(), Brakes::default(), time)
            });
        }
        table
    }

    pub(crate) fn find(&self, clock: ClockId) -> Result<FoundClock, ClockError> {
        let (key, row) = self.find_row(clock)?;
        Ok(FoundClock {
            key,
            age: row.age,
            cadence: row.cadence(),
        })
    }

    fn find_row(&self, clock: ClockId) -> Result<(ClockKey, &Row), ClockError> {
        let key = match clock {
            ClockId::Own(entity) => self.rows.key_of(entity),
            built_in => built_in_key(built_in),
        };
        let found = key.and_then(|key| Some((key, self.rows.get(key)?)));
        found.ok_or(ClockError::NoSuchClock(clock))
    }

    /// Returns the component of a built-in clock.
    pub(super) fn built_in_mut(&mut self, clock: ClockId) -> Option<&mut Clock> {
        self.changes.note_edit();
        self.built_in.get_mut(built_in_key(clock)? as usize)
    }

    /// Returns the number of clocks on entities.
    pub(crate) fn own_clocks(&self) -> usize {
        self.rows.own()
    }

    /// Returns the key of the clock on `entity`.
    pub(crate) fn key_of(&self, entity: Entity) -> Option<ClockKey> {
        self.rows.key_of(entity)
    }

    pub(crate) fn id(&self, key: ClockKey) -> Option<ClockId> {
        built_in_id(key).or_else(|| self.rows.get(key)?.entity.map(ClockId::Own))
    }

    /// Returns a copy of a clock as of its last reading, to be inserted elsewhere.
    pub(super) fn copy(&self, clock: ClockId) -> Result<Clock, ClockError> {
        let (key, row) = self.find_row(clock)?;
        let time = self.reading(key).ok_or(ClockError::NoSuchClock(clock))?;
        let mut copy = Clock::new();
        copy.set_settings(row.settings);
        copy.leave_world(SavedTime::new(&time, None));
        Ok(copy)
    }

    /// Returns the cadence of the clock of this key and age, if it still exists.
    pub(crate) fn cadence(&self, key: ClockKey, age: Age) -> Option<Cadence> {
        self.rows.get_of_age(key, age).map(Row::cadence)
    }

    /// Returns the cadence of the clocks that a run covers.
    pub(crate) fn cadence_of(&self, scope: Scope) -> Cadence {
        match scope {
            Scope::Of(cadence) => cadence,
            Scope::Under(root) => self.rows.get(root).map_or(Cadence::Frame, Row::cadence),
        }
    }

    /// Returns the number of changes of clocks so far. Each reading is one.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Notes that a callback is in the wrong schedule.
    pub(crate) fn note_moved(&mut self) {
        self.has_moved = true;
    }

    /// Returns `true` once if a clock has changed its cadence.
    pub(crate) fn take_moved(&mut self) -> bool {
        mem::take(&mut self.has_moved)
    }

    /// Finds a clock, and returns the time on it.
    pub(crate) fn read(&self, clock: ClockId) -> Result<(FoundClock, Reading), ClockError> {
        let found = self.find(clock)?;
        let reading = self.reading(found.key);
        Ok((found, reading.ok_or(ClockError::NoSuchClock(clock))?))
    }

    /// Returns the parent of the clock on `entity`.
    pub(crate) fn parent_of(&self, entity: Entity) -> Option<ClockId> {
        let (_, row) = self.find_row(entity.into()).ok()?;
        Some(row.settings.parent)
    }

    /// Returns the time that a clock shows.
    pub(crate) fn now(&self, clock: ClockId) -> Result<Duration, ClockError> {
        let (_, reading) = self.read(clock)?;
        Ok(reading.shown_now())
    }

    /// Returns the time that passed on a clock between the last two readings.
    pub(crate) fn delta(&self, clock: ClockId) -> Result<Duration, ClockError> {
        let (key, _) = self.find_row(clock)?;
        let tick = self.tick(key).ok_or(ClockError::NoSuchClock(clock))?;
        Ok(tick.delta)
    }

    /// Returns the speed of a clock times the speeds of those above it, or zero if something stops it.
    pub(super) fn speed(&self, clock: ClockId) -> Result<f64, ClockError> {
        let (key, _) = self.find_row(clock)?;
        let rows = self.rows.lineage(key).into_iter();
        let rows = rows.filter_map(|key| self.rows.get(key));
        Ok(rows.map(Row::speed).product())
    }

    /// Notes that a clock has skipped time, before the next run of its cadence.
    pub(super) fn note_skip(&mut self, key: ClockKey, reading: Cadence) {
        for key in self.rows.descendants(key).into_iter().chain([key]) {
            if let Some(row) = self.rows.get_mut(key) {
                let round = self.rounds[row.cadence() as usize];
                // The next reading of the other cadence is the first after the skip.
                row.skipped = Some(round + u64::from(row.cadence() != reading));
            }
        }
    }

    /// Returns `true` if a clock has skipped time since the run before this one.
    pub(crate) fn has_skipped(&self, key: ClockKey) -> bool {
        let row = self.rows.get(key);
        row.is_some_and(|row| row.skipped == Some(self.rounds[row.cadence() as usize]))
    }

    /// Returns the time on the game clock.
    #[inline]
    pub(crate) fn game_time(&self) -> u64 {
        self.rows.get(VIRTUAL).map_or(0, |row| row.time.now)
    }

    /// Returns the time that the clock of this key and age shows. If the clock is gone, this is the
    /// game time.
    pub(crate) fn shown(&self, clock: Option<(ClockKey, Age)>) -> Duration {
        let own = clock.filter(|&(key, age)| self.rows.get_of_age(key, age).is_some());
        let time = self.reading(own.map_or(VIRTUAL, |(key, _)| key));
        time.map_or(Duration::ZERO, |time| time.shown_now())
    }

    /// Returns the time on a clock.
    pub(crate) fn reading(&self, key: ClockKey) -> Option<Reading> {
        if let Some(row) = self.rows.get(key)
            && row.driver == Driver::Bevy
        {
            return Some(row.time);
        }
        let mut lineage = self.rows.lineage(key);
        let mut time = self.rows.get(lineage.pop()?)?.time;
        while let Some(key) = lineage.pop() {
            time = self.rows.get(key)?.time_at(time.now);
        }
        Some(time)
    }

    /// Returns a clock as it was at the last reading.
    fn past(&self, key: ClockKey) -> Option<Past> {
        let mut past: Option<Past> = None;
        for key in self.rows.lineage(key).into_iter().rev() {
            let row = self.rows.get(key)?;
            let round = self.rounds[row.cadence() as usize];
            past = Some(match past {
                _ if row.past.round == round => row.past,
                None => Past {
                    is_stopped: row.is_stopped(),
                    ..Past::new(round, row.time.now)
                },
                Some(parent) => Past {
                    round,
                    is_stopped: row.is_stopped(),
                    now: row.time_at(parent.now).now,
                    previous: match row.past.round + 1 == round {
                        true => row.past.now,
                        false => row.time_at(parent.previous).now,
                    },
                },
            });
        }
        past
    }

    /// Returns the time on a clock in this run.
    pub(crate) fn tick(&self, key: ClockKey) -> Option<Tick> {
        let past = self.past(key)?;
        Some(Tick {
            clock: self.id(key)?,
            delta: Duration::from_nanos(past.now.saturating_sub(past.previous)),
            elapsed: self.reading(key)?.shown_now(),
        })
    }

    /// Returns the time on the clock of this key and age, or `None` if the clock is gone, if nothing drives
    /// it, or if something stops it or a clock above it. What stops the clocks above a clock that is
    /// fast-forwarded does not matter.
    ///
    /// The components may have stopped a clock since the last reading: `is_stopped` asks them. A clock
    /// that was stopped at the last reading stays so until the next one.
    #[inline]
    pub(crate) fn read_running(
        &self,
        clock: (ClockKey, Age),
        scope: Scope,
        mut is_stopped: impl FnMut(ClockKey, Option<Entity>) -> bool,
    ) -> Option<Reading> {
        self.read_driven(clock, scope, |key, row| {
            let round = self.rounds[row.cadence() as usize];
            let was_stopped = row.past.round == round && row.past.is_stopped;
            was_stopped || is_stopped(key, row.entity)
        })
    }

    /// Returns the time on the clock of this key and age, or `None` if the clock is gone, if nothing drives
    /// it, or if the settings or `is_stopped` stop it or a clock above it.
    #[inline]
    fn read_driven(
        &self,
        (key, age): (ClockKey, Age),
        scope: Scope,
        mut is_stopped: impl FnMut(ClockKey, &Row) -> bool,
    ) -> Option<Reading> {
        let row = self.rows.get_of_age(key, age)?;
        match row.driver {
            Driver::Bevy => (!row.is_stopped() && !is_stopped(key, row)).then_some(row.time),
            _ => self.read_driven_by_clock((key, row), scope, is_stopped),
        }
    }

    #[inline(never)]
    fn read_driven_by_clock(
        &self,
        (mut at, mut row): (ClockKey, &Row),
        scope: Scope,
        mut is_stopped: impl FnMut(ClockKey, &Row) -> bool,
    ) -> Option<Reading> {
        let mut lineage = SmallVec::<[&Row; 8]>::new();
        let mut matters = true;
        let root = loop {
            if matters && (row.is_stopped() || is_stopped(at, row)) {
                return None;
            }
            matters = matters && scope != Scope::Under(at);
            let Driver::Clock(parent) = row.driver else {
                break row;
            };
            lineage.push(row);
            (at, row) = (parent, self.rows.get(parent)?);
        };
        if root.driver == Driver::Missing {
            return None;
        }
        let lineage = lineage.iter().rev();
        Some(lineage.fold(root.time, |time, row| row.time_at(time.now)))
    }

    /// Returns the built-in clock that drives the clock of this key and age, or `None` if the settings
    /// of the clock or of one above it stop it.
    #[cfg(feature = "worlds")]
    pub(crate) fn running_root(&self, key: ClockKey, age: Age) -> Option<ClockId> {
        let scope = Scope::Of(Cadence::Frame);
        self.read_driven((key, age), scope, |_, _| false)?;
        built_in_id(self.rows.get(key)?.root)
    }

    /// Brings a clock up to date, so that it can change.
    pub(super) fn settle(&mut self, key: ClockKey) {
        let (past, time) = (self.past(key), self.reading(key));
        let seen = self
            .rows
            .parent(key)
            .and_then(|parent| self.reading(parent));
        if let (Some(past), Some(time), Some(row)) = (past, time, self.rows.get_mut(key)) {
            (row.past, row.time) = (past, time);
            row.seen = seen.map_or(row.seen, |parent| parent.now);
        }
    }

    /// Changes a clock from now on.
    pub(super) fn change(&mut self, key: ClockKey, change: impl FnOnce(&mut Row)) {
        self.settle(key);
        self.change_settled(key, change);
    }

    /// Changes a clock that is up to date.
    pub(super) fn change_settled(&mut self, key: ClockKey, change: impl FnOnce(&mut Row)) {
        self.changes.note();
        let Some(row) = self.rows.get_mut(key) else {
            return;
        };
        change(row);
        row.update_rate();
        self.set_wakes(key);
    }

    /// Advances a clock on its own, without its parent. Its descendants follow. For them, this is a
    /// reading.
    pub(crate) fn fast_forward(&mut self, key: ClockKey, nanos: u64) {
        self.change(key, |row| row.time.advance(nanos));
        for key in self.rows.descendants(key).into_iter().chain([key]) {
            if let Some(row) = self.rows.get_mut(key) {
                row.past.is_stopped = row.is_stopped();
            }
        }
    }

    /// Adds a clock. If its parent has not arrived yet, the clock waits for it until the next reading.
    pub(super) fn add(
        &mut self,
        entity: Entity,
        settings: Settings,
        brakes: Brakes,
        saved: SavedTime,
    ) {
        let row = Row::new(Some(entity), settings, brakes, saved.time());
        let (key, age) = self.rows.add(row);
        self.load.add(saved.order, (key, age));
        match self.find(settings.parent) {
            Ok(parent) if parent.key != key => self.drive(key, parent.key),
            _ => self.load.waiting.push((key, age)),
        }
        self.changes.note();
    }

    /// Removes the clock of `entity`, and returns its time. Its children stop.
    pub(super) fn remove(&mut self, entity: Entity) -> Option<Reading> {
        let key = self.key_of(entity)?;
        self.settle(key);
        let children = self.rows.get(key).map(|row| row.children.clone());
        for child in children.into_iter().flatten() {
            self.settle(child);
            self.rows.set_driver(child, Driver::Missing);
            self.set_wakes(child);
        }
        self.wakes.clear(key);
        self.changes.note();
        // If modifiers are left, the next reading adds another one.
        self.load.modified.push(entity);
        Some(self.rows.remove(key)?.time)
    }

    /// Puts a clock on another parent from now on. On an error, the clock stays as it was.
    pub(super) fn set_parent(&mut self, key: ClockKey, parent: ClockId) -> Result<(), ClockError> {
        let parent_key = self.find(parent)?.key;
        if let Some(cycle) = self.cycle(key, parent_key) {
            return Err(ClockError::Cycle(cycle));
        }
        if self.rows.parent(key) != Some(parent_key) {
            self.drive(key, parent_key);
        }
        if let Some(row) = self.rows.get_mut(key) {
            row.settings.parent = parent;
        }
        Ok(())
    }

    /// Returns the clocks from `key` on, each followed by its parent, if `key` would drive itself.
    fn cycle(&self, key: ClockKey, parent: ClockKey) -> Option<Vec<Entity>> {
        let above = self.rows.lineage(parent);
        let nth = above.iter().position(|&at| at == key)?;
        let clocks = [key].into_iter().chain(above.into_iter().take(nth));
        let entities = clocks.filter_map(|key| self.rows.get(key)?.entity);
        Some(entities.collect())
    }

    /// Lets a clock follow an existing one from now on.
    fn drive(&mut self, key: ClockKey, parent: ClockKey) {
        self.settle(key);
        self.rows.set_driver(key, Driver::Clock(parent));
        let root = self.rows.get(parent).map(|row| row.root);
        if let (Some(seen), Some(root)) = (self.reading(parent), root)
            && let Some(row) = self.rows.get_mut(key)
        {
            row.seen = seen.now;
            if row.root != root {
                self.move_to_root(key, root);
            }
        }
        self.changes.note();
        self.set_wakes(key);
    }

    /// Tells a clock and its descendants that another built-in clock drives them.
    fn move_to_root(&mut self, key: ClockKey, root: ClockKey) {
        let mut clocks = self.rows.descendants(key);
        // Settled before the first of them gets the number of the reading of the other cadence.
        for &clock in &clocks {
            self.settle(clock);
        }
        clocks.push(key);
        for clock in clocks {
            let Some(row) = self.rows.get_mut(clock) else {
                continue;
            };
            let before = row.cadence();
            row.root = root;
            if row.cadence() != before {
                row.past = Past::new(self.rounds[row.cadence() as usize], row.time.now);
                row.skipped = None;
                self.has_moved = true;
            }
        }
    }

    /// Adds a condition that can hold clocks, and returns its index.
    pub(crate) fn add_condition(&mut self) -> usize {
        self.conditions.push(false);
        self.conditions.len() - 1
    }

    /// Lets a condition hold the clocks of these entities if it `holds`, and no other clocks.
    pub(crate) fn hold(
        &mut self,
        condition: usize,
        holds: bool,
        is_concerned: impl Fn(Entity) -> bool,
    ) {
        if !holds && !self.conditions[condition] {
            return;
        }
        self.conditions[condition] = holds;
        let changed = self.rows.iter().filter_map(|(key, row)| {
            let is_held = holds && is_concerned(row.entity?);
            let was_held = row.brakes.held_by.contains(&condition);
            (is_held != was_held).then_some((key, is_held))
        });
        for (key, is_held) in changed.collect::<Vec<_>>() {
            self.change(key, |row| match is_held {
                true => row.brakes.held_by.push(condition),
                false => row.brakes.held_by.retain(|held_by| *held_by != condition),
            });
        }
    }

    /// Advances the built-in clocks of a cadence to the times that Bevy shows for them. Each time comes
    /// with its latest step.
    pub(super) fn advance(&mut self, cadence: Cadence, times: [(u64, u64); BUILT_IN.len()]) {
        self.rounds[cadence as usize] += 1;
        self.changes.note();
        let round = self.rounds[cadence as usize];
        for &root in cadence.roots() {
            if let Some(row) = self.rows.get_mut(root) {
                let (elapsed, delta) = match root {
                    FRAMES => (row.seen.saturating_add(FRAME), FRAME),
                    root => times[root as usize],
                };
                row.follow(round, elapsed, delta);
            }
        }
    }

    /// Returns how far a clock advances while the built-in clocks advance, at its present speed.
    #[cfg(feature = "serialize")]
    pub(crate) fn share(&self, clock: ClockId, passed: &TimePassed) -> u64 {
        let Ok(FoundClock { key, .. }) = self.find(clock) else {
            return 0;
        };
        let mut after: Option<Reading> = None;
        for key in self.rows.lineage(key).into_iter().rev() {
            if let Some(row) = self.rows.get(key) {
                let nanos = built_in_id(key).map_or(0, |clock| passed.on(clock));
                after = Some(match after {
                    Some(parent) => row.time_at(parent.now),
                    None => row.time_after(nanos),
                });
            }
        }
        let now = |time: Option<Reading>| time.map_or(0, |time| time.now);
        now(after).saturating_sub(now(self.reading(key)))
    }

    /// Lets the clock on an entity advance as if its parent had advanced by `nanos`.
    #[cfg(feature = "serialize")]
    pub(crate) fn pass(&mut self, clock: Entity, nanos: u64) {
        if let Some(key) = self.key_of(clock) {
            self.change(key, |row| row.time = row.time_after(nanos));
        }
    }
}

impl Changes {
    pub(crate) fn get(&self) -> u64 {
        self.0.changes.load(Relaxed)
    }

    /// Counts a change, before it happens. One at a time changes a world, so no other count is lost.
    pub(crate) fn note(&self) {
        self.0.changes.store(self.get() + 1, Relaxed);
    }

    /// Returns the number of changes, and of edits of the components of built-in clocks.
    #[inline]
    pub(crate) fn with_edits(&self) -> u64 {
        self.get() + self.edits()
    }

    #[inline]
    pub(super) fn edits(&self) -> u64 {
        self.0.edits.load(Relaxed)
    }

    /// Counts an edit of the component of a built-in clock, before it happens. The next reading takes it
    /// over, but a pause stops the clock at once.
    pub(super) fn note_edit(&self) {
        self.0.edits.fetch_add(1, Relaxed);
    }
}
