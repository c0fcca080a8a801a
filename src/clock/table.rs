//! The clocks of a world as a resource: their times, their stops and their parents.

use alloc::vec::Vec;
use core::{mem, slice, time::Duration};

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

#[cfg(feature = "serialize")]
use super::save::TimePassed;
use super::{
    Clock, Parent, Settings,
    due::TimeLines,
    frame::ExactFrames,
    id::{ClockError, ClockId},
    pending::Pending,
    row::{
        Age, BUILT_IN, Brakes, Cadence, ClockKey, Driver, MANUAL, Past, Row, Rows, VIRTUAL,
        built_in_id, built_in_key,
    },
    time::Reading,
};

/// The length of one frame on the frame clock.
pub(crate) const FRAME: u64 = 1_000_000_000;

/// The clocks of a world.
///
/// The table is the only place of their settings and times: hooks, commands and the readings write it. A clock shows
/// one time from one reading of its cadence to the next, unless it is told to jump. The time is computed when it is
/// asked for, from the time of the parent, so that a clock costs nothing while it is neither read nor changed.
#[derive(Resource, Clone, Debug, Default)]
pub(crate) struct ClockTable {
    pub(super) rows: Rows,
    pub(super) lines: TimeLines,
    pub(super) frames: ExactFrames,
    pub(super) pending: Pending,
    /// The number of readings of each cadence.
    pub(super) rounds: [u64; 2],
    /// Whether each condition may hold a clock, by the order of their first checks.
    pub(super) conditions: Vec<bool>,
    /// Whether a clock has changed its cadence, which callbacks have not followed yet.
    pub(super) has_moved: bool,
    /// The longest step of game time, while it is raised by the time of a sleep.
    #[cfg(feature = "worlds")]
    pub(crate) max_delta: Option<Duration>,
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

impl Scope {
    /// Returns the tops of the time lines that a run covers.
    pub(super) fn tops(&self) -> &[ClockKey] {
        match self {
            Self::Of(cadence) => cadence.tops(),
            Self::Under(top) => slice::from_ref(top),
        }
    }
}

impl ClockTable {
    /// The key and the age of the game clock.
    pub(crate) const GAME: (ClockKey, Age) = (VIRTUAL, VIRTUAL as Age);

