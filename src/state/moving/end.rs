//! Ending a move: one end forgets the entity, and the other commits it.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashSet, prelude::*};

use super::{HeldMail, MoveError, export::inverted};
use crate::{
    message::{HeldLetters, MailRef, Recipient, release_lost},
    state::{
        Versioned,
        letter::{LetterData, MailData, letters, name_in, rename_all},
        save::dependents,
    },
    timer::forget_timers,
    transit::InTransit,
};

/// Ends a move elsewhere: despawns the entity without a word, and returns the mail that was held.
pub(crate) fn forget_entity(world: &mut World, entity: Entity) -> Result<HeldMail, MoveError> {
    world.flush();
    let members = members(world, entity)?;
    let dependents = dependents(world, entity);
    let mut all: EntityHashSet = dependents.iter().map(|entity| entity.id()).collect();
    all.extend(&members);
    HeldLetters::collect_arrived(world, entity, &|to| all.contains(&to));
    let mail = held_mail(world, entity)?;
    HeldLetters::drop_all(world, entity, mail.len());
    for &member in &all {
        forget_timers(world, member);
    }
    for member in [entity].into_iter().chain(members) {
        world.try_despawn(member).ok();
    }
    world.flush();
    Ok(mail)
}

/// Ends a move here: the entity continues, and gets the mail that was held at both ends.
pub(crate) fn commit_entity(
    world: &mut World,
    entity: Entity,
    HeldMail(Versioned::V1(late)): &HeldMail,
) -> Result<(), MoveError> {
    world.flush();
    let members = members(world, entity)?;
    let held = HeldLetters::of(world, entity);
    let is_at_old_end = held.is_some_and(HeldLetters::is_at_old_end);
    let names = held.map(|held| held.names.clone()).unwrap_or_default();
    for entity in late.iter().flat_map(LetterData::entities) {
        if !names.contains_key(&entity) {
            return Err(MoveError::UnknownEntity(entity));
        }
    }
    let mut late = letters(world, late)?;
    rename_all(&mut late, &names);
    // The late mail may come between mail that waits here. At the new end, it comes before all of that, which
    // keeps its place among the messages to others.
    if is_at_old_end && !late.is_empty() {
        let members: EntityHashSet = members.into_iter().collect();
        HeldLetters::collect_arrived(world, entity, &|to| members.contains(&to));
    }
    HeldLetters::set_late(world, entity, late);
    world.entity_mut(entity).remove::<InTransit>();
    release_lost(world);
    Ok(())
}

/// Returns the entities of a move, or an error if this entity does not move.
fn members(world: &World, root: Entity) -> Result<Vec<Entity>, MoveError> {
    let mark = world.get::<InTransit>(root);
    let held = HeldLetters::of(world, root);
    match (mark, held) {
        (Some(mark), Some(held)) if mark.root == root => Ok(held.names.values().copied().collect()),
        _ => Err(MoveError::NotInTransit(root)),
    }
}

/// Returns the mail that has arrived since the export or the import, by the names of the world that
/// exported the entity. Mail to entities that joined them later has no place there.
fn held_mail(world: &World, root: Entity) -> Result<HeldMail, MoveError> {
    let Some(held) = HeldLetters::of(world, root) else {
        return Ok(HeldMail::default());
    };
    let names = inverted(&held.names);
    let meant = held.arrived.iter().filter(|(to, _)| names.contains_key(to));
    let mut mail = MailData::default();
    for (to, letter) in meant {
        let to = Recipient::Entity(*to);
        mail.add(world, MailRef { to, ..letter.get() }, &name_in(&names));
    }
    let mail = mail.all_or_error().map_err(MoveError::Mail)?;
    Ok(HeldMail(Versioned::V1(mail)))
}
