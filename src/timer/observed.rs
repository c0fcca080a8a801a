//! Whether an event has observers.

use bevy_ecs::{observer::CachedObservers, prelude::*};

/// Returns `true` if `E` has an observer on `entity`, or a global one.
pub(super) fn is_observed<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}

/// Returns `true` if `E` has any observer.
pub(super) fn is_observed_at_all<E: EntityEvent>(world: &World) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty() || !observers.entity_observers().is_empty()
    })
}

fn observers<E: EntityEvent>(world: &World) -> Option<&CachedObservers> {
    world.observers().try_get_observers(world.event_key::<E>()?)
}
