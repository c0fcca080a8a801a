//! Ending a move: one end forgets the entity, and the other commits it.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashSet, prelude::*};

use super::{
    HeldMail, LetterData, MoveError,
    export::{all_or_error, inverted},
    import::letters,
    letter::letter_to_data,
};
use crate::{
    message::{HeldLetters, release_lost},
    state::{Versioned, save::dependents},
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
        forget_timers(&mut world.into(), member);
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
    for to in late.iter().map(LetterData::to) {
        if !names.contains_key(&to) {
            return Err(MoveError::UnknownEntity(to));
        }
    }
    let mut late = letters(world, late)?;
    for letter in &mut late {
        letter.rename(&names);
    }
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
    let meant = meant.filter_map(|(to, letter)| Some((to, letter.get()?)));
    let mail = meant.map(|(to, letter)| {
        let mut letter = letter_to_data(world, *to, letter)?;
        letter.rename(&names);
        Ok(letter)
    });
    Ok(HeldMail(Versioned::V1(all_or_error(mail)?)))
}
