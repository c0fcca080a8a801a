//! The clocks of a world: one row each, by key, entity and age.

use alloc::{format, vec::Vec};
use core::{iter, ops::Range};

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{Clock, ClockId, NoSuchClock, reading::Reading, visits::visit};

/// The index of a clock in the table. A key is reused once its clock is gone.
pub(crate) type ClockKey = u32;

/// The number of clocks added before this one. Clocks run in this order.
pub(crate) type Age = u64;

const REAL: ClockKey = 0;
const VIRTUAL: ClockKey = 1;
const FRAMES: ClockKey = 2;
const FIXED: ClockKey = 3;

/// The built-in clocks by key, which is also their age.
const BUILT_IN: [(ClockId, Source, Cadence); 4] = [
    (ClockId::Real, Source::Bevy(BevyTime::Real), Cadence::Frame),
    (
        ClockId::Virtual,
        Source::Bevy(BevyTime::Virtual),
        Cadence::Frame,
    ),
    (ClockId::Frames, Source::Frames, Cadence::Frame),
    (
        ClockId::Fixed,
        Source::Bevy(BevyTime::Fixed),
        Cadence::FixedStep,
    ),
];

/// The source of time of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Bevy(BevyTime),
    /// The number of frames.
    Frames,
    /// The clock of this key and age, which is older than the clock that it drives.
    Clock(ClockKey, Age),
    /// Nothing, because the parent does not exist.
    Missing,
}

/// One of Bevy's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BevyTime {
    Real,
    Virtual,
    Fixed,
}

/// How often a clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// Once a frame.
    Frame,
    /// Once a step of the fixed schedule.
    FixedStep,
}

/// The clocks that a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The clocks of a cadence.
    Of(Cadence),
    /// The clock of this age and its descendants.
    Under(Age),
}

/// All clocks of a world.
#[derive(Resource, Debug)]
pub(crate) struct ClockTable {
    rows: Vec<Option<Row>>,
    vacant: Vec<ClockKey>,
    /// By age. The entry of a removed clock stays until such entries are half of all. A place is
    /// valid until a clock is added or removed.
    by_age: Vec<(Age, ClockKey)>,
    by_entity: EntityHashMap<ClockKey>,
    next_age: Age,
    /// The entities of the built-in clocks, by key.
    built_in: Vec<Entity>,
}

/// A clock.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) entity: Entity,
    pub(crate) age: Age,
    pub(crate) cadence: Cadence,
    pub(crate) source: Source,
    pub(crate) reading: Reading,
    /// The time of the source when the clock was last read.
    pub(crate) seen: u64,
    /// The time of the clock in the last run of its cadence.
    pub(crate) last_run: u64,
    /// The time on the clock between the last two runs of its cadence.
    pub(crate) delta: u64,
}

impl ClockTable {
    /// Spawns the built-in clocks.
    pub(crate) fn new(world: &mut World) -> Self {
        let mut table = Self {
            rows: Vec::new(),
            vacant: Vec::new(),
            by_age: Vec::new(),
            by_entity: EntityHashMap::default(),
            next_age: 0,
            built_in: Vec::new(),
        };
        for (id, source, cadence) in BUILT_IN {
            let name = Name::new(format!("{id} clock"));
            let entity = world.spawn((name, Clock::of(id))).id();
            table.built_in.push(entity);
            let key = table.add(entity, (source, cadence), Reading::default(), 0);
            if let Some(reading) = table.read_now(world, key)
                && let Some(row) = table.get_mut(key)
            {
                row.last_run = reading.now;
            }
        }
        table
    }

