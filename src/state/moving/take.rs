//! Taking an entity out of a world.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashSet, prelude::*};

use super::{Content, MoveError, MovedEntity, names};
use crate::{
    clock::ClockTable,
    message::{Inbox, take_letters},
    state::{
        Versioned,
        letter::mail_of,
        save::{SaveError, SavedTimers, save_entities},
    },
    timer::{RunDepth, forget_timers},
};

/// Takes an entity and everything it owns out of a world, without any event.
pub(crate) fn take_entity(world: &mut World, entity: Entity) -> Result<MovedEntity, MoveError> {
    begin(world)?;
    let saved = save_entities(world, &[entity]);
    let members = saved.iter().flatten().flat_map(SavedTimers::entities);
    let members: Vec<Entity> = members.collect();
    // What other worlds send from here on is refused, so that nothing arrives after the last look at the mail.
    names::withdraw_keys(world, &members);
    Inbox::move_to_mailbag(world);
    let moved = with_mail(world, &[entity], saved).pop();
    let moved = match moved.unwrap_or(Err(MoveError::NoSuchEntity(entity))) {
        Ok(moved) if moved.left_out().is_empty() => moved,
        refused => {
            names::announce_keys(world, &members);
            return Err(match refused {
                Ok(moved) => MoveError::Mail(moved.left_out().to_vec()),
                Err(error) => error,
            });
        }
    };
    let is_member: EntityHashSet = members.iter().copied().collect();
    take_letters(world, &|entity| is_member.contains(&entity));
    for &member in &members {
        forget_timers(world, member);
    }
    for member in members {
        world.try_despawn(member).ok();
    }
    world.flush();
    Ok(moved)
}

/// Returns each of some entities and everything it owns as data.
pub(crate) fn copy_entities(
    world: &mut World,
    entities: &[Entity],
) -> Vec<Result<MovedEntity, MoveError>> {
    if let Err(error) = begin(world) {
        return entities.iter().map(|_| Err(error.clone())).collect();
    }
    let saved = save_entities(world, entities);
    with_mail(world, entities, saved)
}

/// Applies all commands, and returns an error if no entity of the world can be copied.
fn begin(world: &mut World) -> Result<(), MoveError> {
    world.flush();
    match () {
        () if !world.contains_resource::<ClockTable>() => Err(MoveError::NoPlugin),
        () if RunDepth::is_active(world) => Err(MoveError::Running),
        () => Ok(()),
    }
}

/// Adds the mail that waits for saved entities, and the names by which other worlds know them.
fn with_mail(
    world: &mut World,
    entities: &[Entity],
    saved: Vec<Result<SavedTimers, SaveError>>,
) -> Vec<Result<MovedEntity, MoveError>> {
    names::name_this_world(world);
    let mail = mail_of(world, &saved, &|_| Entity::PLACEHOLDER);
    let copies = entities.iter().zip(saved).zip(mail);
    let copies = copies.map(|((&entity, saved), mail)| {
        let mut timers = saved?;
        let members: Vec<Entity> = timers.entities().collect();
        let (mail, left_out) = mail.into_parts();
        timers.set_mail(mail);
        let content = Content {
            entity,
            timers,
            keys: names::keys(world, &members),
            requests: names::requests(world, &members),
            left_out,
        };
        Ok(MovedEntity(Versioned::V2(content).into()))
    });
    copies.collect()
}
