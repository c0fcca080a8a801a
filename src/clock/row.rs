//! The rows of the table: one clock each, by key and by entity.

use alloc::{collections::BTreeSet, vec::Vec};

use bevy_ecs::{
    entity::{EntityHashMap, MapEntities},
    prelude::*,
};
use smallvec::SmallVec;

use super::{
    Clock, Settings,
    id::ClockId,
    time::{Reading, Speed},
};
use crate::queue::{NEVER, shrink};

/// The index of a clock in the table. A key is reused once its clock is gone.
pub(crate) type ClockKey = u32;

/// The number of clocks added before this one. It tells a clock from a later one of the same key, and is the place of
/// the clock in the order in which the clocks of a run go.
pub(crate) type Age = u64;

pub(super) const REAL: ClockKey = 0;
pub(crate) const VIRTUAL: ClockKey = 1;
pub(super) const FRAMES: ClockKey = 2;
pub(super) const FIXED: ClockKey = 3;

/// The root of manual clocks, and of those that they drive. No clock has this key.
pub(super) const MANUAL: ClockKey = ClockKey::MAX - 3;

/// The built-in clocks by key, which is also their age. They have no entity, so they can't be
/// despawned.
pub(super) const BUILT_IN: [ClockId; 4] = [
    ClockId::Real,
    ClockId::Virtual,
    ClockId::Frames,
    ClockId::Fixed,
];

/// Returns the name of the clock of this key, if it is a built-in one.
pub(crate) fn built_in_id(key: ClockKey) -> Option<ClockId> {
    BUILT_IN.get(key as usize).copied()
}

/// Returns the key of a built-in clock.
pub(super) fn built_in_key(clock: ClockId) -> Option<ClockKey> {
    match clock {
        ClockId::Real => Some(REAL),
        ClockId::Virtual => Some(VIRTUAL),
        ClockId::Frames => Some(FRAMES),
        ClockId::Fixed => Some(FIXED),
        ClockId::Own(_) => None,
    }
}

/// How often a clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// Once a frame.
    Frame,
    /// Once a step of the fixed schedule.
    FixedStep,
}

impl Cadence {
    /// Returns the built-in clocks of this cadence.
    pub(super) fn roots(self) -> &'static [ClockKey] {
        match self {
            Self::Frame => &[REAL, VIRTUAL, FRAMES],
            Self::FixedStep => &[FIXED],
        }
    }

    /// Returns the tops of the time lines of this cadence.
    pub(super) fn tops(self) -> &'static [ClockKey] {
        match self {
            Self::Frame => &[REAL, VIRTUAL, FRAMES, MANUAL],
            Self::FixedStep => &[FIXED],
        }
    }
}

/// The driver of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    /// Bevy's `Time`, or the number of frames: the clock is built in.
    Bevy,
    /// The clock of this key.
    Clock(ClockKey),
    /// Nothing, because the parent does not exist, or has not arrived yet.
    Missing,
    /// Nothing but calls.
    Manual,
}

/// A clock.
///
/// A clock on an entity is brought up to date, or *settled*, only when it changes. In between, its
/// time follows from the time of its parent. That is exact, because splitting a span does not
/// change the result of [`Speed::scale`].
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The entity of the clock, unless it is built in.
    pub(super) entity: Option<Entity>,
    pub(super) age: Age,
    pub(super) driver: Driver,
    /// The built-in clock at the end of the chain of parents, or [`MANUAL`]. An orphan keeps its last one.
    pub(super) root: ClockKey,
    /// The clocks that this one drives. Built-in clocks keep no list.
    pub(super) children: BTreeSet<ClockKey>,
    pub(super) settings: Settings,
    pub(super) brakes: Brakes,
    /// The speed times the speed modifiers, or zero while something else stops the clock.
    pub(super) rate: Speed,
    /// The time when the parent showed `seen`.
    pub(super) time: Reading,
    pub(super) seen: u64,
    pub(super) past: Past,
    /// The time to which the clock last skipped. It is kept: whether a deadline is still waiting there is known to the
    /// queues alone.
    pub(super) skipped_to: Option<u64>,
    /// When to look at the queue of the clock again. Too early is harmless.
    pub(super) look: Option<u64>,
}

