//! Cancelling: the steps of a timer on its way out of the queue before its last firing.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    CancelReason, CrateTimer, Keyed, Kind, Timer, TimerCancelled, TimerQueues,
    arm::queues_and_entity,
    place::Place,
    setting::{Modified, Setting},
};
use crate::{
    clock::{ClockId, ClockTable},
    owner::OwnedBy,
};

/// Cancels the time-out of a request that is complete or withdrawn.
pub(super) fn on_discard_request(mut world: DeferredWorld, context: HookContext) {
    cancel_silently(&mut world, context.entity, Kind::Request);
}

/// Cancels a lifetime that is about to be replaced or removed.
pub(super) fn on_discard_lifetime(mut world: DeferredWorld, context: HookContext) {
    cancel_silently(&mut world, context.entity, Kind::Lifetime);
}

/// Takes a timer of `entity` out of its queue, without an event.
pub(crate) fn cancel_silently(world: &mut DeferredWorld, entity: Entity, kind: Kind) {
    let Some(timer) = kind.get(world, entity) else {
        return;
    };
    let place = timer.seat.place();
    timer.seat.move_to(None);
    if let Some(place) = place
        && let Some(mut queues) = world.get_resource_mut::<TimerQueues>()
    {
        queues.take(place, |_, _| ());
    }
}

/// Cancels a timer that is about to be replaced, or removed if `on_remove` follows.
pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(timer) = world.get::<Timer>(entity)
        && timer.seat.place().is_none()
    {
        // Usually `on_despawn` has cancelled it.
        return;
    }
    if let Some(number) = cancel(&mut world, entity, CancelReason::Replaced)
        && let Some(timer) = world.get::<Timer>(entity)
    {
        timer.seat.report(number);
    }
}

/// Corrects the report of `on_discard`: the timer was removed.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let timer = world.get::<Timer>(entity);
    if let Some(number) = timer.and_then(|timer| timer.seat.reported())
        && let Some(mut queues) = world.get_resource_mut::<TimerQueues>()
        && let Some(report) = queues.reports.cancelled.get_mut(number)
    {
        report.reason = CancelReason::Removed;
    }
}

/// Cancels the timer of an entity that despawns, before `on_discard` does.
pub(super) fn on_despawn(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    cancel(&mut world, entity, CancelReason::Despawned);
}

/// Takes the timer of `entity` out of its queue, but leaves its component in place. Returns the number
/// of the report, or `None` if the timer was not armed.
pub(super) fn cancel(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: CancelReason,
) -> Option<u64> {
    let (number, owner) = take_out(world, entity, reason)?;
    // Observers see the report once the operation is done, because its reason may change until then.
    if TimerCancelled::is_observed(world, entity, owner) {
        trigger_later(world, number);
    }
    Some(number)
}

/// Takes the timer of `entity` out of its queue, and reports the cancellation. Returns the number of
/// the report and the owner that is notified, if any, or `None` if the timer was not armed.
///
/// The message is written in the next run.
#[inline]
pub(super) fn take_out(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: CancelReason,
) -> Option<(u64, Option<Entity>)> {
    let Some((queues, table, entity_ref)) = queues_and_entity(world, entity) else {
        return take_out_of_resource(world, entity, reason);
    };
    let leaving = Leaving::new(entity_ref.get::<Timer>()?)?;
    let (clock, chosen) = (leaving.place.0, leaving.chosen);
    let now = table.reading(clock).map(|reading| reading.now);
    let mut cancelled = leaving.take(queues, now, reason)?;
    let modified = queues.arming.modifiers.note(entity_ref.archetype());
    let is_plain = modified.by == Modified::Nothing;
    let settled = table.id(clock);
    if let Some(id) = settled
        && (is_plain || reason != CancelReason::Despawned)
    {
        cancelled = cancelled.with_clock(id);
        if !is_plain {
            cancelled = belonging_as(cancelled, entity_ref);
        }
        let number = queues.reports.cancelled.push(cancelled);
        return Some((number, cancelled.notified_owner()));
    }
    report_settled(world, cancelled, (settled, chosen))
}

