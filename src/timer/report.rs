//! What a run reports: cancelled timers, ended timers, and statistics.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::Entity,
    message::Messages,
    resource::Resource,
    world::{DeferredWorld, World},
};

use super::{
    Timer, TimerAction, TimerCancelled, TimerFired, TimerLines,
    events::{is_observed, is_observed_at_all},
};
use crate::{clock::Cadence, deferred::Deferred, owner::OwnedBy};

/// What one run did.
///
/// [`ArmedTimers::last_run`](crate::ArmedTimers::last_run) and
/// [`fast_forward`](crate::DueWorldExt::fast_forward) return it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// The number of timers armed.
    pub armed: u64,
    /// The number of firings.
    pub fired: u64,
    /// The number of deadlines that passed without a firing of their own.
    pub missed: u64,
    /// The number of timers cancelled since the run before.
    pub cancelled: u64,
}

/// What is left to report or to do in the next run.
#[derive(Resource, Debug, Default)]
pub(crate) struct TimerReports {
    /// In the order of the cancellations, to be written in the next run.
    cancelled: Vec<TimerCancelled>,
    /// The number of cancellations written so far.
    written: u64,
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

    /// Writes the messages of the timers that were cancelled, and returns their number.
    pub(super) fn write_cancelled(&mut self, messages: &mut Messages<TimerCancelled>) -> u64 {
        let cancelled = self.cancelled.len() as u64;
        if cancelled > 0 {
            messages.write_batch(self.cancelled.drain(..));
            self.written += cancelled;
        }
        cancelled
    }

    /// Notes a cancellation, and returns its number.
    pub(super) fn push(&mut self, cancelled: TimerCancelled) -> u64 {
        self.cancelled.push(cancelled);
        self.written + self.cancelled.len() as u64 - 1
    }

    /// Returns the cancellation with this number, unless it is written.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut TimerCancelled> {
        let index = number.checked_sub(self.written)?;
        self.cancelled.get_mut(usize::try_from(index).ok()?)
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

/// Reports a cancelled timer, now to observers and in the next run as a message. Returns the number of
/// the report.
pub(super) fn report_cancelled(world: &mut DeferredWorld, cancelled: TimerCancelled) -> u64 {
    let reports = world.get_resource_mut::<TimerReports>();
    let number = reports.map_or(0, |mut reports| reports.push(cancelled));
    if is_observed::<TimerCancelled>(world, cancelled.entity) {
        // The reason may change until the operation is done.
        world.commands().queue(move |world: &mut World| {
            let mut reports = world.get_resource_mut::<TimerReports>();
            let report = reports.as_mut().and_then(|reports| reports.get_mut(number));
            let cancelled = report.map_or(cancelled, |report| *report);
            world.trigger(cancelled);
        });
    }
    number
}

/// Ends the timers that fired their last in the run before: systems have read the messages by now.
///
/// The `Timer` itself was removed after its last firing, unless a handler panicked and the panic was
/// caught.
pub(super) fn end_finished(world: &mut World, cadence: Cadence) {
    let mut reports = world.resource_mut::<TimerReports>();
    reports.ended(cadence).swap();
    while let Some(Ended { entity, despawns }) = next_ended(world, cadence) {
        if is_armed(world, entity) {
            continue;
        }
        if despawns {
            world.try_despawn(entity).ok();
        } else if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.remove::<Timer>();
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

/// Returns `true` if a firing has any observer, on whatever entity.
pub(super) fn is_firing_observed(world: &World) -> bool {
    is_observed_at_all::<TimerFired>(world)
}
