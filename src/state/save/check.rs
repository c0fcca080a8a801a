//! Checking data before it is loaded.

use alloc::{string::ToString, vec::Vec};
use core::{iter, mem::discriminant};

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};
use bevy_platform::collections::HashSet;
use bevy_time::{Fixed, Time};

use super::{Content, LoadError, SavedEntity, SavedTimers};
use crate::{
    clock::{Clock, ClockId, ClockTable},
    owner::OwnedBy,
    state::{
        component::SavedComponents,
        letter::LetterData,
        part::{MapEach, Part},
    },
    timer::{MAX_STEPS, WorldState},
};

/// Returns an error if saved timers can't be loaded into a world with this map of entities.
pub(crate) fn check_saved(
    world: &World,
    SavedTimers(saved): &SavedTimers,
    map: &EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    if !world.contains_resource::<ClockTable>() {
        return Err(LoadError::NoPlugin);
    }
    if let Some(state) = &saved.world {
        check_steps(world, state)?;
    }
    check_map(world, map)?;
    let entities: EntityHashSet = saved.entities.iter().map(|saved| saved.entity).collect();
    let is_known = |entity| entities.contains(&entity) || map.contains_key(&entity);
    // A saved entity may get its clock later.
    let is_clock = |clock| entities.contains(&clock) || clock_of_world(world, map, clock).is_some();
    for SavedEntity { entity, parts } in &saved.entities {
        let mut missing = parts.iter();
        let missing = missing.find_map(|part| part.missing(*entity, is_known, is_clock));
        missing.map_or(Ok(()), Err)?;
    }
    check_content(world, saved, map, is_known)
}

/// Returns an error if moved timers can't be loaded into a world with this map of entities.
pub(crate) fn check_moved(
    world: &World,
    SavedTimers(saved): &SavedTimers,
    map: &EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    if !world.contains_resource::<ClockTable>() {
        return Err(LoadError::NoPlugin);
    }
    check_content(world, saved, map, |_| true)
}

/// Returns an error if the data contradicts itself or the world, or if a component of the game leads to an unknown entity.
fn check_content(
    world: &World,
    Content {
        mail,
        ends,
        entities: saved,
        ..
    }: &Content,
    map: &EntityHashMap<Entity>,
    is_known: impl Fn(Entity) -> bool,
) -> Result<(), LoadError> {
    let mut entities = EntityHashSet::default();
    for saved in saved {
        if !entities.insert(saved.entity) {
            return Err(LoadError::DuplicateEntity(saved.entity));
        }
        check_parts(saved)?;
        check_components(world, saved, &is_known)?;
    }
    if let Some((_, end)) = ends.iter().find(|(_, it)| !entities.contains(&it.entity)) {
        return Err(LoadError::UnknownEnd(end.entity));
    }
    check_mail(mail, |entity| {
        entities.contains(&entity) || map.contains_key(&entity)
    })?;
    check_keys(saved)?;
    check_parents(world, saved, map)
}

/// Checks that all messages refer to known entities.
fn check_mail(mail: &[LetterData], is_known: impl Fn(Entity) -> bool) -> Result<(), LoadError> {
    for letter in mail {
        if let Some(to) = letter.entities().find(|&entity| !is_known(entity)) {
            let message = letter.name().into();
            return Err(LoadError::UnknownInMessage { message, to });
        }
    }
    Ok(())
}

/// Checks that the map sends different entities to different ones that exist.
pub(crate) fn check_map(world: &World, map: &EntityHashMap<Entity>) -> Result<(), LoadError> {
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
    let mut seen = HashSet::new();
    for part in parts {
        if !seen.insert((discriminant(part), part.name())) {
            return Err(LoadError::DuplicateComponent(*entity, part.name().into()));
        }
    }
    Ok(())
}