/// Does the same for a timer on the entity of the queues or of the clocks, which can't be borrowed twice.
#[cold]
fn take_out_of_resource(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: CancelReason,
) -> Option<(u64, Option<Entity>)> {
    let leaving = Leaving::new(world.get::<Timer>(entity)?)?;
    let (clock, chosen) = (leaving.place.0, leaving.chosen);
    let table = world.get_resource::<ClockTable>()?;
    let now = table.reading(clock).map(|reading| reading.now);
    let id = table.id(clock);
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    let cancelled = leaving.take(&mut queues, now, reason)?;
    report_settled(world, cancelled, (id, chosen))
}

/// A timer that has left its seat, but not its queue.
struct Leaving {
    place: Place,
    chosen: Option<ClockId>,
    delay: u64,
}

impl Leaving {
    /// Empties the seat of a timer. Returns `None` if it was not armed.
    #[inline]
    fn new(timer: &Timer) -> Option<Self> {
        let place = timer.seat.place();
        timer.seat.move_to(None);
        Some(Self {
            place: place?,
            chosen: timer.clock(),
            delay: timer.delay,
        })
    }

    /// Takes the timer out of its queue. The cancellation says how far it had come.
    #[inline]
    fn take(
        &self,
        queues: &mut TimerQueues,
        now: Option<u64>,
        reason: CancelReason,
    ) -> Option<TimerCancelled> {
        queues.take(self.place, |deadline, timer| {
            let remaining = now.map_or(0, |now| {
                timer.deadline_at(now, deadline).saturating_sub(now)
            });
            TimerCancelled {
                count: timer.count(),
                left: timer.left().unwrap_or(0),
                remaining: remaining.min(timer.wait(self.delay)),
                ..TimerCancelled::new(timer.entity, reason)
            }
        })
    }
}

/// Reports a cancellation with its clock, its owner and its key.
#[inline(never)]
fn report_settled(
    world: &mut DeferredWorld,
    cancelled: TimerCancelled,
    settled: (Option<ClockId>, Option<ClockId>),
) -> Option<(u64, Option<Entity>)> {
    let cancelled = settle(world, cancelled, settled)?;
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    let number = queues.reports.cancelled.push(cancelled);
    Some((number, cancelled.notified_owner()))
}

/// Adds the clock and the owner to a cancellation, and finds out whether the owner is gone.
fn settle(
    world: &World,
    cancelled: TimerCancelled,
    (settled, chosen): (Option<ClockId>, Option<ClockId>),
) -> Option<TimerCancelled> {
    let modifiers = &world.get_resource::<TimerQueues>()?.arming.modifiers;
    let entity = world.get_entity(cancelled.entity).ok()?;
    let clock = settled.unwrap_or_else(|| Setting::new(world, modifiers, entity, chosen).clock);
    let mut cancelled = belonging_as(cancelled.with_clock(clock), entity);
    if cancelled.reason == CancelReason::Despawned
        && !world.entities().contains_spawned(cancelled.owner)
    {
        cancelled.reason = CancelReason::OwnerGone;
    }
    Some(cancelled)
}

/// Adds the owner and the key of a timer to its cancellation.
fn belonging_as(cancelled: TimerCancelled, entity: EntityRef) -> TimerCancelled {
    let owner = entity.get::<OwnedBy>();
    TimerCancelled {
        owner: owner.map_or(entity.id(), |by| by.0),
        key: owner.and(entity.get::<Keyed>()).map(Keyed::id),
        is_announced: !entity.contains::<CrateTimer>(),
        ..cancelled
    }
}

/// Triggers a report once the operation that cancels is done.
#[inline(never)]
fn trigger_later(world: &mut DeferredWorld, number: u64) {
    let Some(cancelled) = report(world, number) else {
        return;
    };
    world.commands().queue(move |world: &mut World| {
        let report = report(&mut world.into(), number);
        report.unwrap_or(cancelled).trigger(world);
    });
}

/// Returns the report with this number, unless it was written before the last run.
pub(super) fn report(world: &mut DeferredWorld, number: u64) -> Option<TimerCancelled> {
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.reports.cancelled.get_mut(number).copied()
}
