//! The end of timers that fired their last, and the statistics of a run.

use bevy_ecs::{entity::Entity, resource::Resource, world::World};

use super::{Timer, TimerAction, TimerFired, TimerLines};
use crate::{clock::Cadence, deferred::Deferred, owner::OwnedBy};

/// The statistics of one run.
///
/// [`ArmedTimers::last_run`](crate::ArmedTimers::last_run) and
/// [`fast_forward`](crate::DueWorldExt::fast_forward) return it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// The number of timers armed.
    pub armed: u64,
    /// The number of firings.
    pub fired: u64,
    /// The number of deadlines that passed without a firing.
    pub missed: u64,
    /// The number of timers cancelled since the run before.
    pub cancelled: u64,
}

/// The ends of timers that the next run completes, and the statistics of the last run.
#[derive(Resource, Debug, Default)]
pub(crate) struct TimerReports {
    /// By cadence.
    ended: [Deferred<Ended>; 2],
    /// By cadence.
    stats: [RunStats; 2],
}

/// An entity whose timer has fired its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) entity: Entity,
    /// Whether the entity despawns in the next run.
    pub(crate) despawns: bool,
}

impl TimerReports {
    pub(crate) fn stats(&self, cadence: Cadence) -> RunStats {
        self.stats[cadence as usize]
    }

    pub(super) fn set_stats(&mut self, cadence: Cadence, stats: RunStats) {
        self.stats[cadence as usize] = stats;
    }

    pub(super) fn has_ended(&self, cadence: Cadence) -> bool {
        self.ended[cadence as usize].pending().next().is_some()
    }

    pub(super) fn end(&mut self, cadence: Cadence, ended: Ended) {
        self.ended[cadence as usize].push(ended);
    }

    fn ended(&mut self, cadence: Cadence) -> &mut Deferred<Ended> {
        &mut self.ended[cadence as usize]
    }
}

/// Ends the timers that fired their last in the run before: systems have read the messages by now.
///
/// The `Timer` itself was removed after its last firing, unless a handler panicked and the panic was
/// caught.
pub(super) fn end_finished(world: &mut World, cadence: Cadence) {
    let mut reports = world.resource_mut::<TimerReports>();
    reports.ended(cadence).swap();
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

/// Returns `true` if the timer of an entity is armed or paused.
pub(crate) fn is_armed(world: &World, entity: Entity) -> bool {
    let seat = world.get::<Timer>(entity).and_then(Timer::seat);
    let lines = world.get_resource::<TimerLines>();
    let (Some((clock, key)), Some(lines)) = (seat, lines) else {
        return false;
    };
    let line = lines.get(clock);
    line.is_some_and(|line| line.queue.get(key).is_some())
}

fn next_ended(world: &mut World, cadence: Cadence) -> Option<Ended> {
    let mut reports = world.resource_mut::<TimerReports>();
    reports.ended(cadence).next()
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
/// run: the caller may still have commands for it.
pub(super) fn retire_later(world: &mut World, entity: Entity) {
    if let Ok(mut entity) = world.get_entity_mut(entity) {
        entity.remove::<Timer>();
    }
    if let Some(mut reports) = world.get_resource_mut::<TimerReports>() {
        let despawns = true;
        reports.end(Cadence::Frame, Ended { entity, despawns });
    }
}

/// Returns `true` if an entity despawns after the last firing of its timer.
pub(super) fn despawns(world: &World, entity: Entity) -> bool {
    let is_owned = world.get::<OwnedBy>(entity).is_some();
    let timer = world.get::<Timer>(entity);
    timer.is_some_and(|timer| timer.despawns(is_owned))
}