/// Everything but its own settings that changes the speed of a clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Brakes {
    /// The product of the speed modifiers.
    pub(super) factor: f64,
    /// Whether the entity of the clock is disabled.
    pub(super) disabled: bool,
    /// The indices of the conditions that hold the clock.
    pub(super) held_by: SmallVec<[usize; 2]>,
}

/// A clock at the last reading of its cadence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    /// The number of the reading.
    pub(super) round: u64,
    /// The time passed at this reading, and at the one before.
    pub(super) now: u64,
    pub(super) previous: u64,
}

impl Past {
    pub(super) fn new(round: u64, now: u64, previous: u64) -> Self {
        Self {
            round,
            now,
            previous,
        }
    }
}

impl Default for Brakes {
    fn default() -> Self {
        Self {
            factor: 1.0,
            disabled: false,
            held_by: SmallVec::new(),
        }
    }
}

impl Row {
    /// Creates a clock that nothing drives yet.
    pub(super) fn new(
        entity: Option<Entity>,
        settings: Settings,
        brakes: Brakes,
        time: Reading,
    ) -> Self {
        let mut row = Self {
            entity,
            age: 0,
            driver: Driver::Missing,
            root: VIRTUAL,
            children: BTreeSet::new(),
            settings,
            brakes,
            rate: Speed::NORMAL,
            time,
            seen: 0,
            past: Past::new(0, time.now, time.now),
            skipped_to: None,
            look: None,
        };
        row.update_rate();
        row
    }

    /// Returns the clock with its present settings, and with this time.
    pub(super) fn clock_at(&self, time: &Reading) -> Clock {
        Clock {
            parent: self.settings.parent,
            speed: self.settings.speed,
            paused: self.settings.paused,
            now: time.shown_now(),
        }
    }

    /// Follows a change of the settings or of the brakes. The speed is valid.
    pub(super) fn update_rate(&mut self) {
        let brakes = &self.brakes;
        if self.settings.paused || brakes.disabled || !brakes.held_by.is_empty() {
            self.rate = Speed::ZERO;
        } else if let Ok(speed) = Speed::try_from(self.settings.speed) {
            self.rate = speed.times(brakes.factor);
        }
    }

    pub(super) fn cadence(&self) -> Cadence {
        match self.root {
            FIXED => Cadence::FixedStep,
            _ => Cadence::Frame,
        }
    }

    /// Returns the speed with the speed modifiers, or zero while something else stops the clock.
    pub(super) fn speed(&self) -> f64 {
        match self.is_stopped() || matches!(self.driver, Driver::Missing | Driver::Manual) {
            true => 0.0,
            false => self.settings.speed * self.brakes.factor,
        }
    }

    /// Returns `true` if the clock itself stands still.
    pub(super) fn is_stopped(&self) -> bool {
        self.rate == Speed::ZERO
    }

    /// Returns the time when the parent shows `now`.
    pub(super) fn time_at(&self, now: u64) -> Reading {
        self.time_after(now.saturating_sub(self.seen))
    }

    /// Returns the time after the parent has advanced by `nanos`.
    pub(super) fn time_after(&self, nanos: u64) -> Reading {
        let mut time = self.time;
        time.run(self.rate, nanos);
        time
    }

