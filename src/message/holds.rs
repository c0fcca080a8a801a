//! The holds of entities in transit, and their end.

use alloc::vec::Vec;

use bevy_ecs::prelude::*;

use super::{followers::Followers, held_letters::HeldLetters, mailbag::Mailbag};
use crate::transit::InTransit;

/// Returns `true` if the letters to an entity in transit are held.
pub(crate) fn is_held(world: &World, entity: Entity) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    let root = world.get::<InTransit>(entity).map(|mark| mark.root);
    let held = root.and_then(|root| mailbag?.transit.get(&root));
    held.is_some_and(|held| held.members().any(|member| member == entity))
}

/// Ends the holds of entities that are no longer in transit: their move has ended, they have despawned, or
/// a restore or the game has removed their mark. The letters are released before all others.
pub(crate) fn release_lost(world: &mut World) {
    let held = world.resource::<Mailbag>().transit.keys().copied();
    let lost: Vec<Entity> = held.filter(|&root| is_lost(world, root)).collect();
    for root in lost {
        end(world, root);
    }
}

fn is_lost(world: &World, root: Entity) -> bool {
    world.get::<InTransit>(root).is_none()
}

/// Ends a hold that is lost. An observer of a mark may export the entity again, and begin another hold. If
/// it panics, the next run ends this one.
fn end(world: &mut World, root: Entity) {
    let held = world.resource::<Mailbag>().transit.get(&root);
    let members: Vec<Entity> = held.into_iter().flat_map(HeldLetters::members).collect();
    for member in members {
        let mark = world.get::<InTransit>(member);
        if is_lost(world, root) && mark.is_some_and(|mark| mark.root == root) {
            world.entity_mut(member).remove::<InTransit>();
        }
    }
    if !is_lost(world, root) {
        return;
    }
    // Messages in turn may go to the entity again.
    if let Some(mut followers) = world.get_resource_mut::<Followers>() {
        followers.retry_disabled();
    }
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>()
        && let Some(held) = mailbag.transit.remove(&root)
    {
        mailbag.release_first(held.into_letters());
    }
}
