//! What waits for the next reading: clocks and parents may be inserted in any order.

use alloc::collections::{BTreeMap, VecDeque};

use bevy_ecs::{entity::MapEntities, prelude::*};

use super::{
    Parent,
    row::{Age, ClockKey},
    table::ClockTable,
};

/// What waits for the next reading.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    /// The clocks whose parents have not arrived yet, with these parents.
    pub(super) waiting: BTreeMap<ClockKey, (Age, Parent)>,
    /// The entities with modifiers whose clock has not arrived yet.
    pub(super) modified: VecDeque<Entity>,
    /// The entities of clocks that got another parent, which their modifiers have yet to follow.
    pub(super) reparented: VecDeque<Entity>,
}

impl MapEntities for Pending {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        let parents = self.waiting.values_mut();
        parents.for_each(|(_, parent)| parent.map_entities(mapper));
        let clocks = self.modified.iter_mut().chain(&mut self.reparented);
        clocks.for_each(|clock| *clock = mapper.get_mapped(*clock));
    }
}

impl ClockTable {
    /// Returns `true` if no clock waits for its parent or for modifiers.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.waiting.is_empty() && !self.is_any_modified()
    }

    /// Returns `true` if a parent or a modified clock has not arrived yet, or if callbacks have to follow a clock.
    #[cfg(feature = "worlds")]
    pub(crate) fn awaits_run(&self) -> bool {
        !self.pending.waiting.is_empty() || self.is_any_modified() || self.has_moved
    }

    /// Returns `true` if entities with modifiers have no clock yet, or modifiers follow a clock to another parent.
    pub(crate) fn is_any_modified(&self) -> bool {
        !self.pending.modified.is_empty() || !self.pending.reparented.is_empty()
    }

    /// Returns the entities with modifiers whose clock has not arrived yet.
    pub(crate) fn modified(&mut self) -> &mut VecDeque<Entity> {
        &mut self.pending.modified
    }

    /// Returns the entities of clocks that got another parent, which their modifiers have yet to follow.
    pub(crate) fn reparented(&mut self) -> &mut VecDeque<Entity> {
        &mut self.pending.reparented
    }
}
