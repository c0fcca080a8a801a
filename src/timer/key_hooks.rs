//! Keeping the table of keys in sync with the world.

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{CancelReason, cancel::cancel_and_despawn, key::key_of, key_table::KeyTable};

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

/// Frees the key of an entity that loses it or its owner.
pub(crate) fn free_key(world: &mut DeferredWorld, entity: Entity) {
    if let Some((owner, key)) = key_of(world, entity)
        && let Some(mut table) = world.get_resource_mut::<KeyTable>()
    {
        table.remove(owner, key, entity);
    }
}