    /// Returns how much of Bevy's time has yet to pass on this clock. Bevy's time shows `elapsed`, and has advanced by
    /// `delta` in this frame.
    ///
    /// The time passed never goes back. If Bevy's time was set back, the clock shows the earlier time,
    /// and deadlines move along.
    pub(super) fn behind(&mut self, elapsed: u64, delta: u64) -> u64 {
        elapsed.checked_sub(self.seen).unwrap_or_else(|| {
            let span = delta.min(elapsed);
            let (back, _) = self.rate.scale(self.seen - (elapsed - span), 0);
            self.time.offset -= i128::from(back);
            self.seen = elapsed - span;
            span
        })
    }

    /// Lets some of Bevy's time pass on this clock.
    pub(super) fn pass(&mut self, nanos: u64) {
        self.time = self.time_after(nanos);
        self.seen = self.seen.saturating_add(nanos);
    }

    /// Ends a reading.
    pub(super) fn end_reading(&mut self, round: u64) {
        self.past = Past::new(round, self.time.now, self.past.now);
    }

    /// Returns the time of the parent when this clock will show `time`, or `None` if that takes
    /// forever. A time that has passed is always in the past of the parent.
    pub(super) fn parent_time(&self, time: u64) -> Option<u64> {
        if self.is_stopped() {
            return None;
        }
        let span = time.saturating_sub(self.time.now);
        if span == 0 {
            return Some(0);
        }
        if self.driver == Driver::Manual {
            return None;
        }
        let span = self.rate.unscale(span, self.time.carry)?;
        self.seen.checked_add(span).filter(|&time| time < NEVER)
    }
}

/// The clocks of a world, by key and by entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Option<Row>>,
    /// The lowest is used first, so that memory at the end can be given back.
    vacant: BTreeSet<ClockKey>,
    by_entity: EntityHashMap<ClockKey>,
    /// The clocks without a parent, by the entity on which it should be.
    orphans: BTreeSet<(Entity, ClockKey)>,
    pub(super) next_age: Age,
}

