//! The clocks of one load: everything that is inserted between two readings, in any order.

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};
use core::mem;

use bevy_ecs::{entity::MapEntities, prelude::*};

use super::{
    Parent,
    row::{Age, ClockKey, Order},
    table::ClockTable,
};

/// The clocks of one load.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// The clocks from the first loaded one on, each with its saved place. The new ones come after
    /// the loaded ones.
    pub(super) clocks: Vec<(Order, Age, ClockKey)>,
    /// The clocks whose parents have not arrived yet, with these parents.
    pub(super) waiting: BTreeMap<ClockKey, (Age, Parent)>,
    /// The entities with modifiers whose clock has not arrived yet.
    pub(super) modified: VecDeque<Entity>,
    /// The entities of clocks that got another parent, which their modifiers have yet to follow.
    pub(super) reparented: VecDeque<Entity>,
}

impl MapEntities for Load {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        let parents = self.waiting.values_mut();
        parents.for_each(|(_, parent)| parent.map_entities(mapper));
        let clocks = self.modified.iter_mut().chain(&mut self.reparented);
        clocks.for_each(|clock| *clock = mapper.get_mapped(*clock));
    }
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
    pub(crate) fn is_settled(&self) -> bool {
        let load = &self.load;
        load.clocks.is_empty() && load.waiting.is_empty() && !self.is_any_modified()
    }

    /// Returns `true` if a parent or a modified clock has not arrived yet, or if callbacks have to follow a clock.
    #[cfg(feature = "worlds")]
    pub(crate) fn awaits_run(&self) -> bool {
        !self.load.waiting.is_empty() || self.is_any_modified() || self.has_moved
    }

    /// Returns `true` if entities with modifiers have no clock yet, or modifiers follow a clock to another parent.
    pub(crate) fn is_any_modified(&self) -> bool {
        !self.load.modified.is_empty() || !self.load.reparented.is_empty()
    }

    /// Returns the entities with modifiers whose clock has not arrived yet.
    pub(crate) fn modified(&mut self) -> &mut VecDeque<Entity> {
        &mut self.load.modified
    }

    /// Returns the entities of clocks that got another parent, which their modifiers have yet to follow.
    pub(crate) fn reparented(&mut self) -> &mut VecDeque<Entity> {
        &mut self.load.reparented
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
}
