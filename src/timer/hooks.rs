//! The hooks that keep the queue in step with the world.

use bevy_ecs::{
    entity::Entity,
    lifecycle::HookContext,
    world::{DeferredWorld, EntityRef},
};
use bevy_time::{Time, Virtual};

use super::{
    ArmedTimer, CancelReason, Timeline, Timer, TimerCancelled, TimerOf, events::is_observed,
};
use crate::{clock::Reading, queue::TimerKey};

/// What a discarded `Timer` holds until its removal, if it is removed.
const DISCARDED: TimerKey = TimerKey::reserved(1);

/// Arms the `Timer` of `entity`.
///
/// Without a [`Timeline`] nothing happens: in a world that does not run timers, such as the one
/// that a scene is loaded into, a `Timer` is just data.
pub(crate) fn arm(mut world: DeferredWorld, entity: Entity) {
    let Ok(entity_ref) = world.get_entity(entity) else {
        return;
    };
    let Some(timer) = entity_ref.get::<Timer>() else {
        return;
    };
    let armed = ArmedTimer::new(entity, owner_of(entity_ref), timer);
    // The clock may have been set since it was read for a run, so it is asked again.
    let now = world
        .get_resource::<Time<Virtual>>()
        .map_or(0, |time| Reading::from(time).now);
    let deadline = now.saturating_add(timer.delay);
    let Some(mut timeline) = world.get_resource_mut::<Timeline>() else {
        return;
    };
    let discarded = timeline.discarded.take();
    let key = timeline.add(deadline, armed);
    if let Some(timer) = world.get::<Timer>(entity) {
        timer.set_key(key);
    }
    if let Some(mut cancelled) = discarded {
        if cancelled.entity == entity {
            cancelled.reason = CancelReason::Replaced;
        }
        report(&mut world, cancelled);
    }
}

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    arm(world, entity);
}

/// Cancels. Whether the timer is being removed or replaced shows in the hook that comes next.
pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some((key, owner)) = disarm(&world, entity, DISCARDED) else {
        return;
    };
    let Some(mut timeline) = world.get_resource_mut::<Timeline>() else {
        return;
    };
    if !timeline.cancel(key) {
        return;
    }
    let left_over = timeline.discarded.replace(TimerCancelled {
        entity,
        owner,
        reason: CancelReason::Removed,
    });
    // A panic between two hooks, caught by somebody, has left the first without the second.
    if let Some(left_over) = left_over {
        report(&mut world, left_over);
    }
}

pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if world.get::<Timer>(entity).map(Timer::key) != Some(DISCARDED) {
        return;
    }
    let removed = world
        .get_resource_mut::<Timeline>()
        .and_then(|mut timeline| timeline.discarded.take());
    if let Some(removed) = removed {
        report(&mut world, removed);
    }
}

pub(super) fn on_despawn(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some((key, owner)) = disarm(&world, entity, TimerKey::NONE) else {
        return;
    };
    let reason = if world.entities().contains_spawned(owner) {
        CancelReason::Despawned
    } else {
        CancelReason::OwnerGone
    };
    let cancelled = TimerCancelled {
        entity,
        owner,
        reason,
    };
    if let Some(mut timeline) = world.get_resource_mut::<Timeline>()
        && timeline.cancel(key)
    {
        timeline.cancelled.push(cancelled);
        tell_observers(&mut world, cancelled);
    }
}

/// Returns the key and the owner of the timer of `entity` if it is armed, and leaves `replacement`
/// in the component.
fn disarm(
    world: &DeferredWorld,
    entity: Entity,
    replacement: TimerKey,
) -> Option<(TimerKey, Entity)> {
    let entity = world.get_entity(entity).ok()?;
    let timer = entity.get::<Timer>()?;
    let key = timer.key();
    if key == TimerKey::NONE {
        return None;
    }
    timer.set_key(replacement);
    Some((key, owner_of(entity)))
}

fn report(world: &mut DeferredWorld, cancelled: TimerCancelled) {
    if let Some(mut timeline) = world.get_resource_mut::<Timeline>() {
        timeline.cancelled.push(cancelled);
    }
    tell_observers(world, cancelled);
}

fn tell_observers(world: &mut DeferredWorld, cancelled: TimerCancelled) {
    if is_observed::<TimerCancelled>(world, cancelled.entity) {
        world.commands().trigger(cancelled);
    }
}

fn owner_of(entity: EntityRef) -> Entity {
    entity.get::<TimerOf>().map_or(entity.id(), |of| of.0)
}
