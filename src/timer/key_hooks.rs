//! Keeping the table of keys in sync with the world.

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    CancelReason, cancel::cancel_and_despawn, key::Keyed, key_id::KeyId, key_table::KeyTable,
};
use crate::owner::OwnedBy;

pub(crate) fn on_key(inserted: On<Insert<(Keyed, OwnedBy)>>, mut world: DeferredWorld) {
    take_key(&mut world, inserted.entity);
}

/// Gives a key to `entity`, and cancels the timer of its owner that had the key before.
pub(crate) fn take_key(world: &mut DeferredWorld, entity: Entity) {
    let Some((owner, key)) = key_of(world, entity) else {
        return;
    };
    let table = world.get_resource_mut::<KeyTable>();
    let Some(earlier) = table.and_then(|mut table| table.insert(owner, key, entity)) else {
        return;
    };
    // The command runs after the owner has learned of the new timer. Observers of the earlier timer
    // may then even despawn the owner.
    world.commands().queue(move |world: &mut World| {
        let table = world.get_resource::<KeyTable>();
        let holder = table.and_then(|table| table.get(owner, key));
        // Either of them may have lost the key, or taken it back, in the meantime.
        if holder != Some(earlier) && key_of(world, earlier) == Some((owner, key)) {
            cancel_and_despawn(world, earlier, CancelReason::Replaced);
        }
    });
}

pub(crate) fn on_discard_key(discarded: On<Discard<(Keyed, OwnedBy)>>, mut world: DeferredWorld) {
    let entity = discarded.entity;
    if let Some((owner, key)) = key_of(&world, entity)
        && let Some(mut table) = world.get_resource_mut::<KeyTable>()
    {
        table.remove(owner, key, entity);
    }
}

/// Notes a key that is lost while there is a snapshot, even if nothing else sees it.
pub(crate) fn note_key(discarded: On<Discard<(Keyed, OwnedBy)>>, mut world: DeferredWorld) {
    let entity = discarded.entity;
    if let Some((owner, key)) = key_of(&world, entity)
        && let Some(mut table) = world.get_resource_mut::<KeyTable>()
    {
        table.note(owner, key, entity);
    }
}

/// Returns the owner and the key of an entity, if it has both.
fn key_of(world: &World, entity: Entity) -> Option<(Entity, KeyId)> {
    let &OwnedBy(owner) = world.get(entity)?;
    let key: &Keyed = world.get(entity)?;
    Some((owner, key.id()))
}
