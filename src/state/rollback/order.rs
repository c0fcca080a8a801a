//! The order of the entities that belong to another one.

use alloc::vec::Vec;

use bevy_ecs::{
    prelude::*,
    relationship::{RelationshipSourceCollection, RelationshipTarget},
};

use super::{history::History, names::Names};

/// The entities of the targets of a relationship, in the order in which they were.
pub(super) type Order = History<Vec<Entity>>;

impl Order {
    /// Notes the entities of a target, without the one that joins them.
    pub(super) fn note_list<T: RelationshipTarget>(
        &mut self,
        target: Entity,
        list: Option<&T>,
        joins: Option<Entity>,
    ) {
        let earlier = |&entity: &Entity| Some(entity) != joins;
        self.note(target, || Some(list?.iter().filter(earlier).collect()));
    }

    /// Returns the targets whose entities differ from the noted ones.
    pub(super) fn differing<T: RelationshipTarget>(
        &self,
        world: &World,
    ) -> impl Iterator<Item = Entity> {
        let differing = self.iter().filter(|&(target, list)| {
            let now = world.get::<T>(target).into_iter().flat_map(T::iter);
            !now.eq(list.into_iter().flatten().copied())
        });
        differing.map(|(target, _)| target)
    }

    /// Brings the entities of each target into their order.
    pub(super) fn put_in_order<T: RelationshipTarget>(&self, world: &mut World, names: &Names) {
        for (target, list) in self.first(names) {
            let list = list.into_iter().flatten();
            let list = list.map(|&entity| names.latest(entity));
            let Some(mut target) = world.get_mut::<T>(target) else {
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

impl Clone for Order {
    fn clone(&self) -> Self {
        self.copied(Vec::clone)
    }
}
