//! The order of the entities that belong to another one.

use alloc::vec::Vec;

use bevy_ecs::{
    prelude::*,
    relationship::{RelationshipSourceCollection, RelationshipTarget},
};

use super::names::Names;
use crate::journal::Journal;

/// The entities of the targets of a relationship that have changed, in the order in which they were.
#[derive(Clone, Debug, Default)]
pub(super) struct Order(Journal<Entity, Option<Vec<Entity>>>);

impl Order {
    /// Notes that a target had no entities.
    pub(super) fn note_empty(&mut self, target: Entity) {
        self.0.note(target, || None);
    }

    /// Notes the entities of a target that exists, before they change.
    pub(super) fn note<T: RelationshipTarget>(&mut self, target: Entity, list: Option<&T>) {
        self.0.note(target, || Some(list?.iter().collect()));
    }

    pub(super) fn append(&mut self, later: Self) {
        self.0.append(later.0);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the targets that have changed.
    pub(super) fn changed(&self) -> impl Iterator<Item = Entity> {
        self.0.iter().map(|(target, _)| target)
    }

    /// Returns the targets that had entities.
    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        let lists = self.0.iter();
        lists.filter_map(|(target, list)| list.is_some().then_some(target))
    }

    /// Returns `true` if a target had entities.
    pub(super) fn had<T: RelationshipTarget>(
        &self,
        world: &World,
        names: &Names,
        target: Entity,
    ) -> bool {
        let noted = names.up_to(target).filter_map(|name| self.0.get(name));
        let is_there = || world.get::<T>(target).is_some();
        noted.last().map_or_else(is_there, Option::is_some)
    }

    /// Brings the entities of each target into their order.
    pub(super) fn put_back<T: RelationshipTarget>(&self, world: &mut World, names: &Names) {
        for (target, list) in self.0.under_first_names(|target| names.earlier(target)) {
            let list = list.iter().flatten().map(|&entity| names.latest(entity));
            let Some(mut target) = world.get_mut::<T>(names.latest(target)) else {
                continue;
            };
            if !target.iter().eq(list.clone()) {
                let entities = target.bypass_change_detection().collection_mut_risky();
                entities.clear();
                entities.extend_from_iter(list);
            }
        }
    }
}
