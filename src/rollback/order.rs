//! The order of the entities that belong to another one.

use alloc::vec::Vec;

use bevy_ecs::{
    prelude::*,
    relationship::{RelationshipSourceCollection, RelationshipTarget},
};

use super::column::{Moved, holders};

/// The entities of each target of a relationship, in order.
pub(super) struct Order(Vec<(Entity, Vec<Entity>)>);

impl Order {
    pub(super) fn read<T: RelationshipTarget>(world: &World) -> Self {
        let targets = holders::<T>(world).into_iter();
        let lists = targets.filter_map(|target| {
            let list = world.get::<T>(target)?.iter().collect();
            Some((target, list))
        });
        Self(lists.collect())
    }

    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        self.0.iter().map(|&(target, _)| target)
    }

    /// Brings the entities of each target into their order.
    pub(super) fn put_back<T: RelationshipTarget>(&self, world: &mut World, moved: &Moved) {
        for (target, list) in &self.0 {
            let list = list.iter().map(|entity| moved.target(entity));
            let Some(mut target) = world.get_mut::<T>(moved.target(*target)) else {
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
