//! The clocks of one load: everything that is inserted between two readings, in any order.

use alloc::vec::Vec;
use core::{mem, time::Duration};

use bevy_ecs::prelude::*;

use super::{
    row::{Age, ClockKey, Order},
    table::ClockTable,
    time::Reading,
};

/// The time with which a clock starts in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedTime {
    pub(super) now: Duration,
    /// The fraction of a nanosecond that has passed beyond `now`, in units of 2^-64.
    pub(super) fraction: u64,
    /// The place among the clocks of the saved world. A new clock has none.
    pub(super) order: Option<Order>,
    /// If it is `false`, the `OnClock` of its entity chooses the parent.
    pub(super) names_parent: bool,
}

impl SavedTime {
    pub(super) fn new(time: &Reading, order: Option<Order>) -> Self {
        Self {
            now: time.shown_now(),
            fraction: time.carry,
            order,
            names_parent: true,
        }
    }

    pub(super) fn time(&self) -> Reading {
        let mut time = Reading::ZERO;
        time.set_shown(self.now);
        time.carry = self.fraction;
        time
    }
}

/// The clocks of one load.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// The clocks from the first loaded one on, each with its saved place. The new ones come after
    /// the loaded ones.
    clocks: Vec<(Order, Age, ClockKey)>,
    /// The clocks whose parents have not arrived yet.
    pub(super) waiting: Vec<(ClockKey, Age)>,
    /// The entities with modifiers whose clock has not arrived yet.
    pub(super) modified: Vec<Entity>,
}

impl Load {
    pub(super) fn add(&mut self, order: Option<Order>, (key, age): (ClockKey, Age)) {
        if order.is_some() || !self.clocks.is_empty() {
            self.clocks.push((order.unwrap_or(Order::MAX), age, key));
        }
    }
}

impl ClockTable {
    /// Returns `true` if no clock was loaded, and none waits for its parent or for modifiers.
    pub(super) fn is_settled(&self) -> bool {
        let Load {
            clocks,
            waiting,
            modified,
        } = &self.load;
        clocks.is_empty() && waiting.is_empty() && modified.is_empty() && self.rows.orphans == 0
    }

    /// Returns `true` if a parent or a modified clock has not arrived yet.
    #[cfg(feature = "worlds")]
    pub(crate) fn is_loading(&self) -> bool {
        !self.load.waiting.is_empty() || !self.load.modified.is_empty()
    }

    /// Takes the entities with modifiers whose clock has not arrived.
    pub(crate) fn take_modified(&mut self) -> Vec<Entity> {
        let mut modified = mem::take(&mut self.load.modified);
        modified.retain(|&entity| self.key_of(entity).is_none());
        modified
    }

    /// Brings the clocks of a load into the order of the saved world. They share the places that
    /// they took on arrival.
    pub(super) fn order_loaded(&mut self) {
        if self.load.clocks.is_empty() {
            return;
        }
        let mut clocks = mem::take(&mut self.load.clocks);
        clocks.retain(|&(_, age, key)| self.rows.get_of_age(key, age).is_some());
        clocks.sort_unstable();
        let places = clocks.iter();
        let places = places.filter_map(|&(.., key)| Some(self.rows.get(key)?.order));
        let mut places: Vec<Order> = places.collect();
        places.sort_unstable();
        for (&(.., key), place) in clocks.iter().zip(places) {
            if let Some(row) = self.rows.get_mut(key) {
                row.order = place;
            }
        }
        self.load.clocks = clocks;
    }

    /// Ends a load: the next loaded clocks come after these.
    pub(super) fn end_load(&mut self) {
        self.order_loaded();
        self.load.clocks.clear();
    }
}