/// Checks that the components of the game can be loaded, and that they lead to known entities.
fn check_components(
    world: &World,
    SavedEntity { entity, parts }: &SavedEntity,
    is_known: impl Fn(Entity) -> bool,
) -> Result<(), LoadError> {
    for part in parts {
        let Part::Component(data) = part else {
            continue;
        };
        let (entity, component) = (*entity, data.name.to_string());
        let registered = world.get_resource::<SavedComponents>();
        let Some(registered) = registered.and_then(|it| it.find(&component)) else {
            return Err(LoadError::UnknownComponent(entity, component));
        };
        let mut unknown = None;
        let mut note = MapEach(|to| {
            if to != Entity::PLACEHOLDER && !is_known(to) {
                unknown.get_or_insert(to);
            }
            to
        });
        if let Err(error) = registered.load(data, &mut note, None) {
            return Err(LoadError::Component {
                entity,
                component,
                error,
            });
        }
        if let Some(to) = unknown {
            return Err(LoadError::UnknownEntity {
                entity,
                component,
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
        let (mut owner, mut key) = (None, None);
        for part in &saved.parts {
            match part {
                Part::OwnedBy(OwnedBy(by)) => owner = Some(*by),
                Part::Keyed(keyed) => key = Some(keyed),
                _ => {}
            }
        }
        if let (Some(owner), Some(key)) = (owner, key)
            && !keys.insert((owner, key))
        {
            let key = key.clone().into();
            return Err(LoadError::DuplicateKey { owner, key });
        }
    }
    Ok(())
}

/// Checks that no clock will drive itself.
fn check_parents(
    world: &World,
    saved: &[SavedEntity],
    map: &EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    let parents = saved.iter();
    let parents = parents.filter_map(|saved| Some((saved.entity, saved.own_clock()?.parent())));
    let parents: EntityHashMap<Option<ClockId>> = parents.collect();
    let targets = parents
        .keys()
        .filter_map(|&clock| Some((*map.get(&clock)?, clock)));
    let targets: EntityHashMap<Entity> = targets.collect();
    let mut checked = EntityHashSet::default();
    for &clock in parents.keys() {
        let mut path = Vec::new();
        let mut on_path = EntityHashSet::default();
        let mut at = clock;
        while !checked.contains(&at) {
            if !on_path.insert(at) {
                let first = path.iter().position(|&it| it == at);
                return Err(LoadError::ClockCycle(path.split_off(first.unwrap_or(0))));
            }
            path.push(at);
            match parents.get(&at) {
                Some(&Some(ClockId::Own(parent))) => at = parent,
                Some(_) => break,
                None => {
                    let here = clock_of_world(world, map, at);
                    let mut above = here.into_iter().flat_map(|at| parents_in_world(world, at));
                    match above.find_map(|parent| targets.get(&parent)) {
                        Some(&saved) => at = saved,
                        None => break,
                    }
                }
            }
        }
        checked.extend(path);
    }
    Ok(())
}

/// Returns the entity of the world to which a saved entity is mapped, if it has a clock.
fn clock_of_world(world: &World, map: &EntityHashMap<Entity>, saved: Entity) -> Option<Entity> {
    let target = *map.get(&saved)?;
    world.get::<Clock>(target).map(|_| target)
}

/// Returns the entities of the clocks that drive a clock of the world.
fn parents_in_world(world: &World, clock: Entity) -> impl Iterator<Item = Entity> {
    let parent = |clock| match world.get_resource::<ClockTable>()?.parent_of(clock)? {
        ClockId::Own(parent) => Some(parent),
        _ => None,
    };
    let parents = iter::successors(parent(clock), move |&clock| parent(clock));
    // The clocks may wait for each other as their parents.
    let mut seen = EntityHashSet::default();
    parents.take_while(move |&parent| seen.insert(parent))
}

/// Checks that the world does not have to run a great number of fixed steps at once.
fn check_steps(world: &World, saved: &WorldState) -> Result<(), LoadError> {
    let Some(time) = world.get_resource::<Time<Fixed>>() else {
        return Ok(());
    };
    let (overstep, timestep) = (saved.overstep, time.timestep());
    match overstep > timestep.saturating_mul(MAX_STEPS) {
        true => Err(LoadError::TooManySteps { overstep, timestep }),
        false => Ok(()),
    }
}
