//! Checking data before it is loaded.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};
use bevy_platform::collections::HashSet;

use super::{LoadError, SavedEntity, SavedTimers};
use crate::clock::{Clock, ClockId, ClockTable};

/// Returns an error if saved timers can't be loaded into a world with this map of entities.
pub(crate) fn check_saved(
    world: &World,
    SavedTimers(saved): &SavedTimers,
    map: &EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    let saved = &saved.entities;
    if !world.contains_resource::<ClockTable>() {
        return Err(LoadError::NoPlugin);
    }
    check_map(world, map)?;
    let mut entities = EntityHashSet::default();
    for saved in saved {
        if !entities.insert(saved.entity) {
            return Err(LoadError::DuplicateEntity(saved.entity));
        }
        check_parts(saved)?;
    }
    for saved in saved {
        check_references(saved, |entity| {
            entities.contains(&entity) || map.contains_key(&entity)
        })?;
    }
    check_keys(saved)?;
    check_clocks(world, saved, map)
}

/// Checks that the map sends different entities to different ones that exist.
fn check_map(world: &World, map: &EntityHashMap<Entity>) -> Result<(), LoadError> {
    let mut targets = EntityHashMap::default();
    for (&entity, &to) in map {
        if !world.entities().contains_spawned(to) {
            return Err(LoadError::NotInWorld { entity, to });
        }
        if let Some(other) = targets.insert(to, entity) {
            let entities = [entity.min(other), entity.max(other)];
            return Err(LoadError::MappedTwice { entities, to });
        }
    }
    Ok(())
}

/// Checks that no component is there twice.
fn check_parts(SavedEntity { entity, parts }: &SavedEntity) -> Result<(), LoadError> {
    for (nth, part) in parts.iter().enumerate() {
        if parts[..nth].iter().any(|other| other.name() == part.name()) {
            return Err(LoadError::DuplicateComponent(*entity, part.name()));
        }
    }
    Ok(())
}

/// Checks that all references lead to known entities.
fn check_references(
    saved: &SavedEntity,
    is_known: impl Fn(Entity) -> bool,
) -> Result<(), LoadError> {
    for part in &saved.parts {
        if let Some(to) = part.references().into_iter().find(|&to| !is_known(to)) {
            return Err(LoadError::UnknownEntity {
                entity: saved.entity,
                component: part.name(),
                to,
            });
        }
    }
    Ok(())
}

/// Checks that the keys of each owner differ.
fn check_keys(saved: &[SavedEntity]) -> Result<(), LoadError> {
    let mut keys = HashSet::new();
    for saved in saved {
        if let (Some(owner), Some(key)) = (saved.owner(), saved.key())
            && !keys.insert((owner, key))
        {
            return Err(LoadError::DuplicateKey { owner, key });
        }
    }
    Ok(())
}

/// Checks that each clock has a parent, and that none drives itself.
fn check_clocks(
    world: &World,
    saved: &[SavedEntity],
    map: &EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    let parents = saved.iter();
    let parents = parents.filter_map(|saved| Some((saved.entity, saved.clock_parent()?)));
    let parents: EntityHashMap<ClockId> = parents.collect();
    let mut checked = EntityHashSet::default();
    for &clock in parents.keys() {
        let mut path = Vec::new();
        let mut on_path = EntityHashSet::default();
        let mut at = clock;
        while !checked.contains(&at) {
            if !on_path.insert(at) {
                return Err(LoadError::ClockCycle(path));
            }
            path.push(at);
            match parents.get(&at) {
                Some(&ClockId::Own(parent)) if parent != Entity::PLACEHOLDER => at = parent,
                Some(_) => break,
                None if is_clock(world, map, at) => break,
                None => {
                    // The first clock is saved, so this one has a child.
                    let clock = path[path.len() - 2];
                    return Err(LoadError::NoParentClock { clock, parent: at });
                }
            }
        }
        checked.extend(path);
    }
    Ok(())
}

/// Returns `true` if a saved entity is mapped to an entity with a clock.
fn is_clock(world: &World, map: &EntityHashMap<Entity>, saved: Entity) -> bool {
    let target = map.get(&saved);
    target.is_some_and(|&target| world.get::<Clock>(target).is_some())
}
