//! The calls that cancel timers. Observers run before anything is removed.

use alloc::vec::Vec;

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{
    CancelReason, DespawnAfter, IntoKey, Timer, WhenDone,
    arm::take_out,
    end::{end_recorded, end_unarmed},
    ended::Ended,
    find::find_keyed,
};
use crate::{
    clock::Cadence,
    owner::{Owned, OwnedBy},
};

/// Exempts a timer when all timers of its owner are cancelled: the time-out of a request.
#[derive(Component, Clone, Copy)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone)
)]
pub(crate) struct SurvivesCancelAll;

/// Cancels the timer of `entity` and triggers the event. Then ends the timer, unless an observer has
/// armed another one. Returns `true` if the timer was armed.
fn cancel_now(
    world: &mut World,
    entity: Entity,
    reason: CancelReason,
    when_done: WhenDone,
) -> bool {
    let Some((_, cancelled)) = take_out(&mut world.into(), entity, reason) else {
        end_unarmed(world, entity, when_done);
        return false;
    };
    let ended = Ended::timer(entity, when_done);
    end_recorded(world, Cadence::Frame, ended, |world| {
        if cancelled.is_observed(world) {
            cancelled.trigger(world);
        }
        end_unarmed(world, entity, when_done);
    });
    true
}

/// Cancels an owned timer and despawns its entity. Returns `true` if the timer was armed.
pub(super) fn cancel_and_despawn(world: &mut World, entity: Entity, reason: CancelReason) -> bool {
    cancel_now(world, entity, reason, WhenDone::Despawn)
}

/// Cancels the timer or the lifetime of `owner` with this key, and returns `true` if there was one.
pub(crate) fn cancel_keyed(world: &mut World, owner: Entity, key: &impl IntoKey) -> bool {
    let Some(timer) = find_keyed(world, owner, key) else {
        return false;
    };
    if world.get::<Timer>(timer).is_some() {
        return cancel_and_despawn(world, timer, CancelReason::Cancelled);
    }
    // A timer in its last firing is no longer armed.
    world.get::<DespawnAfter>(timer).is_some() && world.despawn(timer)
}

/// Cancels the timer on `owner` and all timers that belong to it.
pub(crate) fn cancel_all(world: &mut World, owner: Entity) {
    if world.get::<Timer>(owner).is_some() && world.get::<SurvivesCancelAll>(owner).is_none() {
        cancel_now(world, owner, CancelReason::Cancelled, WhenDone::Keep);
    }
    let owned = world.get::<Owned>(owner);
    let owned: Vec<Entity> = owned.into_iter().flat_map(Owned::iter).collect();
    for timer in owned {
        // A handler may have moved it to another owner.
        if world.get::<OwnedBy>(timer) == Some(&OwnedBy(owner))
            && world.get::<Timer>(timer).is_some()
            && world.get::<SurvivesCancelAll>(timer).is_none()
        {
            cancel_and_despawn(world, timer, CancelReason::Cancelled);
        }
    }
}
