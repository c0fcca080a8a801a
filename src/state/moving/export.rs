//! Exporting an entity.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::{Content, MoveError, MovedEntity, names};
use crate::{
    clock::ClockTable,
    message::{HeldLetters, release_lost, take_letters},
    state::{Versioned, letter::mail_of, save::save_entities},
    timer::RunDepth,
    transit::InTransit,
};

/// Returns an entity and everything it owns as data. They are in transit from here on.
pub(crate) fn export_entity(world: &mut World, entity: Entity) -> Result<MovedEntity, MoveError> {
    let copied = copy_entities(world, &[entity]).pop();
    let moved = copied.unwrap_or(Err(MoveError::NoSuchEntity(entity)))?;
    if !moved.left_out().is_empty() {
        return Err(MoveError::Mail(moved.left_out().to_vec()));
    }
    let members: Vec<Entity> = moved.entities().collect();
    let is_member: EntityHashSet = members.iter().copied().collect();
    let exported = take_letters(world, &|entity| is_member.contains(&entity)).into_iter();
    let exported = exported.filter_map(|(_, letter)| letter).collect();
    let names = members.iter().map(|&member| (member, member));
    HeldLetters::at_old_end(names.collect(), exported).begin(world, entity);
    hold(world, entity, members);
    Ok(moved)
}

/// Returns each of some entities and everything it owns as data.
pub(crate) fn copy_entities(
    world: &mut World,
    entities: &[Entity],
) -> Vec<Result<MovedEntity, MoveError>> {
    world.flush();
    if let Some(error) = impossible(world) {
        return entities.iter().map(|_| Err(error.clone())).collect();
    }
    // The mail of an earlier move that has ended by now moves along.
    release_lost(world);
    let saved = save_entities(world, entities);
    names::name_this_world(world);
    let mail = mail_of(world, &saved, &|_| Entity::PLACEHOLDER);
    let copies = entities.iter().zip(saved).zip(mail);
    let copies = copies.map(|((&entity, saved), mail)| {
        let mut timers = saved?;
        let members: Vec<Entity> = timers.entities().collect();
        for &member in &members {
            if world.get::<InTransit>(member).is_some() {
                return Err(MoveError::InTransit(member));
            }
        }
        let (mail, left_out) = mail.into_parts();
        timers.set_mail(mail);
        Ok(MovedEntity(Versioned::V1(Content {
            entity,
            timers,
            keys: names::keys(world, &members),
            requests: names::requests(world, &members),
            left_out,
        })))
    });
    copies.collect()
}

/// Returns why no entity of a world can be copied, if so.
fn impossible(world: &World) -> Option<MoveError> {
    if !world.contains_resource::<ClockTable>() {
        return Some(MoveError::NoPlugin);
    }
    RunDepth::is_active(world).then_some(MoveError::Running)
}

/// Marks entities as being in transit.
pub(super) fn hold(world: &mut World, root: Entity, members: impl IntoIterator<Item = Entity>) {
    for member in members {
        if let Ok(mut member) = world.get_entity_mut(member) {
            member.insert(InTransit { root });
        }
    }
    world.flush();
}

/// Returns the entities of a map by their other names.
pub(super) fn inverted(names: &EntityHashMap<Entity>) -> EntityHashMap<Entity> {
    names
        .iter()
        .map(|(&name, &entity)| (entity, name))
        .collect()
}
