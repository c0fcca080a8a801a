//! The names of entities that were spawned again.

use core::{iter, mem};

use bevy_ecs::{
    entity::{EntityHashMap, EntityMapper},
    prelude::*,
};

/// The names of entities that were spawned again after they had despawned, by earlier names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The latest name of each earlier one.
    latest: EntityHashMap<Entity>,
    /// The name before each later one.
    earlier: EntityHashMap<Entity>,
    /// The names that the map of this restore gives to other entities, to which something leads.
    given: EntityHashMap<Entity>,
}

impl Names {
    pub(super) fn is_empty(&self) -> bool {
        self.latest.is_empty() && self.given.is_empty()
    }

    /// Adds the names that the map of a restore gives to entities that are gone.
    pub(super) fn give(&mut self, world: &World, map: &EntityHashMap<Entity>) {
        let gone = map.keys().copied();
        let gone = gone.filter(|&entity| !world.entities().contains_spawned(entity));
        let given = gone.filter_map(|entity| Some((entity, find_in(world, map, entity)?)));
        self.given.extend(given);
    }

    /// Returns the entities to which the map of this restore leads from others that are gone.
    pub(super) fn given(&self) -> impl Iterator<Item = Entity> {
        self.given.values().copied()
    }

    /// Returns the earlier names, with the latest name of each entity.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Entity, Entity)> {
        let names = self.latest.iter();
        names.map(|(&earlier, &latest)| (earlier, latest))
    }

    /// Notes that the entity whose latest name is `last` is called `new` from now on.
    pub(super) fn rename(&mut self, last: Entity, new: Entity) {
        let names = iter::successors(Some(last), |name| self.earlier.get(name).copied());
        for name in names {
            self.latest.insert(name, new);
        }
        self.earlier.insert(new, last);
    }

    /// Adds the names that were given after these.
    pub(super) fn append(&mut self, later: Self) {
        for name in self.latest.values_mut() {
            *name = later.latest(*name);
        }
        self.latest.extend(later.latest);
        self.earlier.extend(later.earlier);
    }

    /// Forgets the names between the first one and the latest one, and entities that don't exist.
    pub(super) fn forget_between(&mut self, exists: impl Fn(Entity) -> bool) {
        let names = mem::take(self);
        for (earlier, latest) in names.iter() {
            if names.earlier(earlier).is_none() && exists(latest) {
                self.rename(earlier, latest);
            }
        }
    }

    pub(super) fn contains(&self, name: Entity) -> bool {
        self.latest.contains_key(&name) || self.earlier.contains_key(&name)
    }

    pub(super) fn forget(&mut self, name: Entity) {
        self.latest.remove(&name);
        self.earlier.remove(&name);
    }

    /// Returns the latest name of an entity.
    pub(super) fn latest(&self, entity: Entity) -> Entity {
        let latest = self.latest.get(&entity).copied().unwrap_or(entity);
        self.given.get(&latest).copied().unwrap_or(latest)
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

/// Follows an entity through all restores in which it was spawned again.
pub(super) fn find_in(
    world: &World,
    map: &EntityHashMap<Entity>,
    entity: Entity,
) -> Option<Entity> {
    let next = |entity: &Entity| map.get(entity).copied();
    let names = iter::successors(next(&entity), next);
    // The map may be any, so it may lead in a circle.
    let mut names = names.take(map.len());
    names.find(|&name| world.entities().contains_spawned(name))
}

impl EntityMapper for &Names {
    fn get_mapped(&mut self, entity: Entity) -> Entity {
        self.latest(entity)
    }

    fn set_mapped(&mut self, _: Entity, _: Entity) {}
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_name_leads_to_the_latest_one() {
        let mut world = World::new();
        let [a, b, c, d] = [(); 4].map(|()| world.spawn_empty().id());
        let mut names = Names::default();
        names.rename(a, b);
        let mut later = Names::default();
        later.rename(b, c);
        later.rename(c, d);
        names.append(later);
        assert_eq!([a, b, c, d].map(|name| names.latest(name)), [d; 4]);
        assert!(names.up_to(d).eq([d, c, b, a]));
        names.forget_between(|_| true);
        assert_eq!(names.iter().collect::<Vec<_>>(), [(a, d)]);
        assert!(names.up_to(d).eq([d, a]));
        names.forget_between(|_| false);
        assert!(names.is_empty());
    }
}
