//! Copies of all clocks, to go back to.

use alloc::vec::Vec;
use core::fmt;

use bevy_ecs::{
    entity::{EntityHashMap, MapEntities},
    prelude::*,
};

use super::{
    Clock,
    built_in::BuiltInClocks,
    hooks::adopt_overwritten,
    row::{Age, ClockKey},
    shared::ClockTable,
    table::Table,
};

/// A copy of all clocks of a world.
#[derive(Clone)]
pub(crate) struct ClocksCopy(Table);

impl ClocksCopy {
    /// Copies the clocks of a world. Components that were overwritten have been adopted.
    pub(crate) fn of(world: &mut World) -> Self {
        adopt_overwritten(world);
        Self(world.resource::<ClockTable>().lock().clone())
    }

    pub(super) fn table(&self) -> &Table {
        &self.0
    }

    pub(crate) fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        self.0.map_entities(mapper);
    }
}

impl fmt::Debug for ClocksCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClocksCopy").finish_non_exhaustive()
    }
}

/// Puts all clocks of a world back. The components of the copied clocks are there.
pub(crate) fn put_clocks_back(world: &mut World, table: &ClockTable, ClocksCopy(copy): ClocksCopy) {
    let clocks = table.lock().put_back(copy);
    for (entity, key, age) in clocks {
        if let Some(mut clock) = world.get_mut::<Clock>(entity) {
            *clock.bypass_change_detection() = table.handle(key, age).into();
        }
    }
    world.insert_resource(BuiltInClocks::new(table));
}

impl Table {
    /// Becomes a copy of an earlier table, and returns the clocks on entities.
    fn put_back(&mut self, mut copy: Self) -> Vec<(Entity, ClockKey, Age)> {
        // This only tells whether a computed value still holds.
        self.counters.changes.note();
        // The callbacks may be on the clocks as they were.
        copy.has_moved = true;
        // A number that was handed out since then is not handed out again.
        copy.next_age = self.next_age.max(copy.next_age);
        copy.conditions = self.conditions.max(copy.conditions);
        *self = copy;
        self.own_clocks()
    }

    fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        for row in self.rows_mut() {
            row.state.parent.map_entities(mapper);
            if let Some(entity) = &mut row.entity {
                entity.map_entities(mapper);
            }
        }
        self.by_entity = mapped(&self.by_entity, mapper);
        self.load.waiting = mapped(&self.load.waiting, mapper);
        for held in self.held.values_mut() {
            *held = mapped(held, mapper);
        }
    }
}

fn mapped<V: Clone>(map: &EntityHashMap<V>, mapper: &mut impl EntityMapper) -> EntityHashMap<V> {
    let entries = map.iter();
    entries
        .map(|(&entity, value)| (mapper.get_mapped(entity), value.clone()))
        .collect()
}
