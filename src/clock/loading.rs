//! Loading clocks: their order, and the clocks that wait for their parent.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::prelude::*;

use super::{
    id::{ClockId, InvalidParent, NoSuchClock},
    load::Saved,
    readings::TimeSource,
    row::{Age, ClockKey, Order, Source},
    table::Table,
};

impl Table {
    /// Brings the clocks of a load into the order of the saved world. They share the places that
    /// they took on arrival.
    pub(super) fn order_loaded(&mut self) {
        if self.load.ordered == self.load.clocks.len() {
            return;
        }
        let mut clocks = mem::take(&mut self.load.clocks);
        clocks.retain(|&(_, age, key)| self.get_of_age(key, age).is_some());
        let places = clocks
            .iter()
            .filter_map(|&(.., key)| Some(self.get(key)?.order));
        let mut places: Vec<Order> = places.collect();
        places.sort_unstable();
        clocks.sort_unstable();
        for (&(.., key), place) in clocks.iter().zip(places) {
            if let Some(row) = self.get_mut(key) {
                row.order = place;
            }
        }
        self.load.ordered = clocks.len();
        self.load.clocks = clocks;
    }

    /// Ends a load: the next loaded clocks come after these.
    pub(super) fn end_load(&mut self) {
        self.order_loaded();
        self.load.clocks.clear();
        self.load.ordered = 0;
    }

    /// Returns an error for each clock whose parent has not arrived. It waits no longer.
    pub(super) fn take_orphans(&mut self) -> Vec<NoSuchClock> {
        if self.load.waiting.is_empty() {
            return Vec::new();
        }
        let waiting = mem::take(&mut self.load.waiting);
        let clocks = waiting.into_iter().flat_map(|(parent, clocks)| {
            let of = move |(key, age)| (age, key, parent);
            clocks.into_iter().map(of)
        });
        let mut clocks: Vec<_> = clocks.collect();
        clocks.sort_unstable();
        clocks.retain(|&(age, key, parent)| {
            self.get_of_age(key, age).is_some() && self.waits_for(key, parent)
        });
        for &(_, key, _) in &clocks {
            if let Some(row) = self.get_mut(key) {
                row.behind = 0;
            }
        }
        let parents = clocks.into_iter().map(|(.., parent)| parent);
        parents.map(|parent| NoSuchClock(parent.into())).collect()
    }

    /// Returns `true` if a clock has no source yet, and this parent.
    fn waits_for(&self, key: ClockKey, parent: Entity) -> bool {
        self.get(key).is_some_and(|row| {
            row.source == Source::Missing && row.state.parent == ClockId::Own(parent)
        })
    }

    /// Puts a clock that has waited for a parent under it. It has seen all time on the parent up to this
    /// moment, except for what it is behind.
    pub(super) fn adopt(
        &mut self,
        (key, age): (ClockKey, Age),
        parent: Entity,
        times: &impl TimeSource,
    ) -> Result<(), InvalidParent> {
        if self.get_of_age(key, age).is_some() && self.waits_for(key, parent) {
            let behind = self.get(key).map_or(0, |row| row.behind);
            self.set_parent(key, parent.into())?;
            self.fall_behind(key, behind, times);
        }
        Ok(())
    }

    /// Returns the part of a saved clock that is not its state.
    pub(super) fn saved(&mut self, key: ClockKey) -> Saved {
        self.order_loaded();
        self.settle(key);
        let Some(row) = self.get(key) else {
            return Saved::default();
        };
        let (order, behind) = (Some(row.order), row.behind);
        let parent = self.parent(key).and_then(|parent| self.settled(parent));
        let seen = self.source_now(key);
        let behind = match (parent, seen) {
            (Some(parent), Some(seen)) => parent.now.saturating_sub(seen).saturating_add(behind),
            _ => behind,
        };
        Saved { order, behind }
    }

    /// Lets a clock show all time on its parent up to this moment, except the last `behind`. The rest
    /// follows in its next run.
    pub(super) fn fall_behind(&mut self, key: ClockKey, behind: u64, times: &impl TimeSource) {
        let Some(parent) = self.parent(key).and_then(|parent| self.live(parent, times)) else {
            return;
        };
        self.settle(key);
        self.counters.changes.note();
        let epochs = self.counters.epochs;
        if let Some(row) = self.get_mut(key) {
            row.seen = parent.now.saturating_sub(behind);
            row.behind = behind - (parent.now - row.seen);
            row.added_in = Some(epochs[row.cadence as usize]);
        }
        self.reschedule(key);
    }
}
