//! The names by which other worlds know an entity and its requests.

use alloc::vec::Vec;

use bevy_ecs::prelude::*;
#[cfg(feature = "worlds")]
use bevy_platform::collections::HashMap;
use bevy_platform::collections::HashSet;

use super::{Content, MoveError, RequestName};
#[cfg(feature = "worlds")]
use crate::{message::Mailbag, worlds::StableKey};
use crate::{
    message::{MovedRequest, name_of_request, request_with_name},
    timer::OpenRequest,
};

/// Returns the keys of entities.
#[cfg(feature = "worlds")]
pub(super) fn keys(world: &World, entities: &[Entity]) -> Vec<(Entity, u64)> {
    let keys = entities.iter().filter_map(|&entity| {
        let &StableKey(key) = world.get(entity)?;
        Some((entity, key))
    });
    keys.collect()
}

#[cfg(not(feature = "worlds"))]
pub(super) fn keys(_: &World, _: &[Entity]) -> Vec<(Entity, u64)> {
    Vec::new()
}

/// Lets no other world send to these entities by their keys, which they keep.
#[cfg(feature = "worlds")]
pub(super) fn withdraw_keys(world: &World, entities: &[Entity]) {
    tell_keys(world, entities, false);
}

/// Lets other worlds send to these entities again.
#[cfg(feature = "worlds")]
pub(super) fn announce_keys(world: &World, entities: &[Entity]) {
    tell_keys(world, entities, true);
}

#[cfg(feature = "worlds")]
fn tell_keys(world: &World, entities: &[Entity], is_here: bool) {
    if let Some(mailbag) = world.get_resource::<Mailbag>() {
        for (entity, key) in keys(world, entities) {
            mailbag.directory.tell(key, entity, is_here);
        }
    }
}

#[cfg(not(feature = "worlds"))]
pub(super) fn withdraw_keys(_: &World, _: &[Entity]) {}

#[cfg(not(feature = "worlds"))]
pub(super) fn announce_keys(_: &World, _: &[Entity]) {}

/// Lets other worlds know the requests of this world, if they reach it.
pub(super) fn name_this_world(world: &mut World) {
    #[cfg(feature = "worlds")]
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
        && mailbag.directory.is_heard()
    {
        mailbag.directory.name_requests();
    }
    #[cfg(not(feature = "worlds"))]
    let _ = world;
}

/// Returns the names of the open requests among these entities.
pub(super) fn requests(world: &World, entities: &[Entity]) -> Vec<RequestName> {
    let open = entities.iter().copied();
    let open = open.filter(|&entity| world.get::<OpenRequest>(entity).is_some());
    let named = open.filter_map(|entity| {
        let (token, number) = name_of_request(world, entity)?;
        Some(RequestName {
            entity,
            token,
            number,
        })
    });
    named.collect()
}

/// Returns an error if an entity with the name of a request is none, or if a name is taken.
pub(super) fn check_requests(
    world: &World,
    content: &Content,
    target: impl Fn(Entity) -> Option<Entity>,
) -> Result<(), MoveError> {
    let mut unnamed = content.timers.requests();
    let mut names = HashSet::new();
    for request in &content.requests {
        let entity = request.entity;
        let name = request.name();
        let bound = request_with_name(world, name);
        let is_taken = bound.is_some_and(|bound| target(entity) != Some(bound));
        if is_taken || !unnamed.remove(&entity) || !names.insert(name) {
            return Err(MoveError::InvalidRequest(entity));
        }
    }
    Ok(())
}

/// Returns an error if a key is taken.
#[cfg(feature = "worlds")]
pub(super) fn check_keys(
    world: &World,
    content: &Content,
    target: impl Fn(Entity) -> Option<Entity>,
) -> Result<(), MoveError> {
    let mailbag = world.get_resource::<Mailbag>();
    let mut keys = HashMap::new();
    for &(entity, key) in &content.keys {
        let bound = mailbag.and_then(|mailbag| mailbag.directory.entity(key));
        if let Some(bound) = bound.filter(|&bound| target(entity) != Some(bound)) {
            return Err(MoveError::KeyInUse { key, entity: bound });
        }
        if let Some(entity) = keys.insert(key, entity) {
            return Err(MoveError::KeyInUse { key, entity });
        }
    }
    Ok(())
}

#[cfg(not(feature = "worlds"))]
pub(super) fn check_keys(
    _: &World,
    _: &Content,
    _: impl Fn(Entity) -> Option<Entity>,
) -> Result<(), MoveError> {
    Ok(())
}

/// Gives the requests that have arrived their names, and binds the keys: from here on, parcels come to this world.
pub(super) fn bind(world: &mut World, content: &Content, target: impl Fn(Entity) -> Entity) {
    for request in &content.requests {
        if let Ok(mut entity) = world.get_entity_mut(target(request.entity)) {
            entity.insert(MovedRequest::elsewhere(request.name()));
        }
    }
    #[cfg(feature = "worlds")]
    for &(entity, key) in &content.keys {
        if let Ok(mut entity) = world.get_entity_mut(target(entity)) {
            entity.insert(StableKey(key));
        }
    }
}