    /// Adds the clock of `entity`, whose source shows `seen` now, and returns its key.
    pub(super) fn add(
        &mut self,
        entity: Entity,
        (source, cadence): (Source, Cadence),
        reading: Reading,
        seen: u64,
    ) -> ClockKey {
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() as ClockKey - 1
        });
        let age = self.next_age;
        self.next_age += 1;
        let row = Row::new(entity, age, (source, cadence), reading, seen);
        self.put(key, row);
        key
    }

    /// Returns the source of a built-in clock.
    pub(super) fn built_in_source(&self, entity: Entity) -> Option<Source> {
        let (_, source, _) = BUILT_IN[self.built_in_index(entity)?];
        Some(source)
    }

    /// Adds a built-in clock again after its `Clock` was removed. Its source shows `seen` now.
    pub(super) fn restore(&mut self, entity: Entity, reading: Reading, seen: u64) {
        if let Some(nth) = self.built_in_index(entity) {
            let (_, source, cadence) = BUILT_IN[nth];
            let row = Row::new(entity, nth as Age, (source, cadence), reading, seen);
            self.put(nth as ClockKey, row);
        }
    }

    fn built_in_index(&self, entity: Entity) -> Option<usize> {
        let mut built_in = self.built_in.iter();
        built_in.position(|&built_in| built_in == entity)
    }

    fn put(&mut self, key: ClockKey, row: Row) {
        // A built-in clock that is restored still has its entry.
        if self.by_age.last().is_none_or(|&(last, _)| last < row.age) {
            self.by_age.push((row.age, key));
        }
        self.by_entity.insert(row.entity, key);
        self.rows[key as usize] = Some(row);
    }

    /// Removes the clock of `entity`. Its children stop for good.
    pub(super) fn remove(&mut self, entity: Entity) {
        let Some(key) = self.by_entity.remove(&entity) else {
            return;
        };
        self.rows[key as usize] = None;
        if key > FIXED {
            self.vacant.push(key);
        } else {
            self.orphan_children_of_built_in(key);
        }
        if self.by_age.len() > 2 * self.by_entity.len() + BUILT_IN.len() {
            self.drop_old_entries();
        }
    }

    /// Stops the children of a built-in clock. It may be restored with its key and age, which are
    /// reserved for it.
    fn orphan_children_of_built_in(&mut self, key: ClockKey) {
        for row in self.rows.iter_mut().flatten() {
            visit();
            if matches!(row.source, Source::Clock(parent, _) if parent == key) {
                row.source = Source::Missing;
            }
        }
    }

    /// Drops the entries of removed clocks, except for built-in ones, which may be restored.
    fn drop_old_entries(&mut self) {
        let rows = &self.rows;
        let age_of = |key: ClockKey| rows[key as usize].as_ref().map(|row| row.age);
        self.by_age.retain(|&(age, key)| {
            visit();
            key <= FIXED || age_of(key) == Some(age)
        });
    }

    pub(crate) fn get(&self, key: ClockKey) -> Option<&Row> {
        self.rows.get(key as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: ClockKey) -> Option<&mut Row> {
        self.rows.get_mut(key as usize)?.as_mut()
    }

    pub(crate) fn find(&self, clock: ClockId) -> Result<(ClockKey, &Row), NoSuchClock> {
        let key = match built_in_key(clock) {
            Ok(key) => Some(key),
            Err(entity) => self.key_of(entity),
        };
        let found = key.and_then(|key| Some((key, self.get(key)?)));
        found.ok_or(NoSuchClock(clock))
    }

    /// Returns the entity that carries a clock, or should carry it.
    pub(super) fn entity_of(&self, clock: ClockId) -> Option<Entity> {
        match built_in_key(clock) {
            Ok(key) => self.built_in.get(key as usize).copied(),
            Err(entity) => Some(entity),
        }
    }

    /// Returns the key of the clock on `entity`, which may be a built-in one.
    pub(crate) fn key_of(&self, entity: Entity) -> Option<ClockKey> {
        self.by_entity.get(&entity).copied()
    }

    pub(crate) fn id(&self, key: ClockKey) -> Option<ClockId> {
        Some(match key {
            REAL => ClockId::Real,
            VIRTUAL => ClockId::Virtual,
            FRAMES => ClockId::Frames,
            FIXED => ClockId::Fixed,
            _ => ClockId::Own(self.get(key)?.entity),
        })
    }

    /// Returns the clocks by age.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClockKey, &Row)> {
        self.after(None)
    }

    /// Returns the first clock in `scope` that is younger than `age`.
    ///
    /// A loop that calls this sees clocks that are added or removed in the meantime.
    pub(crate) fn next(&self, scope: Scope, age: Option<Age>) -> Option<(ClockKey, &Row)> {
        let mut younger = self.after(age);
        younger.find(|(_, row)| self.is_in(row, scope))
    }

    pub(crate) fn is_in(&self, row: &Row, scope: Scope) -> bool {
        match scope {
            Scope::Of(cadence) => row.cadence == cadence,
            Scope::Under(root) => self.lineage(row).any(|row| row.age == root),
        }
    }

    /// Iterates over a clock and its ancestors.
    pub(crate) fn lineage<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = &'a Row> {
        // Each clock is older than the one before, so the iteration ends.
        iter::successors(Some(row), |row| self.parent(row))
    }

    /// Returns the clock that drives another one, unless it is gone.
    pub(super) fn parent(&self, row: &Row) -> Option<&Row> {
        match row.source {
            Source::Clock(key, age) => self.get(key).filter(|parent| parent.age == age),
            Source::Bevy(_) | Source::Frames | Source::Missing => None,
        }
    }

    /// Returns `true` if the clock or an ancestor of it has lost its parent.
    pub(crate) fn is_orphaned(&self, row: &Row) -> bool {
        self.lineage(row).any(|row| self.has_lost_parent(row))
    }

    /// Returns `true` if the parent of a clock is gone, or never existed.
    pub(super) fn has_lost_parent(&self, row: &Row) -> bool {
        matches!(row.source, Source::Clock(..) | Source::Missing) && self.parent(row).is_none()
    }

    fn after(&self, age: Option<Age>) -> impl Iterator<Item = (ClockKey, &Row)> {
        self.places_after(age).filter_map(|place| self.at(place))
    }

    /// Returns the places of the clocks that are younger than `age`, in the order of age.
    pub(super) fn places_after(&self, age: Option<Age>) -> Range<usize> {
        let is_older = |&(other, _): &(Age, ClockKey)| Some(other) <= age;
        self.by_age.partition_point(is_older)..self.by_age.len()
    }

    /// Returns the clock at a place in the order of age, unless the clock was removed.
    pub(super) fn at(&self, place: usize) -> Option<(ClockKey, &Row)> {
        visit();
        let &(age, key) = self.by_age.get(place)?;
        // Another clock may have the key by now.
        let row = self.get(key).filter(|row| row.age == age)?;
        Some((key, row))
    }
}

impl Row {
    fn new(
        entity: Entity,
        age: Age,
        (source, cadence): (Source, Cadence),
        reading: Reading,
        seen: u64,
    ) -> Self {
        Self {
            entity,
            age,
            cadence,
            source,
            reading,
            seen,
            last_run: reading.now,
            delta: 0,
        }
    }
}

/// Returns the key of a built-in clock, or the entity of any other clock.
fn built_in_key(clock: ClockId) -> Result<ClockKey, Entity> {
    match clock {
        ClockId::Real => Ok(REAL),
        ClockId::Virtual => Ok(VIRTUAL),
        ClockId::Frames => Ok(FRAMES),
        ClockId::Fixed => Ok(FIXED),
        ClockId::Own(entity) => Err(entity),
    }
}
