//! Ending timers that have finished, or that can never fire.

use bevy_ecs::prelude::*;

use super::{Timer, TimerAction, TimerFired, TimerLines, WhenDone, ended::Ended, lines::is_armed};
use crate::{clock::Cadence, owner::OwnedBy};

/// Ends the timers that finished in the previous run. Systems have read their messages by now.
///
/// The `Timer` itself was removed after its last firing, unless a handler panicked and the panic
/// was caught.
pub(super) fn end_finished(world: &mut World, cadence: Cadence) {
    let mut lines = world.resource_mut::<TimerLines>();
    lines.ended.swap(cadence);
    while let Some(Ended { entity, when_done }) = next_ended(world, cadence) {
        let has_timer = world.get::<Timer>(entity).is_some();
        if has_timer && is_armed(world, entity) {
            continue;
        }
        if despawns(world, entity, when_done) {
            world.try_despawn(entity).ok();
        } else if has_timer {
            world.entity_mut(entity).remove::<Timer>();
        }
    }
}

fn next_ended(world: &mut World, cadence: Cadence) -> Option<Ended> {
    let mut lines = world.resource_mut::<TimerLines>();
    lines.ended.next(cadence)
}

/// Removes the `Timer` of an entity that was cancelled because its clock does not exist, unless the
/// entity has a new one.
pub(super) fn retire(world: &mut World, entity: Entity) {
    let timer = world.get::<Timer>(entity);
    let Some(timer) = timer.filter(|timer| timer.seat().is_none()) else {
        return;
    };
    let acts = timer.acts_without_clock();
    if despawns(world, entity, timer.when_done()) {
        world.despawn(entity);
        return;
    }
    world.entity_mut(entity).remove::<Timer>();
    if acts {
        TimerAction::act(world, &TimerFired::new(entity));
    }
}

/// Removes the `Timer` of an entity whose owner does not exist, and despawns the entity in the next
/// run.
///
/// The despawn is delayed because the caller may still have commands for the entity.
pub(super) fn retire_later(world: &mut World, entity: Entity) {
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        entity.remove::<Timer>();
    }
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        let ended = &mut lines.ended;
        let when_done = WhenDone::Despawn;
        // Pushed for both cadences, so that whichever run comes first despawns the entity.
        ended.push(Cadence::Frame, Ended { entity, when_done });
        ended.push(Cadence::FixedStep, Ended { entity, when_done });
    }
}

/// Returns what happens to an entity whose timer finishes now. Without an owner, it is kept.
pub(super) fn when_done(world: &World, entity: Entity) -> WhenDone {
    let when_done = world.get::<Timer>(entity).map(Timer::when_done);
    let when_done = when_done.unwrap_or_default();
    match despawns(world, entity, when_done) {
        true => when_done,
        false => WhenDone::Keep,
    }
}

/// Returns `true` if an entity despawns now that its timer has finished.
fn despawns(world: &World, entity: Entity, when_done: WhenDone) -> bool {
    match when_done {
        WhenDone::DespawnIfOwned => world.get::<OwnedBy>(entity).is_some(),
        WhenDone::Keep => false,
        WhenDone::Despawn => true,
    }
}
