//! The values of one component of this crate, by entity.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet, MapEntities},
    entity_disabling::Disabled,
    prelude::*,
};

use crate::{
    clock::{Clock, OnClock, SpeedModifier},
    message::OpenRequest,
    owner::OwnedBy,
    pause::{Paused, Pauses},
    timer::{
        Arms, Cooldown, DespawnAfter, Finished, Keyed, Limit, SurvivesCancelAll, Timer,
        TimerAction, Unannounced,
    },
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

/// The values of a component by entity.
pub(super) struct Column<C>(Vec<(Entity, C)>);

/// The entities of a snapshot that are called differently by now, because they were spawned again.
#[derive(Default)]
pub(super) struct Moved(pub(super) EntityHashMap<Entity>);

impl Moved {
    pub(super) fn target(&self, entity: Entity) -> Entity {
        match self.0.is_empty() {
            true => entity,
            false => self.0.get(&entity).copied().unwrap_or(entity),
        }
    }
}

impl EntityMapper for &Moved {
    fn get_mapped(&mut self, entity: Entity) -> Entity {
        self.target(entity)
    }

    fn set_mapped(&mut self, _: Entity, _: Entity) {}
}

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
    /// Copies the component of all entities.
    pub(super) fn read(world: &World) -> Self {
        let holders = holders::<C>(world).into_iter();
        let values = holders.filter_map(|entity| Some((entity, world.get::<C>(entity)?.copied())));
        Self(values.collect())
    }

    /// Keeps the values of these entities only.
    pub(super) fn retain(&mut self, entities: &EntityHashSet) {
        self.0.retain(|(entity, _)| entities.contains(entity));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn entities(&self) -> impl Iterator<Item = Entity> {
        self.0.iter().map(|&(entity, _)| entity)
    }

    /// Inserts each value where the component has another value or is missing. Removes the component
    /// from all other entities that are `ours`.
    pub(super) fn insert_all(
        &self,
        world: &mut World,
        moved: &Moved,
        ours: impl Fn(Entity) -> bool,
    ) {
        let targets = || self.0.iter().map(|&(entity, _)| moved.target(entity));
        let holders = holders::<C>(world);
        if holders.len() != self.0.len() || !holders.iter().copied().eq(targets()) {
            let targets: EntityHashSet = targets().collect();
            let others = holders.into_iter();
            for other in others.filter(|other| !targets.contains(other) && ours(*other)) {
                if let Ok(mut other) = world.get_entity_mut(other) {
                    other.remove::<C>();
                }
            }
        }
        for (entity, value) in &self.0 {
            let target = moved.target(*entity);
            if moved.0.is_empty() && world.get::<C>(target).is_some_and(|it| it.is_like(value)) {
                continue;
            }
            let mut value = value.copied();
            value.map(&mut &*moved);
            if let Ok(mut target) = world.get_entity_mut(target)
                && !target.get::<C>().is_some_and(|it| it.is_like(&value))
            {
                target.insert(value);
            }
        }
    }

    /// Puts the components back that have a place in a queue.
    pub(super) fn put_back(&self, world: &World, moved: &Moved) {
        for (entity, value) in &self.0 {
            if let Some(component) = world.get::<C>(moved.target(*entity)) {
                component.put_back(value);
            }
        }
    }
}

macro_rules! keep_values {
    ($($component:ty),*) => {
        $(impl Kept for $component {
            fn copied(&self) -> Self {
                *self
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
    Finished,
    Limit
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

keep_markers!(
    Paused,
    OpenRequest,
    Unannounced,
    SurvivesCancelAll,
    Disabled
);

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

impl Kept for TimerAction {
    fn copied(&self) -> Self {
        self.clone()
    }

    fn is_like(&self, copy: &Self) -> bool {
        self.is_same(copy)
    }
}

/// The state of a clock is in the table. The component only says that there is one.
impl Kept for Clock {
    fn copied(&self) -> Self {
        Self::new()
    }

    fn is_like(&self, _: &Self) -> bool {
        true
    }
}
