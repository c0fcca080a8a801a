//! The names of entities that were spawned again.

use core::iter;

use bevy_ecs::{
    entity::{EntityHashMap, EntityMapper},
    prelude::*,
};

/// The names of entities that were spawned again after they had despawned, by earlier names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    later: EntityHashMap<Entity>,
    earlier: EntityHashMap<Entity>,
}

impl Names {
    pub(super) fn is_empty(&self) -> bool {
        self.later.is_empty()
    }

    /// Returns the earlier names, with the latest name of each entity.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Entity, Entity)> {
        let earlier = self.later.keys();
        earlier.map(|&earlier| (earlier, self.latest(earlier)))
    }

    /// Notes that the entity `earlier` is called `later` from now on.
    pub(super) fn rename(&mut self, earlier: Entity, later: Entity) {
        self.later.insert(earlier, later);
        self.earlier.insert(later, earlier);
    }

    /// Adds the names that were given after these.
    pub(super) fn append(&mut self, later: Self) {
        self.later.extend(later.later);
        self.earlier.extend(later.earlier);
    }

    /// Returns the latest name of an entity.
    pub(super) fn latest(&self, entity: Entity) -> Entity {
        let mut name = entity;
        while let Some(&later) = self.later.get(&name) {
            name = later;
        }
        name
    }

    /// Returns a name of an entity, and all earlier ones.
    pub(super) fn up_to(&self, entity: Entity) -> impl Iterator<Item = Entity> {
        iter::successors(Some(entity), |&name| self.earlier(name))
    }

    /// Returns the name that an entity had before this one.
    pub(super) fn earlier(&self, entity: Entity) -> Option<Entity> {
        self.earlier.get(&entity).copied()
    }
}

impl EntityMapper for &Names {
    fn get_mapped(&mut self, entity: Entity) -> Entity {
        self.latest(entity)
    }

    fn set_mapped(&mut self, _: Entity, _: Entity) {}
}
