//! Copies of all clocks, to go back to, and the clocks that have changed since.

use alloc::{collections::BTreeSet, vec::Vec};

use bevy_ecs::{entity::MapEntities, prelude::*};
use bevy_platform::collections::HashSet;

use super::{
    Clock,
    id::ClockId,
    row::{Age, ClockKey, Row},
    table::ClockTable,
};

/// A copy of all clocks of a world.
#[derive(Clone, Debug)]
pub(crate) struct ClocksCopy {
    table: ClockTable,
    /// The components, which hold the settings with which the clocks were inserted.
    own: Vec<(Entity, Clock)>,
}

impl ClocksCopy {
    /// Copies the clocks of a world.
    pub(crate) fn of(world: &World) -> Self {
        let table = world.resource::<ClockTable>().clone();
        let own = table.rows.iter().filter_map(|(_, row)| {
            let entity = row.entity?;
            Some((entity, world.get::<Clock>(entity)?.clone()))
        });
        Self {
            own: own.collect(),
            table,
        }
    }

    pub(crate) fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        self.table.rows.map_entities(mapper);
        self.table.pending.map_entities(mapper);
        for (entity, clock) in &mut self.own {
            *entity = mapper.get_mapped(*entity);
            MapEntities::map_entities(clock, mapper);
        }
    }
}

/// Puts all clocks of a world back, and returns the age from which on clocks are later ones. The table is not in the
/// world, so the hooks of the components do nothing.
pub(crate) fn put_clocks_back(world: &mut World, table: &mut ClockTable, copy: ClocksCopy) -> Age {
    let first_later = copy.table.rows.next_age;
    let before = core::mem::replace(table, copy.table);
    for (entity, copied) in copy.own {
        if let Ok(mut entity) = world.get_entity_mut(entity)
            && entity.get() != Some(&copied)
        {
            entity.insert(copied);
        }
    }
    // The callbacks may be on the clocks as they were.
    table.has_moved = true;
    // A number that was handed out since then is not handed out again.
    table.rows.next_age = table.rows.next_age.max(before.rows.next_age);
    // All conditions of the world are known, and any of them may hold a clock.
    table.conditions = before.conditions;
    table.conditions.fill(true);
    first_later
}

/// The clocks that something other than the time has changed, the clocks that have come or gone, and
/// the clocks below all of these.
///
/// How far they have advanced no longer follows from their present speed.
#[derive(Debug, Default)]
pub(crate) struct ChangedClocks {
    keys: BTreeSet<ClockKey>,
    ids: HashSet<ClockId>,
}

impl ChangedClocks {
    /// Compares the clocks of a world with a copy. Those on the entities of `modified` have changed if they have
    /// run.
    pub(crate) fn since(
        copy: &ClocksCopy,
        world: &World,
        modified: impl Iterator<Item = Entity>,
    ) -> Self {
        let (before, now) = (&copy.table, world.resource::<ClockTable>());
        let mut changed = Self::default();
        for key in 0..before.rows.len().max(now.rows.len()) {
            let is_same = match (before.rows.get(key), now.rows.get(key)) {
                (Some(before), Some(now)) => before.has_only_run_to(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            if !is_same {
                changed.ids.extend(before.id(key));
                changed.add(now, key);
            }
        }
        for key in modified.filter_map(|clock| now.key_of(clock)) {
            let time = |table: &ClockTable| table.reading(key).map(|reading| reading.now);
            if time(before) != time(now) {
                changed.add(now, key);
            }
        }
        changed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn contains(&self, clock: ClockId) -> bool {
        self.ids.contains(&clock)
    }

    /// Returns the keys of the clocks. A clock that has come may have the key of one that is gone.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ClockKey> {
        self.keys.iter().copied()
    }

    /// Returns the entities of the clocks, including despawned ones.
    pub(crate) fn entities(&self) -> impl Iterator<Item = Entity> {
        self.ids.iter().filter_map(|&clock| match clock {
            ClockId::Own(entity) => Some(entity),
            _ => None,
        })
    }

    /// Adds a clock and the clocks below it.
    fn add(&mut self, table: &ClockTable, key: ClockKey) {
        for key in [key].into_iter().chain(table.rows.descendants(key)) {
            self.keys.insert(key);
            self.ids.extend(table.id(key));
        }
    }
}

impl Row {
    /// Returns `true` if this clock becomes `later` by the time of its parent alone.
    fn has_only_run_to(&self, later: &Self) -> bool {
        let place = |row: &Self| (row.entity, row.age, row.driver, row.root);
        place(self) == place(later)
            && self.settings == later.settings
            && self.brakes == later.brakes
            && later.seen >= self.seen
            && self.time_at(later.seen) == later.time
    }
}
