//! The earlier values of entities.

use bevy_ecs::prelude::*;

use super::names::Names;
use crate::journal::Journal;

/// The values of the entities that have changed, as they were. An entity may have had none.
#[derive(Debug)]
pub(super) struct History<V>(Journal<Entity, Option<V>>);

impl<V> History<V> {
    /// Notes what an entity has before it changes.
    pub(super) fn note(&mut self, entity: Entity, value: impl FnOnce() -> Option<V>) {
        self.0.note(entity, value);
    }

    /// Returns a copy, with copies of the values.
    pub(super) fn copied(&self, copied: impl Fn(&V) -> V) -> Self {
        let mut copy = Journal::default();
        for (entity, value) in self.iter() {
            copy.note(entity, || value.map(&copied));
        }
        Self(copy)
    }

    /// Adds the changes that came after these.
    pub(super) fn append(&mut self, later: Self) {
        self.0.append(later.0);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Entity, Option<&V>)> {
        self.0
            .iter()
            .map(|(entity, value)| (entity, value.as_ref()))
    }

    /// Returns the entities that had a value.
    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        self.iter()
            .filter(|(_, value)| value.is_some())
            .map(|(entity, _)| entity)
    }

    /// Returns `true` if an entity had a value. One that has not changed had what it `has`.
    pub(super) fn had(&self, names: &Names, entity: Entity, has: impl FnOnce() -> bool) -> bool {
        let noted = names.up_to(entity).filter_map(|name| self.0.get(name));
        noted.last().map_or_else(has, Option::is_some)
    }

    /// Returns what each entity had at first, with its latest name.
    pub(super) fn first<'a>(
        &'a self,
        names: &'a Names,
    ) -> impl Iterator<Item = (Entity, Option<&'a V>)> {
        let first = self.0.under_first_names(|entity| names.earlier(entity));
        first.map(|(entity, value)| (names.latest(entity), value.as_ref()))
    }
}

impl<V> Default for History<V> {
    fn default() -> Self {
        Self(Journal::default())
    }
}
