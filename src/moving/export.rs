//! Exporting an entity.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::{Content, MoveError, MovedEntity, names};
use crate::{
    clock::ClockTable,
    message::{
        End, HeldLetters, LetterData, Taken, UnmovableMail, letter_to_data, release_lost,
        take_letters, visit_letters,
    },
    save::save_entity,
    timer::RunDepth,
    transit::InTransit,
};

/// Returns an entity and everything it owns as data. They are in transit from here on.
pub(crate) fn export_entity(world: &mut World, entity: Entity) -> Result<MovedEntity, MoveError> {
    world.flush();
    if !world.contains_resource::<ClockTable>() {
        return Err(MoveError::NoPlugin);
    }
    if world.get_entity(entity).is_err() {
        return Err(MoveError::NoSuchEntity(entity));
    }
    if RunDepth::is_active(world) {
        return Err(MoveError::Running);
    }
    // The mail of an earlier move that has ended by now moves along.
    release_lost(world);
    let timers = save_entity(world, entity)?;
    let members: Vec<Entity> = timers.entities().collect();
    for &member in &members {
        if world.get::<InTransit>(member).is_some() {
            return Err(MoveError::InTransit(member));
        }
    }
    names::name_this_world(world);
    let is_member: EntityHashSet = members.iter().copied().collect();
    let is_member = |entity| is_member.contains(&entity);
    let content = Content {
        entity,
        timers,
        mail: mail(world, &is_member)?,
        keys: names::keys(world, &members),
        requests: names::requests(world, &members),
    };
    let exported = take_letters(world, &is_member).into_iter();
    let exported = exported.filter_map(|taken| match taken {
        Taken::Letter(_, letter) => Some(letter),
        Taken::KeyTaken => None,
    });
    let exported = exported.collect();
    let names = members.iter().map(|&member| (member, member));
    HeldLetters::begin(world, (entity, End::default()), names.collect(), exported);
    hold(world, entity, members);
    Ok(MovedEntity(content))
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

/// Returns the mail that waits for these entities, or an error that lists what is not data.
fn mail(world: &World, is_member: &dyn Fn(Entity) -> bool) -> Result<Vec<LetterData>, MoveError> {
    let mut mail = Vec::new();
    visit_letters(world, is_member, |to, letter| {
        mail.push(letter_to_data(world, to, letter));
    });
    all_or_error(mail)
}

/// Returns the letters as data, or an error that lists all that are not.
pub(super) fn all_or_error(
    letters: impl IntoIterator<Item = Result<LetterData, UnmovableMail>>,
) -> Result<Vec<LetterData>, MoveError> {
    let (mut mail, mut unmovable) = (Vec::new(), Vec::new());
    for letter in letters {
        match letter {
            Ok(letter) => mail.push(letter),
            Err(error) => unmovable.push(error),
        }
    }
    match unmovable.is_empty() {
        true => Ok(mail),
        false => Err(MoveError::Mail(unmovable)),
    }
}

/// Returns the entities of a map by their other names.
pub(super) fn inverted(names: &EntityHashMap<Entity>) -> EntityHashMap<Entity> {
    names
        .iter()
        .map(|(&name, &entity)| (entity, name))
        .collect()
}
