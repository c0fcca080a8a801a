//! The clocks of a world: one row each, by key and by entity.

use alloc::{collections::BTreeMap, vec::Vec};

use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{
    changes::Changes,
    id::{ClockId, NoSuchClock},
    load::{Load, Saved},
    reading::Reading,
    row::{
        Age, BevyTime, Brakes, Cadence, ClockKey, Live, Moment, Order, Plan, Row, RunReading,
        Source, Ticks,
    },
    state::ClockState,
    visits::visit,
};

const REAL: ClockKey = 0;
pub(super) const VIRTUAL: ClockKey = 1;
const FRAMES: ClockKey = 2;
const FIXED: ClockKey = 3;

/// The built-in clocks by key, which is also their age.
pub(super) const BUILT_IN: [(ClockId, Source); 4] = [
    (ClockId::Real, Source::Bevy(BevyTime::Real)),
    (ClockId::Virtual, Source::Bevy(BevyTime::Virtual)),
    (ClockId::Frames, Source::Frames),
    (ClockId::Fixed, Source::Bevy(BevyTime::Fixed)),
];

/// Returns the name of the clock of this key, if it is a built-in one.
pub(crate) fn built_in_id(key: ClockKey) -> Option<ClockId> {
    BUILT_IN.get(key as usize).map(|&(id, _)| id)
}

/// All clocks of a world. The built-in ones have no entity, so they can't be despawned.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    rows: Vec<Option<Row>>,
    vacant: Vec<ClockKey>,
    pub(super) by_entity: EntityHashMap<ClockKey>,
    pub(super) next_age: Age,
    pub(super) load: Load,
    pub(super) counters: Counters,
    /// Kept for its memory: the clocks that a search for due ones has yet to visit.
    pub(super) to_visit: Vec<ClockKey>,
    /// Kept for its memory: the clocks that a search has found.
    pub(super) found: Vec<(Order, Age, ClockKey)>,
    /// The clocks that have seen their source ahead of the next run.
    pub(super) ahead: Vec<(ClockKey, Age)>,
    /// The clocks whose components may have been overwritten, each once.
    overwritten: Vec<(ClockKey, Age)>,
    /// Whether a clock has changed its cadence, which callbacks have not followed yet.
    pub(super) has_moved: bool,
    /// The clocks that each condition holds.
    pub(super) held: BTreeMap<u64, Held>,
    /// The number of conditions so far.
    pub(super) conditions: u64,
}

/// The clocks that a condition holds.
pub(super) type Held = EntityHashMap<(ClockKey, Age)>;

/// Counters that tell whether something that was computed still holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// The runs of each cadence.
    pub(super) runs: [u64; 2],
    /// The runs of each cadence, and the steps of fast-forwards between them.
    pub(super) epochs: [u64; 2],
    pub(super) changes: Changes,
}

/// A new clock: its source, the time that the source shows now, and its moment.
pub(super) struct Start {
    pub(super) source: Source,
    pub(super) root: ClockKey,
    pub(super) seen: u64,
    pub(super) moment: Option<Moment>,
    /// The reading of the source in this run.
    pub(super) run: Reading,
}

impl Start {
    /// A clock whose parent does not exist.
    pub(super) const ORPHANED: Self = Self {
        source: Source::Missing,
        root: VIRTUAL,
        seen: 0,
        moment: None,
        run: Reading {
            now: 0,
            stopped: true,
            offset: 0,
        },
    };
}