    /// Creates a table with the built-in clocks. `elapsed` returns the time that Bevy shows.
    /// With exact frames, a frame goes through its deadlines one after the other.
    pub(crate) fn new(has_exact_frames: bool, elapsed: impl Fn(ClockId) -> u64) -> Self {
        let mut table = Self::default();
        table.frames.is_on = has_exact_frames;
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

    /// Returns the key of the clock on `entity`.
    pub(crate) fn key_of(&self, entity: Entity) -> Option<ClockKey> {
        self.rows.key_of(entity)
    }

    pub(crate) fn id(&self, key: ClockKey) -> Option<ClockId> {
        built_in_id(key).or_else(|| self.rows.get(key)?.entity.map(ClockId::Own))
    }

    /// Returns a clock with its present settings and its present time.
    pub(super) fn copy(&self, clock: ClockId) -> Result<Clock, ClockError> {
        let (key, row) = self.find_row(clock)?;
        let time = self.reading(key).ok_or(ClockError::NoSuchClock(clock))?;
        Ok(row.clock_at(&time))
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

    /// Returns `true` if a clock itself stands still.
    pub(crate) fn is_stopped(&self, key: ClockKey) -> bool {
        self.rows.get(key).is_none_or(Row::is_stopped)
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

    /// Returns the parent of the clock on `entity`, or the game clock if it is a manual one. Effects on the clock count
    /// there.
    pub(crate) fn parent_of(&self, entity: Entity) -> Option<ClockId> {
        let (_, row) = self.find_row(entity.into()).ok()?;
        Some(row.settings.parent.id().unwrap_or_default())
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

    /// Lets a clock skip time, and those below with it.
    pub(super) fn skip(&mut self, key: ClockKey, by: u64) {
        let mut clocks = self.rows.descendants(key);
        clocks.push(key);
        let before: Vec<_> = clocks.iter().map(|&key| self.reading(key)).collect();
        self.change(key, |row| row.time.jump(by));
        for (key, before) in clocks.into_iter().zip(before) {
            let now = self.reading(key);
            if let Some(row) = self.rows.get_mut(key)
                && now != before
            {
                row.skipped_to = now.map(|time| time.now);
            }
        }
    }

    /// Returns the time to which a clock last skipped. A deadline up to there fires at most once, however late.
    pub(crate) fn skipped_to(&self, key: ClockKey) -> Option<u64> {
        self.rows.get(key)?.skipped_to
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
        let row = self.rows.get(key)?;
        if row.driver == Driver::Bevy {
            return Some(row.time);
        }
        self.rows.time_below(key, |_, top| Some(top.time))
    }

    /// Returns a clock as it was at the last reading.
    fn past(&self, key: ClockKey) -> Option<Past> {
        let mut past: Option<Past> = None;
        for key in self.rows.lineage(key).into_iter().rev() {
            let row = self.rows.get(key)?;
            let round = self.rounds[row.cadence() as usize];
            if row.past.round == round {
                past = Some(row.past);
                continue;
            }
            let time = |parent: Option<u64>| parent.map_or(row.time, |at| row.time_at(at)).now;
            let now = time(past.map(|parent| parent.now));
            let previous = match row.past.round + 1 == round {
                // It may have jumped since then.
                true => row.past.now,
                false => time(past.map(|parent| parent.previous)),
            };
            past = Some(Past::new(round, now, previous));
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

    /// Returns the time on the clock of this key and age, or `None` if the clock is gone, or if something stops it: its
    /// settings or the game, it or a clock above it. What is above the clock at the top of a fast-forward does not
    /// matter, and nothing stops that clock if it was stopped when the fast-forward began.
    #[inline]
    pub(crate) fn read_running(
        &self,
        clock: (ClockKey, Age),
        scope: Scope,
        is_game_stopped: bool,
    ) -> Option<Reading> {
        let row = self.rows.get_of_age(clock.0, clock.1)?;
        let mut lineage = SmallVec::<[&Row; 8]>::new();
        let (mut at, mut top) = (clock.0, row);
        while scope != Scope::Under(at) {
            if top.driver == Driver::Missing || top.is_stopped() || at == VIRTUAL && is_game_stopped
            {
                return None;
            }
            let Driver::Clock(parent) = top.driver else {
                break;
            };
            lineage.push(top);
            (at, top) = (parent, self.rows.get(parent)?);
        }
        let above = match scope {
            Scope::Under(_) if !self.is_forward_running(at, top.age, is_game_stopped) => {
                return None;
            }
            Scope::Under(forwarded) if forwarded == at => self.reading(at)?,
            _ => top.time,
        };
        let lineage = lineage.iter().rev();
        Some(lineage.fold(above, |time, row| row.time_at(time.now)))
    }

    /// Returns the built-in clock that drives the clock of this key and age, or `None` if the settings
    /// of the clock or of one above it stop it.
    #[cfg(feature = "worlds")]
    pub(crate) fn running_root(&self, key: ClockKey, age: Age) -> Option<ClockId> {
        let scope = Scope::Of(Cadence::Frame);
        self.read_running((key, age), scope, false)?;
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
        let Some(row) = self.rows.get_mut(key) else {
            return;
        };
        change(row);
        row.update_rate();
        self.set_wakes(key);
    }

    /// Advances the clock at the top of a fast-forward on its own, without its parent. Its descendants follow.
    pub(crate) fn fast_forward(&mut self, key: ClockKey, nanos: u64) {
        if let Some(row) = self.rows.get_mut(key) {
            row.time.advance(nanos);
        }
    }

    /// Adds a clock. If its parent has not arrived yet, the clock waits for it. Those that wait for this clock wait no
    /// longer.
    pub(super) fn add(&mut self, entity: Entity, clock: &Clock, brakes: Brakes) {
        let mut row = Row::new(Some(entity), clock.settings(), brakes, Reading::ZERO);
        row.time.set_shown(clock.now);
        let (key, age) = self.rows.add(row);
        match clock.parent().map(|parent| self.find(parent)) {
            None => self.drive(key, None),
            Some(Ok(parent)) if parent.key != key => self.drive(key, Some(parent.key)),
            Some(_) => _ = self.pending.waiting.insert(key, (age, clock.parent)),
        }
        for orphan in self.rows.orphans_of(entity) {
            if self.cycle(orphan, key).is_none() {
                self.drive(orphan, Some(key));
            }
        }
    }

    /// Gives a clock the settings of another component. A parent that has not arrived yet is waited for until the next
    /// reading.
    pub(super) fn replace(&mut self, key: ClockKey, settings: Settings) -> Result<(), ClockError> {
        let waits = self.pending.waiting.remove(&key).is_some();
        let row = self.rows.get(key);
        let Some(row) = row.filter(|row| waits || row.settings != settings) else {
            return Ok(());
        };
        let (age, parent) = (row.age, row.settings.parent);
        self.change(key, |row| {
            row.settings = Settings { parent, ..settings };
        });
        match self.set_parent(key, settings.parent) {
            Err(ClockError::NoSuchClock(_)) => {
                self.pending.waiting.insert(key, (age, settings.parent));
                Ok(())
            }
            result => result,
        }
    }

    /// Removes the clock of `entity`. Its children stop.
    pub(super) fn remove(&mut self, entity: Entity) {
        let Some(key) = self.key_of(entity) else {
            return;
        };
        self.settle(key);
        let children = self.rows.get(key).map(|row| row.children.clone());
        for child in children.into_iter().flatten() {
            self.settle(child);
            self.rows.set_driver(child, Driver::Missing);
            self.set_wakes(child);
        }
        self.lines.clear(key);
        // If modifiers are left, the next run adds another one.
        self.pending.modified.push_back(entity);
        self.rows.remove(key);
        self.lines.truncate(self.rows.len() as usize);
    }

    /// Puts a clock on another parent from now on. On an error, the clock stays as it was.
    pub(super) fn set_parent(&mut self, key: ClockKey, parent: Parent) -> Result<(), ClockError> {
        let above = parent.id().map(|parent| self.find(parent)).transpose()?;
        let above = above.map(|found| found.key);
        if let Some(cycle) = above.and_then(|above| self.cycle(key, above)) {
            return Err(ClockError::Cycle(cycle));
        }
        let is_same = self.rows.parent(key) == above && above.is_some();
        if !is_same {
            self.drive(key, above);
        }
        if let Some(row) = self.rows.get_mut(key) {
            row.settings.parent = parent;
            self.pending
                .reparented
                .extend(row.entity.filter(|_| !is_same));
        }
        self.pending.waiting.remove(&key);
        Ok(())
    }

    /// Returns the clocks from `key` on, each followed by its parent, if `key` would drive itself.
    pub(super) fn cycle(&self, key: ClockKey, parent: ClockKey) -> Option<Vec<Entity>> {
        let above = self.rows.lineage(parent);
        let nth = above.iter().position(|&at| at == key)?;
        let clocks = [key].into_iter().chain(above.into_iter().take(nth));
        let entities = clocks.filter_map(|key| self.rows.get(key)?.entity);
        Some(entities.collect())
    }

    /// Lets a clock follow an existing one from now on, or move by calls alone.
    fn drive(&mut self, key: ClockKey, parent: Option<ClockKey>) {
        self.settle(key);
        let driver = parent.map_or(Driver::Manual, Driver::Clock);
        self.rows.set_driver(key, driver);
        let seen = parent.and_then(|parent| self.reading(parent));
        let above = parent.and_then(|parent| self.rows.get(parent));
        let root = above.map_or(MANUAL, |above| above.root);
        if let Some(row) = self.rows.get_mut(key) {
            row.seen = seen.map_or(row.seen, |above| above.now);
            if row.root != root {
                self.move_to_root(key, root);
            }
        }
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
                let (round, now) = (self.rounds[row.cadence() as usize], row.time.now);
                row.past = Past::new(round, now, now);
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

    /// Returns how far a clock advances while the built-in clocks advance, at its present speed.
    #[cfg(feature = "serialize")]
    pub(crate) fn share(&self, clock: ClockId, passed: &TimePassed) -> u64 {
        let Ok(FoundClock { key, .. }) = self.find(clock) else {
            return 0;
        };
        let after = self.rows.time_below(key, |top, row| {
            let nanos = built_in_id(top).map_or(0, |clock| passed.on(clock));
            Some(row.time_after(nanos))
        });
        let now = |time: Option<Reading>| time.map_or(0, |time| time.now);
        now(after).saturating_sub(now(self.reading(key)))
    }

    /// Lets the clock on an entity advance as if its parent had advanced by `nanos`, without the clocks below it. Returns
    /// how far it has advanced.
    #[cfg(feature = "serialize")]
    pub(crate) fn pass(&mut self, clock: Entity, nanos: u64) -> Option<u64> {
        let key = self.key_of(clock)?;
        self.settle(key);
        let children = self.rows.get(key)?.children.clone();
        children.iter().for_each(|&child| self.settle(child));
        let row = self.rows.get_mut(key)?;
        let before = row.time.now;
        row.time = row.time_after(nanos);
        let now = row.time.now;
        let advanced = now - before;
        // No frame of this world has taken this time.
        row.past.now += advanced;
        row.past.previous += advanced;
        for child in children {
            self.rows.get_mut(child)?.seen = now;
        }
        self.set_wakes(key);
        Some(advanced)
    }
}
