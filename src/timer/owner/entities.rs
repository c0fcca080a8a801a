//! A list of entities from which any entity is removed in constant time.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, iter, slice};

use bevy_ecs::{
    entity::{Entity, EntityHashMap, EntityMapper, MapEntities},
    relationship::{OrderedRelationshipSourceCollection, RelationshipSourceCollection},
};
use smallvec::SmallVec;

/// Entities in the order in which they were added.
///
/// A removed entity leaves a gap. Gaps are closed once they take up half of the places.
#[derive(Clone, Default)]
pub struct OwnedEntities {
    places: SmallVec<[Option<Entity>; 4]>,
    gaps: usize,
    /// The places by entity, for a list that is too long to search.
    index: Option<Box<EntityHashMap<usize>>>,
}

/// The length from which a list has an index.
const INDEXED: usize = 16;

impl OwnedEntities {
    pub(super) fn contains(&self, entity: Entity) -> bool {
        self.place_of(entity).is_some()
    }

    fn place_of(&self, entity: Entity) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&entity).copied(),
            None => {
                let mut places = self.places.iter();
                places.position(|&place| place == Some(entity))
            }
        }
    }

    /// Changes the order of the list, in linear time.
    fn edit<Out>(&mut self, edit: impl FnOnce(&mut Vec<Entity>) -> Out) -> Out {
        let mut list: Vec<Entity> = self.iter().collect();
        let out = edit(&mut list);
        self.clear();
        self.extend_from_iter(list);
        out
    }

    fn close_gaps(&mut self) {
        self.places.retain(|place| place.is_some());
        self.gaps = 0;
        self.index = None;
        self.build_index();
    }

    /// Builds the index of a long list, unless it has one.
    fn build_index(&mut self) {
        if self.places.len() >= INDEXED && self.index.is_none() {
            let places = self.places.iter().enumerate();
            let places = places.filter_map(|(place, entity)| Some(((*entity)?, place)));
            self.index = Some(Box::new(places.collect()));
        }
    }
}

impl RelationshipSourceCollection for OwnedEntities {
    type SourceIter<'a> = iter::Copied<iter::Flatten<slice::Iter<'a, Option<Entity>>>>;

    fn new() -> Self {
        Self::default()
    }

    fn with_capacity(capacity: usize) -> Self {
        Self {
            places: SmallVec::with_capacity(capacity),
            ..Self::default()
        }
    }

    fn reserve(&mut self, additional: usize) {
        self.places.reserve(additional);
    }

    fn add(&mut self, entity: Entity) -> bool {
        if let Some(index) = &mut self.index {
            index.insert(entity, self.places.len());
        }
        self.places.push(Some(entity));
        self.build_index();
        true
    }

    fn remove(&mut self, entity: Entity) -> bool {
        let Some(place) = self.place_of(entity) else {
            return false;
        };
        self.places[place] = None;
        self.gaps += 1;
        if let Some(index) = &mut self.index {
            index.remove(&entity);
        }
        if 2 * self.gaps > self.places.len() {
            self.close_gaps();
        }
        true
    }

    fn iter(&self) -> Self::SourceIter<'_> {
        self.places.iter().flatten().copied()
    }

    fn len(&self) -> usize {
        self.places.len() - self.gaps
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn shrink_to_fit(&mut self) {
        self.close_gaps();
        self.places.shrink_to_fit();
    }

    fn extend_from_iter(&mut self, entities: impl IntoIterator<Item = Entity>) {
        for entity in entities {
            self.add(entity);
        }
    }
}

/// Unlike those of `Vec`, `insert` and `remove_at` keep the order, too.
impl OrderedRelationshipSourceCollection for OwnedEntities {
    fn insert(&mut self, index: usize, entity: Entity) {
        self.insert_stable(index, entity);
    }

    fn remove_at(&mut self, index: usize) -> Option<Entity> {
        self.remove_at_stable(index)
    }

    fn insert_stable(&mut self, index: usize, entity: Entity) {
        self.edit(|list| list.insert_stable(index, entity));
    }

    fn remove_at_stable(&mut self, index: usize) -> Option<Entity> {
        self.edit(|list| list.remove_at_stable(index))
    }

    fn sort(&mut self) {
        self.edit(|list| list.sort_unstable());
    }

    fn insert_sorted(&mut self, entity: Entity) {
        self.edit(|list| list.insert_sorted(entity));
    }

    fn place_most_recent(&mut self, index: usize) {
        if let Some(entity) = self.iter().last() {
            self.place(entity, index);
        }
    }

    fn place(&mut self, entity: Entity, index: usize) {
        self.edit(|list| {
            if let Some(place) = list.as_slice().iter().position(|&it| it == entity) {
                list.remove(place);
                list.insert_stable(index, entity);
            }
        });
    }
}

impl MapEntities for OwnedEntities {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        for entity in self.places.iter_mut().flatten() {
            entity.map_entities(mapper);
        }
        self.close_gaps();
    }
}

#[cfg(feature = "serialize")]
impl serde::Serialize for OwnedEntities {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(feature = "serialize")]
impl<'de> serde::Deserialize<'de> for OwnedEntities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut list = Self::default();
        list.extend_from_iter(Vec::deserialize(deserializer)?);
        Ok(list)
    }
}

impl PartialEq for OwnedEntities {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for OwnedEntities {}

impl fmt::Debug for OwnedEntities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::prelude::rust_2024::*;

    use bevy_ecs::world::World;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each step adds an entity, or removes the `nth` of those in the list.
        #[test]
        fn entities_keep_their_order_whichever_are_removed(
            steps in prop::collection::vec(prop::option::weighted(0.45, 0..64_usize), 0..200)
        ) {
            let mut world = World::new();
            let (mut list, mut model) = (OwnedEntities::new(), Vec::new());
            for step in steps {
                match step {
                    Some(nth) if nth < model.len() => {
                        let entity = model.remove(nth);
                        prop_assert!(list.remove(entity));
                        prop_assert!(!list.remove(entity));
                    }
                    _ => {
                        let entity = world.spawn_empty().id();
                        list.add(entity);
                        model.push(entity);
                    }
                }
                prop_assert!(list.iter().eq(model.iter()));
                prop_assert_eq!(list.len(), model.len());
            }
        }
    }
}
