//! Loading timers into a world.

use bevy_ecs::{
    entity::{EntityHashMap, MapEntities},
    prelude::*,
};

use super::{LoadError, SavedEntity, SavedTimers, check::check_saved, part::Part};

/// Loads timers. Saved entities that are not in the map are spawned and added to it.
///
/// If the data is invalid, the world and the map stay as they were.
pub(crate) fn load_timers(
    world: &mut World,
    saved: &SavedTimers,
    entities: &mut EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    world.flush();
    check_saved(world, saved, entities)?;
    load_checked(world, saved, entities);
    Ok(())
}

/// Loads timers after [`check_saved`], also if an observer has changed the world since.
pub(crate) fn load_checked(
    world: &mut World,
    SavedTimers(saved): &SavedTimers,
    entities: &mut EntityHashMap<Entity>,
) {
    for saved in &saved.entities {
        let target = entities.entry(saved.entity);
        target.or_insert_with(|| world.spawn_empty().id());
    }
    if let Some(saved) = &saved.world {
        saved.load(world);
    }
    // Clocks come first, so that timers find them.
    for is_clock in [true, false] {
        for SavedEntity { entity, parts } in &saved.entities {
            let parts = parts.iter();
            for part in parts.filter(|part| matches!(part, Part::Clock(_)) == is_clock) {
                let mut part = part.clone();
                part.map_entities(entities);
                // An observer of an earlier part may have despawned the entity.
                if let Ok(mut target) = world.get_entity_mut(entities[entity]) {
                    part.insert(&mut target);
                }
            }
        }
    }
    world.flush();
}