impl Table {
    /// Adds a clock, and returns its key and age. Loaded data may give it a place in the order.
    pub(super) fn add(
        &mut self,
        entity: Option<Entity>,
        (state, saved): (ClockState, Saved),
        brakes: Brakes,
        start: Start,
    ) -> (ClockKey, Age) {
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.rows.push(None);
            self.rows.len() as ClockKey - 1
        });
        let cadence = match start.root {
            FIXED => Cadence::FixedStep,
            _ => Cadence::Frame,
        };
        let mut row = Row {
            entity,
            age: self.next_age,
            order: self.next_age,
            source: start.source,
            root: start.root,
            cadence,
            children: Default::default(),
            state,
            seen: start.seen,
            behind: match start.source {
                Source::Missing => saved.behind,
                _ => 0,
            },
            added_in: Some(self.counters.epochs[cadence as usize]),
            brakes,
            run: RunReading {
                epoch: self.counters.epochs[cadence as usize],
                reading: state.read(false),
            },
            ticks: Ticks {
                run: self.counters.runs[cadence as usize],
                last: state.now,
                previous: state.now,
            },
            live: Live {
                moment: start.moment,
                now: state.now,
            },
            plan: Plan::default(),
            is_noted: false,
        };
        row.run.reading.stopped = start.run.stopped || row.is_stopped();
        let age = row.age;
        self.next_age += 1;
        if let Some(entity) = entity {
            self.by_entity.insert(entity, key);
        }
        if let Source::Clock(parent, _) = start.source
            && let Some(parent) = self.get_mut(parent)
        {
            parent.children.insert(key);
        }
        self.rows[key as usize] = Some(row);
        self.load.add(saved.order, (key, age));
        if start.seen > start.run.now {
            self.ahead.push((key, age));
        }
        (key, age)
    }

    /// Removes the clock of `entity`, and returns its last state. Its children stop for good.
    pub(super) fn remove(&mut self, entity: Entity) -> Option<ClockState> {
        let key = *self.by_entity.get(&entity)?;
        self.settle(key);
        let children = self.get(key).map(|row| row.children.clone());
        for child in children.into_iter().flatten() {
            self.settle(child);
            if let Some(child) = self.get_mut(child) {
                (child.source, child.behind) = (Source::Missing, 0);
                child.plan.entry = None;
            }
        }
        self.leave_parent(key);
        self.counters.changes.note();
        self.by_entity.remove(&entity);
        self.vacant.push(key);
        let row = self.rows.get_mut(key as usize)?.take()?;
        Some(row.state)
    }

    /// Removes a clock from the children of its parent.
    pub(super) fn leave_parent(&mut self, key: ClockKey) {
        let entry = self.get_mut(key).and_then(|row| row.plan.entry.take());
        let Some(parent) = self.parent(key) else {
            return;
        };
        if let Some(row) = self.get_mut(parent) {
            row.children.remove(&key);
            if let Some(entry) = entry {
                row.plan.children.remove(&(entry, key));
            }
        }
        self.reschedule(parent);
    }

    /// Notes that the component of a clock may have been overwritten.
    pub(super) fn note_overwritten(&mut self, key: ClockKey) {
        if let Some(row) = self.get_mut(key)
            && !row.is_noted
        {
            row.is_noted = true;
            let age = row.age;
            self.overwritten.push((key, age));
        }
    }

    /// Returns `true` if the component of a clock may have been overwritten.
    pub(super) fn is_overwritten(&self) -> bool {
        !self.overwritten.is_empty()
    }

    /// Returns the clocks whose components may have been overwritten.
    pub(super) fn take_overwritten(&mut self) -> Vec<(ClockKey, Age)> {
        let overwritten = core::mem::take(&mut self.overwritten);
        for &(key, _) in &overwritten {
            if let Some(row) = self.get_mut(key) {
                row.is_noted = false;
            }
        }
        overwritten
    }

    pub(super) fn get(&self, key: ClockKey) -> Option<&Row> {
        visit();
        self.rows.get(key as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: ClockKey) -> Option<&mut Row> {
        visit();
        self.rows.get_mut(key as usize)?.as_mut()
    }

    /// Returns the clock of this key, unless another clock has the key by now.
    pub(super) fn get_of_age(&self, key: ClockKey, age: Age) -> Option<&Row> {
        self.get(key).filter(|row| row.age == age)
    }

    pub(super) fn find(&self, clock: ClockId) -> Result<(ClockKey, &Row), NoSuchClock> {
        let key = match clock {
            ClockId::Own(entity) => self.key_of(entity),
            ClockId::Virtual => Some(VIRTUAL),
            built_in => BUILT_IN
                .iter()
                .position(|&(id, _)| id == built_in)
                .map(|key| key as ClockKey),
        };
        let found = key.and_then(|key| Some((key, self.get(key)?)));
        found.ok_or(NoSuchClock(clock))
    }

    pub(super) fn key_of(&self, entity: Entity) -> Option<ClockKey> {
        self.by_entity.get(&entity).copied()
    }

    pub(super) fn id(&self, key: ClockKey) -> Option<ClockId> {
        built_in_id(key).or_else(|| self.get(key)?.entity.map(ClockId::Own))
    }

    /// Returns the number of keys that clocks have had.
    pub(super) fn len(&self) -> ClockKey {
        self.rows.len() as ClockKey
    }

    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.rows.iter_mut().flatten()
    }

    /// Returns the clocks on entities.
    pub(super) fn own_clocks(&self) -> Vec<(Entity, ClockKey, Age)> {
        let rows = (0..).zip(&self.rows);
        let own = rows.filter_map(|(key, row)| {
            let row = row.as_ref()?;
            Some((row.entity?, key, row.age))
        });
        own.collect()
    }

    /// Returns the built-in clocks of a cadence.
    pub(super) fn built_in(cadence: Cadence) -> &'static [ClockKey] {
        match cadence {
            Cadence::Frame => &[REAL, VIRTUAL, FRAMES],
            Cadence::FixedStep => &[FIXED],
        }
    }

    /// Returns the clock that drives another one, unless it is gone.
    pub(super) fn parent(&self, key: ClockKey) -> Option<ClockKey> {
        match self.get(key)?.source {
            Source::Clock(parent, age) => self.get_of_age(parent, age).map(|_| parent),
            Source::Bevy(_) | Source::Frames | Source::Missing => None,
        }
    }

    /// Returns `true` if this clock, and every clock above it, has a source and is not stopped. The
    /// clocks above a clock that is fast-forwarded do not count.
    pub(super) fn is_running(&self, key: ClockKey, forwarded: Option<ClockKey>) -> bool {
        let mut at = key;
        loop {
            match self.get(at) {
                Some(row) if !row.is_stopped() => {}
                _ => return false,
            }
            if forwarded == Some(at) {
                return true;
            }
            match self.parent(at) {
                Some(parent) => at = parent,
                None => return !self.has_lost_parent(at),
            }
        }
    }

    /// Returns `true` if the clock or an ancestor of it has lost its parent.
    pub(super) fn is_orphaned(&self, key: ClockKey) -> bool {
        let mut at = key;
        while let Some(parent) = self.parent(at) {
            at = parent;
        }
        self.has_lost_parent(at)
    }

    /// Returns `true` if the parent of a clock is gone, or never existed.
    pub(super) fn has_lost_parent(&self, key: ClockKey) -> bool {
        let source = self.get(key).map(|row| row.source);
        matches!(source, Some(Source::Clock(..) | Source::Missing)) && self.parent(key).is_none()
    }

    /// Returns the descendants of a clock, parents before children.
    pub(super) fn descendants(&self, key: ClockKey) -> Vec<ClockKey> {
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
}
