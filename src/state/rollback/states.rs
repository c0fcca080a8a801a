//! The states of the entities that have changed, as they were.

use alloc::vec::Vec;

use bevy_ecs::{entity::MapEntities, prelude::*};
use bevy_platform::sync::Arc;

use super::names::Names;
use crate::{
    journal::Journal,
    state::part::{Kind, Kinds, Part},
};

/// The parts of the entities that have changed, as they were. A new entity had none.
#[derive(Clone, Debug, Default)]
pub(super) struct States(Journal<Entity, Arc<Vec<Part>>>);

impl States {
    /// Notes the parts of an entity before it changes, unless it has changed before.
    pub(super) fn note(&mut self, entity: Entity, parts: impl FnOnce() -> Vec<Part>) {
        self.0.note(entity, || Arc::new(parts()));
    }

    pub(super) fn contains(&self, entity: Entity) -> bool {
        self.0.contains(entity)
    }

    pub(super) fn get(&self, entity: Entity) -> Option<&[Part]> {
        self.0.get(entity).map(|parts| &***parts)
    }

    pub(super) fn forget(&mut self, entity: Entity) {
        self.0.forget(entity);
    }

    /// Adds the states that were noted after these.
    pub(super) fn append(&mut self, later: Self) {
        self.0.append(later.0);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Entity, &[Part])> {
        self.0.iter().map(|(entity, parts)| (entity, &***parts))
    }

    /// Returns the entities that had a component of this crate.
    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        let ours = self.iter().filter(|(_, parts)| is_ours(parts));
        ours.map(|(entity, _)| entity)
    }

    /// Returns `true` if an entity had a component of this crate. An entity that has not changed has the
    /// same ones now.
    pub(super) fn had_any(
        &self,
        world: &World,
        kinds: &Kinds,
        names: &Names,
        entity: Entity,
    ) -> bool {
        let noted = names.up_to(entity).filter_map(|name| self.get(name));
        let first = noted.last();
        first.map_or_else(|| has_any(world, kinds, entity), is_ours)
    }

    /// Returns the entities for which a part of such a kind differs from the noted one.
    pub(super) fn differing(
        &self,
        world: &World,
        kinds: &Kinds,
        is_wanted: impl Fn(Kind) -> bool + Copy,
    ) -> impl Iterator<Item = Entity> {
        let differs = move |&(entity, before): &(Entity, &[Part])| {
            let now = world.get_entity(entity);
            let now = now.map_or_else(
                |_| Vec::new(),
                |now| kinds.read(now, |kind, _| is_wanted(kind)),
            );
            let before = before
                .iter()
                .filter(|part| part.kind().is_some_and(is_wanted));
            !(now.len() == before.clone().count()
                && now
                    .iter()
                    .zip(before)
                    .all(|(now, before)| now.is_like(before)))
        };
        self.iter().filter(differs).map(|(entity, _)| entity)
    }

    /// Returns what each entity was at first, with its latest name.
    pub(super) fn first<'a>(
        &'a self,
        names: &'a Names,
    ) -> impl Iterator<Item = (Entity, &'a [Part])> {
        let first = self.0.under_first_names(|entity| names.earlier(entity));
        first.map(|(entity, parts)| (names.latest(entity), &***parts))
    }

    /// Inserts and removes components until each entity has the same ones as before.
    ///
    /// `new` entities, which despawn later, come last. If an observer panics before that, the next restore
    /// finds them by their components.
    pub(super) fn put_back(&self, world: &mut World, kinds: &Kinds, names: &Names, new: &[Entity]) {
        let is_new = |entity| new.binary_search(&entity).is_ok();
        for (entity, parts) in self.first(names).filter(|&(entity, _)| !is_new(entity)) {
            put_parts_back(world, kinds, names, (entity, parts), |kind| {
                kind != Kind::Disabled
            });
        }
        // Only this crate's entities are enabled and disabled. New entities are gone then.
        let is_ours = |world: &World, entity| {
            let entity = world.get_entity(entity);
            let parts = entity.map(|entity| kinds.read(entity, |kind, _| kind != Kind::Disabled));
            let is_old = |part: &Part| {
                part.list()
                    .is_none_or(|list| !list.iter().copied().all(is_new))
            };
            parts.is_ok_and(|parts| parts.iter().any(is_old))
        };
        for (entity, parts) in self.first(names) {
            if is_ours(world, entity) {
                put_parts_back(world, kinds, names, (entity, parts), |kind| {
                    kind == Kind::Disabled
                });
            }
        }
        for (entity, parts) in self.first(names).filter(|&(entity, _)| is_new(entity)) {
            put_parts_back(world, kinds, names, (entity, parts), |_| true);
        }
        world.flush();
    }

    /// Brings the entities of each list into their order.
    pub(super) fn put_in_order(&self, world: &mut World, names: &Names) {
        for (entity, parts) in self.first(names) {
            for part in parts {
                let mut part = part.clone();
                part.map_entities(&mut &*names);
                part.put_in_order(world, entity);
            }
        }
    }
}

/// Inserts and removes the components of some kinds until an entity has the same ones as before.
fn put_parts_back(
    world: &mut World,
    kinds: &Kinds,
    names: &Names,
    (entity, before): (Entity, &[Part]),
    is_wanted: impl Fn(Kind) -> bool,
) {
    let now = world.get_entity(entity);
    let now = now.map_or_else(
        |_| Vec::new(),
        |now| kinds.read(now, |kind, _| is_wanted(kind)),
    );
    let find = |parts: &[Part], kind| parts.iter().position(|part| part.kind() == Some(kind));
    // An observer of one change may despawn the entity.
    for kind in now.iter().filter_map(Part::kind) {
        if find(before, kind).is_none()
            && let Ok(mut entity) = world.get_entity_mut(entity)
        {
            kind.remove(&mut entity);
        }
    }
    for part in before {
        let Some(kind) = part.kind().filter(|&kind| is_wanted(kind)) else {
            continue;
        };
        let mut part = part.copied();
        if !names.is_empty() {
            part.map_entities(&mut &*names);
        }
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            match find(&now, kind) {
                Some(nth) if now[nth].is_like(&part) => {}
                _ => {
                    part.keep_place(&entity);
                    part.insert(&mut entity);
                }
            }
        }
    }
}

/// Returns `true` if an entity with these parts has a component of this crate.
pub(super) fn is_ours(parts: &[Part]) -> bool {
    parts.iter().any(|part| part.kind() != Some(Kind::Disabled))
}

/// Returns `true` if an entity has a component of this crate.
pub(super) fn has_any(world: &World, kinds: &Kinds, entity: Entity) -> bool {
    let entity = world.get_entity(entity);
    entity.is_ok_and(|entity| kinds.has_any(entity))
}
