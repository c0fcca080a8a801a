//! The clocks that have changed since a copy.

use alloc::collections::BTreeSet;

use bevy_ecs::prelude::*;
use bevy_platform::collections::HashSet;

use super::{
    copy::ClocksCopy,
    id::ClockId,
    row::{ClockKey, Row},
    shared::ClockTable,
    state::ClockState,
    table::Table,
};

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
    /// Compares the clocks of a world with a copy. Components that were overwritten have been adopted.
    pub(crate) fn since(copy: &ClocksCopy, table: &ClockTable) -> Self {
        let (before, now) = (copy.table(), table.lock());
        let mut changed = Self::default();
        for key in 0..before.len().max(now.len()) {
            let is_same = match (before.get(key), now.get(key)) {
                (Some(before), Some(now)) => before.has_only_run_to(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            if !is_same {
                changed.ids.extend(before.id(key));
                changed.add(&now, key);
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

    pub(crate) fn contains_key(&self, clock: ClockKey) -> bool {
        self.keys.contains(&clock)
    }

    /// Returns the keys of the clocks. A clock that has come may have the key of one that is gone.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ClockKey> {
        self.keys.iter().copied()
    }

    /// Returns the entities of the clocks, also of those that are gone.
    pub(crate) fn entities(&self) -> impl Iterator<Item = Entity> {
        self.ids.iter().filter_map(|&clock| match clock {
            ClockId::Own(entity) => Some(entity),
            _ => None,
        })
    }

    /// Adds a clock and the clocks below it.
    fn add(&mut self, table: &Table, key: ClockKey) {
        for key in [key].into_iter().chain(table.descendants(key)) {
            self.keys.insert(key);
            self.ids.extend(table.id(key));
        }
    }
}

impl Row {
    /// Returns `true` if this clock becomes `later` by the time of its source alone.
    fn has_only_run_to(&self, later: &Self) -> bool {
        let settings = |row: &Self| {
            let (state, brakes) = (row.state, row.brakes);
            (
                (row.entity, row.age, row.order, row.source, row.root),
                (state.parent, state.speed, state.paused, state.offset),
                (brakes.factor, brakes.disabled, brakes.holds),
            )
        };
        let time = |state: ClockState| (state.now, state.carry);
        let has_run = match later.seen.checked_sub(self.seen) {
            None => false,
            Some(0) => time(self.state) == time(later.state) && self.behind == later.behind,
            Some(_) => time(self.state_at(later.seen)) == time(later.state) && later.behind == 0,
        };
        settings(self) == settings(later) && has_run
    }
}
