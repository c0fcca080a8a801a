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
        let noted = names.up_to(entity).filter_map(|name| self.0.get(name));
        let first = noted.last();
        first.map_or_else(|| has_any(world, kinds, entity), |parts| is_ours(parts))
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
        for &kind in Kind::ALL.iter().filter(|&&kind| kind != Kind::Disabled) {
            self.put_kind_back(world, kind, names, |_, entity| !is_new(entity));
        }
        // Only this crate's entities are enabled and disabled. New entities are gone then.
        self.put_kind_back(world, Kind::Disabled, names, |world, entity| {
            let parts = world
                .get_entity(entity)
                .map(|entity| kinds.read(entity, |kind, _| kind != Kind::Disabled));
            parts.is_ok_and(|parts| {
                parts.iter().any(|part| {
                    part.list()
                        .is_none_or(|list| !list.iter().copied().all(is_new))
                })
            })
        });
        for &kind in Kind::ALL {
            self.put_kind_back(world, kind, names, |_, entity| is_new(entity));
        }
        world.flush();
    }

    /// Inserts the component of a kind where it was, and removes it where it was not, from the entities that
    /// are `ours`.
    fn put_kind_back(
        &self,
        world: &mut World,
        kind: Kind,
        names: &Names,
        ours: impl Fn(&World, Entity) -> bool,
    ) {
        for (entity, parts) in self.first(names) {
            let before = parts.iter().find(|part| part.kind() == Some(kind));
            let now = world
                .get_entity(entity)
                .ok()
                .and_then(|entity| kind.read(entity));
            if before.is_none() && now.is_none() || !ours(world, entity) {
                continue;
            }
            let before = before.map(|before| {
                let mut before = before.copied();
                if !names.is_empty() {
                    before.map_entities(&mut &*names);
                }
                before
            });
            let Ok(mut entity) = world.get_entity_mut(entity) else {
                continue;
            };
            match (before, now) {
                (None, _) => kind.remove(&mut entity),
                (Some(before), Some(now)) if now.is_like(&before) => before.put_back(&entity),
                (Some(before), _) => before.insert(&mut entity),
            }
        }
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

/// Returns `true` if an entity with these parts has a component of this crate.
fn is_ours(parts: &[Part]) -> bool {
    parts.iter().any(|part| part.kind() != Some(Kind::Disabled))
}

/// Returns `true` if an entity has a component of this crate.
pub(super) fn has_any(world: &World, kinds: &Kinds, entity: Entity) -> bool {
    let entity = world.get_entity(entity);
    entity.is_ok_and(|entity| kinds.has_any(entity))
}
