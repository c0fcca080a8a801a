//! The values of one component of this crate, by entity.

use alloc::vec::Vec;

use bevy_ecs::{entity::MapEntities, entity_disabling::Disabled, prelude::*};

use super::{history::History, names::Names};
use crate::{
    clock::{Clock, OnClock, SpeedModifier},
    message::{MovedRequest, OpenRequest},
    owner::OwnedBy,
    pause::{Paused, Pauses},
    timer::{Arms, Cooldown, CrateTimer, DespawnAfter, Finished, Keyed, Timer, TimerAction},
    transit::InTransit,
};

/// A component of this crate.
pub(super) trait Kept: Component + Sized {
    /// Returns an exact copy.
    fn copied(&self) -> Self;

    /// Returns `true` if [`put_back`](Self::put_back) is enough to become an earlier copy.
    fn is_like(&self, copy: &Self) -> bool;

    /// Goes back to the place in the queue at the time of the copy.
    fn put_back(&self, copy: &Self) {
        _ = copy;
    }

    fn map(&mut self, mapper: &mut impl EntityMapper) {
        _ = mapper;
    }
}

/// The values of a component, as they were.
pub(super) type Column<C> = History<C>;

/// Returns the entities with a component.
pub(super) fn holders<C: Component>(world: &World) -> Vec<Entity> {
    let archetypes = world.archetypes();
    let found = world
        .component_id::<C>()
        .and_then(|id| archetypes.component_index().get(&id));
    let mut ids: Vec<_> = found.into_iter().flat_map(|found| found.keys()).collect();
    ids.sort_unstable();
    let holders = ids.into_iter().filter_map(|&id| archetypes.get(id));
    holders
        .flat_map(|archetype| archetype.entities())
        .map(|entity| entity.id())
        .collect()
}

impl<C: Kept> Column<C> {
    /// Notes the component of an entity before it changes.
    pub(super) fn note_value(&mut self, entity: Entity, value: &C) {
        self.note(entity, || Some(value.copied()));
    }

    /// Notes the component of all entities.
    pub(super) fn note_all(&mut self, world: &World) {
        self.note_each(world, holders::<C>(world));
    }

    /// Notes the component of those entities that have it.
    pub(super) fn note_each(&mut self, world: &World, entities: impl IntoIterator<Item = Entity>) {
        for entity in entities {
            if let Some(value) = world.get::<C>(entity) {
                self.note_value(entity, value);
            }
        }
    }

    /// Returns the entities whose component differs from the noted one.
    pub(super) fn differing(&self, world: &World) -> impl Iterator<Item = Entity> {
        let is_same = |entity, value: Option<&C>| match (world.get::<C>(entity), value) {
            (Some(now), Some(value)) => now.is_like(value),
            (now, value) => now.is_none() && value.is_none(),
        };
        let differing = self
            .iter()
            .filter(move |&(entity, value)| !is_same(entity, value));
        differing.map(|(entity, _)| entity)
    }

    /// Inserts the component where it was, and removes it where it was not, from the entities that are
    /// `ours`.
    pub(super) fn put_back(
        &self,
        world: &mut World,
        names: &Names,
        ours: impl Fn(&World, Entity) -> bool,
    ) {
        for (entity, value) in self.first(names) {
            let is_there = world.get::<C>(entity).is_some();
            if !is_there && value.is_none() || !ours(world, entity) {
                continue;
            }
            let value = value.map(|value| {
                let mut value = value.copied();
                if !names.is_empty() {
                    value.map(&mut &*names);
                }
                value
            });
            let Ok(mut entity) = world.get_entity_mut(entity) else {
                continue;
            };
            match (value, entity.get::<C>()) {
                (None, _) => _ = entity.remove::<C>(),
                (Some(value), Some(now)) if now.is_like(&value) => now.put_back(&value),
                (Some(value), _) => _ = entity.insert(value),
            }
        }
    }
}

impl<C: Kept> Clone for Column<C> {
    fn clone(&self) -> Self {
        self.copied(Kept::copied)
    }
}

macro_rules! keep_values {
    ($($component:ty),*) => {
        $(impl Kept for $component {
            fn copied(&self) -> Self {
                self.clone()
            }

            fn is_like(&self, copy: &Self) -> bool {
                self == copy
            }

            fn map(&mut self, mapper: &mut impl EntityMapper) {
                Component::map_entities(self, mapper);
            }
        })*
    };
}

keep_values!(
    SpeedModifier,
    OnClock,
    OwnedBy,
    Keyed,
    Pauses,
    Cooldown,
    CrateTimer,
    MovedRequest,
    InTransit
);

macro_rules! keep_markers {
    ($($component:ident),*) => {
        $(impl Kept for $component {
            fn copied(&self) -> Self {
                Self
            }

            fn is_like(&self, _: &Self) -> bool {
                true
            }
        })*
    };
}

keep_markers!(Paused, OpenRequest, Disabled);

macro_rules! keep_armed {
    ($($component:ty),*) => {
        $(impl Kept for $component {
            fn copied(&self) -> Self {
                self.copy()
            }

            fn is_like(&self, copy: &Self) -> bool {
                self == copy && self.loaded() == copy.loaded()
            }

            fn put_back(&self, copy: &Self) {
                Arms::put_back(self, copy);
            }

            fn map(&mut self, mapper: &mut impl EntityMapper) {
                MapEntities::map_entities(self, mapper);
            }
        })*
    };
}

keep_armed!(Timer, DespawnAfter);

impl Kept for Finished {
    fn copied(&self) -> Self {
        self.clone()
    }

    fn is_like(&self, copy: &Self) -> bool {
        self.is_same(copy)
    }
}

impl Kept for TimerAction {
    fn copied(&self) -> Self {
        self.clone()
    }

    fn is_like(&self, copy: &Self) -> bool {
        self.is_same(copy)
    }
}

/// The copy of all clocks holds the values.
impl Kept for Clock {
    fn copied(&self) -> Self {
        Self::new()
    }

    fn is_like(&self, _: &Self) -> bool {
        true
    }
}
