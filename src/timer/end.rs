//! Ending timers that have finished, or that can never fire.

use bevy_ecs::{entity::Entity, resource::Resource, world::World};

use super::{Timer, TimerAction, TimerFired, lines::is_armed};
use crate::{clock::Cadence, deferred::Deferred, owner::OwnedBy};

/// The timers that finished in this run, by cadence. The next run ends them.
#[derive(Resource, Debug, Default)]
pub(crate) struct EndedTimers([Deferred<Ended>; 2]);

/// An entity whose timer has finished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) entity: Entity,
    /// Whether the entity despawns in the next run.
    pub(crate) despawns: bool,
}

impl EndedTimers {
    pub(super) fn is_empty(&self, cadence: Cadence) -> bool {
        self.0[cadence as usize].pending().next().is_none()
    }

    pub(super) fn push(&mut self, cadence: Cadence, ended: Ended) {
        self.0[cadence as usize].push(ended);
    }

    /// Withdraws the last end of an entity, because a handler gave the entity another timer.
    pub(super) fn take_back(&mut self, cadence: Cadence, entity: Entity) {
        self.0[cadence as usize].take_last(|ended| ended.entity == entity);
    }
}

/// Ends the timers that finished in the previous run. Systems have read their messages by now.
///
/// The `Timer` itself was removed after its last firing, unless a handler panicked and the panic
/// was caught.
pub(super) fn end_finished(world: &mut World, cadence: Cadence) {
    let mut ended = world.resource_mut::<EndedTimers>();
    ended.0[cadence as usize].swap();
    while let Some(Ended { entity, despawns }) = next_ended(world, cadence) {
        let has_timer = world.get::<Timer>(entity).is_some();
        if has_timer && is_armed(world, entity) {
            continue;
        }
        if despawns {
            world.try_despawn(entity).ok();
        } else if has_timer {
            world.entity_mut(entity).remove::<Timer>();
        }
    }
}

fn next_ended(world: &mut World, cadence: Cadence) -> Option<Ended> {
    let mut ended = world.resource_mut::<EndedTimers>();
    ended.0[cadence as usize].next()
}

/// Removes the `Timer` of an entity that was cancelled because its clock does not exist, unless the
/// entity has a new one.
pub(super) fn retire(world: &mut World, entity: Entity) {
    let timer = world.get::<Timer>(entity);
    let Some(timer) = timer.filter(|timer| timer.seat().is_none()) else {
        return;
    };
    let acts = timer.acts_without_clock();
    if despawns(world, entity) {
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
    if let Some(mut ended) = world.get_resource_mut::<EndedTimers>() {
        let despawns = true;
        // Pushed for both cadences, so that whichever run comes first despawns the entity.
        ended.push(Cadence::Frame, Ended { entity, despawns });
        ended.push(Cadence::FixedStep, Ended { entity, despawns });
    }
}

/// Returns `true` if an entity despawns after the last firing of its timer.
pub(super) fn despawns(world: &World, entity: Entity) -> bool {
    let is_owned = world.get::<OwnedBy>(entity).is_some();
    let timer = world.get::<Timer>(entity);
    timer.is_some_and(|timer| timer.despawns(is_owned))
}