impl Rows {
    /// Adds a clock as the youngest one, without a parent.
    pub(super) fn add(&mut self, row: Row) -> (ClockKey, Age) {
        let key = self.vacant.pop_first().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() as ClockKey - 1
        });
        let age = self.next_age;
        self.next_age += 1;
        if let Some(entity) = row.entity {
            self.by_entity.insert(entity, key);
        }
        self.orphans.extend(missing(key, &row));
        self.rows[key as usize] = Some(Row { age, ..row });
        (key, age)
    }

    /// Removes a clock that drives no other one.
    pub(super) fn remove(&mut self, key: ClockKey) -> Option<Row> {
        self.set_driver(key, Driver::Manual);
        let row = self.rows.get_mut(key as usize)?.take()?;
        self.by_entity.remove(&row.entity?);
        let clocks = self.by_entity.len();
        if self.by_entity.capacity() > 64 + 4 * clocks {
            self.by_entity.shrink_to(2 * clocks);
        }
        self.vacant.insert(key);
        while let Some(None) = self.rows.last() {
            self.rows.pop();
            self.vacant.remove(&(self.rows.len() as ClockKey));
        }
        let len = self.rows.len();
        shrink(&mut self.rows, len);
        Some(row)
    }

    pub(super) fn set_driver(&mut self, key: ClockKey, driver: Driver) {
        let Some(row) = self.rows.get_mut(key as usize).and_then(Option::as_mut) else {
            return;
        };
        if let Some(orphan) = missing(key, row) {
            self.orphans.remove(&orphan);
        }
        let before = core::mem::replace(&mut row.driver, driver);
        self.orphans.extend(missing(key, row));
        if let Some(parent) = self.parent_row(before) {
            parent.children.remove(&key);
        }
        if let Some(parent) = self.parent_row(driver) {
            parent.children.insert(key);
        }
    }

    /// Returns the clocks that wait for a clock on this entity.
    pub(super) fn orphans_of(&self, parent: Entity) -> Vec<ClockKey> {
        let orphans = self.orphans.range((parent, 0)..=(parent, ClockKey::MAX));
        orphans.map(|&(_, key)| key).collect()
    }

    /// Returns the clock that keeps a list of those that it drives.
    fn parent_row(&mut self, driver: Driver) -> Option<&mut Row> {
        match driver {
            Driver::Clock(parent) if built_in_id(parent).is_none() => self.get_mut(parent),
            _ => None,
        }
    }

    pub(super) fn get(&self, key: ClockKey) -> Option<&Row> {
        self.rows.get(key as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: ClockKey) -> Option<&mut Row> {
        self.rows.get_mut(key as usize)?.as_mut()
    }

    /// Returns the clock of this key, unless another clock has the key by now.
    pub(super) fn get_of_age(&self, key: ClockKey, age: Age) -> Option<&Row> {
        self.get(key).filter(|row| row.age == age)
    }

    pub(super) fn key_of(&self, entity: Entity) -> Option<ClockKey> {
        self.by_entity.get(&entity).copied()
    }

    /// Returns all clocks by key.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ClockKey, &Row)> {
        let rows = (0..).zip(&self.rows);
        rows.filter_map(|(key, row)| Some((key, row.as_ref()?)))
    }

    /// Returns the number of keys, including those whose clocks are gone.
    pub(super) fn len(&self) -> ClockKey {
        self.rows.len() as ClockKey
    }

    /// Returns the clock that drives another one, if it is a clock.
    pub(super) fn parent(&self, key: ClockKey) -> Option<ClockKey> {
        match self.get(key)?.driver {
            Driver::Clock(parent) => Some(parent),
            Driver::Bevy | Driver::Missing | Driver::Manual => None,
        }
    }

    /// Returns a clock and all clocks above it, children before parents.
    pub(super) fn lineage(&self, key: ClockKey) -> SmallVec<[ClockKey; 8]> {
        let mut lineage = SmallVec::new();
        let mut at = Some(key);
        while let Some(key) = at {
            lineage.push(key);
            at = self.parent(key);
        }
        lineage
    }

    /// Returns the time on a clock. `top` returns the time at the top of its chain of parents.
    #[inline]
    pub(super) fn time_below(
        &self,
        key: ClockKey,
        top: impl FnOnce(ClockKey, &Row) -> Option<Reading>,
    ) -> Option<Reading> {
        let mut lineage = self.lineage(key);
        let at = lineage.pop()?;
        let mut time = top(at, self.get(at)?)?;
        while let Some(key) = lineage.pop() {
            time = self.get(key)?.time_at(time.now);
        }
        Some(time)
    }

    /// Returns the clocks that a clock drives, directly or not, parents before children.
    pub(super) fn descendants(&self, key: ClockKey) -> Vec<ClockKey> {
        if built_in_id(key).is_some() {
            let rows = self.iter();
            let under = rows.filter(|(_, row)| row.root == key && row.driver != Driver::Bevy);
            return under.map(|(key, _)| key).collect();
        }
        let mut found = Vec::new();
        let mut next = 0;
        let mut at = Some(key);
        while let Some(parent) = at {
            found.extend(self.get(parent).into_iter().flat_map(|row| &row.children));
            at = found.get(next).copied();
            next += 1;
        }
        found
    }

    pub(super) fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        for row in self.rows.iter_mut().flatten() {
            row.settings.parent.map_entities(mapper);
            row.entity.map_entities(mapper);
        }
        let by_entity = self.by_entity.iter();
        self.by_entity = by_entity
            .map(|(&entity, &key)| (mapper.get_mapped(entity), key))
            .collect();
        let orphans = self.iter().filter_map(|(key, row)| missing(key, row));
        self.orphans = orphans.collect();
    }
}

/// Returns the entity on which the parent of a clock should be, if the clock has none.
fn missing(key: ClockKey, row: &Row) -> Option<(Entity, ClockKey)> {
    match row.settings.parent.id()? {
        ClockId::Own(parent) if row.driver == Driver::Missing => Some((parent, key)),
        _ => None,
    }
}
