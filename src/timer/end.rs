//! Ending timers that have finished, or that can never fire.

use alloc::vec::Vec;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    Arms, CancelReason, DespawnAfter, Kind, Timer, TimerAction, TimerFired, TimerLines, WhenDone,
    arm::{cancel, cancel_silently},
    ended::Ended,
    finished::Finished,
    lines::is_armed,
    place::Place,
    setting::Setting,
};
use crate::{
    clock::{Cadence, Clock, ClockTable},
    owner::OwnedBy,
    pause::Pauses,
};

/// Ends the timers that finished in the previous run. Systems have read their messages by now.
///
/// The `Timer` itself was removed after its last firing, unless a handler panicked and the panic
/// was caught.
pub(super) fn end_finished(world: &mut World, cadence: Cadence) {
    let mut lines = world.resource_mut::<TimerLines>();
    lines.ended.swap(cadence);
    while let Some(ended) = next_ended(world, cadence) {
        end_or_retry(world, cadence, ended);
    }
}

/// Ends a timer or a lifetime. If a handler panics, the next run tries again, once: a handler that
/// panics every time must not cut off every run.
fn end_or_retry(world: &mut World, cadence: Cadence, ended: Ended) {
    let end = |world: &mut World| match ended.kind {
        Kind::Timer => end_unarmed(world, ended.entity, ended.when_done),
        Kind::Lifetime => end_life(world, ended.entity),
    };
    if ended.is_retry {
        end(world);
    } else {
        let retry = Ended {
            is_retry: true,
            ..ended
        };
        end_recorded(world, cadence, retry, end);
    }
}

/// Calls `end`. If a handler panics in it, the next run completes `ended`.
pub(super) fn end_recorded(
    world: &mut World,
    cadence: Cadence,
    ended: Ended,
    end: impl FnOnce(&mut World),
) {
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        lines.ended.push(cadence, ended);
    }
    end(world);
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        lines.ended.take_back(cadence, ended.entity, ended.kind);
    }
}

/// Ends the timer on an entity, unless a timer is armed there.
pub(super) fn end_unarmed(world: &mut World, entity: Entity, when_done: WhenDone) {
    let has_timer = world.get::<Timer>(entity).is_some();
    let is_armed = has_timer && is_armed::<Timer>(world, entity);
    if !is_armed && despawns(world, entity, when_done) {
        world.try_despawn(entity).ok();
        return;
    }
    if has_timer && !is_armed {
        world.entity_mut(entity).remove::<Timer>();
    }
    // The entity stays, so it must not despawn in a world that loads it later.
    if world.get::<Finished>(entity).is_some() {
        world.entity_mut(entity).remove::<Finished>();
    }
}

/// Despawns an entity whose lifetime is over, unless it has got another one.
fn end_life(world: &mut World, entity: Entity) {
    if world.get::<DespawnAfter>(entity).is_some() && !is_armed::<DespawnAfter>(world, entity) {
        world.try_despawn(entity).ok();
    }
}

fn next_ended(world: &mut World, cadence: Cadence) -> Option<Ended> {
    let mut lines = world.resource_mut::<TimerLines>();
    lines.ended.next(cadence)
}

/// Cancels the timers of a clock that is removed or despawned, in the order in which they were armed.
pub(crate) fn on_remove_clock(removed: On<Remove<Clock>>, mut world: DeferredWorld) {
    let clock = removed.entity;
    let is_despawned = removed.trigger().new_archetype.is_none();
    let key = world.get_resource::<ClockTable>();
    let key = key.and_then(|table| table.key_of(clock));
    let lines = world.get_resource::<TimerLines>();
    let line = lines.and_then(|lines| lines.get(key?));
    let timers = line.into_iter().flat_map(|line| {
        let timers = line.queue.iter();
        timers.map(|(key, _, timer)| {
            let sequence = line.queue.sequence(key);
            (sequence, timer.entity, timer.owner, timer.kind())
        })
    });
    let mut timers: Vec<_> = timers.collect();
    // The order in the queue depends on its past, which a loaded world does not share.
    timers.sort_unstable_by_key(|&(sequence, ..)| sequence);
    for (_, timer, owner, kind) in timers {
        // If the clock is also the owner, `OwnerGone` is the more precise reason.
        let reason = match is_despawned && owner == clock {
            true => CancelReason::OwnerGone,
            false => CancelReason::ClockGone,
        };
        match kind {
            Kind::Timer => _ = cancel(&mut world, timer, reason),
            Kind::Lifetime => cancel_silently::<DespawnAfter>(&mut world, timer),
        }
        // One command per timer: if one panics, the others still run.
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| retire(world, timer, kind));
    }
}

/// Cancels the timer of `C` on an entity, unless its clock exists by now.
pub(super) fn lose_clock<C: Arms>(world: &mut World, entity: Entity) {
    let setting = Setting::of::<C>(world, entity);
    let table = world.get_resource::<ClockTable>();
    let (Some(setting), Some(table)) = (setting, table) else {
        return;
    };
    if table.find(setting.clock).is_ok() {
        return;
    }
    match C::KIND {
        Kind::Timer => _ = cancel(&mut world.into(), entity, CancelReason::ClockGone),
        Kind::Lifetime => cancel_silently::<C>(&mut world.into(), entity),
    }
    retire(world, entity, C::KIND);
}

/// Removes the component whose timer was cancelled because its clock does not exist, unless the
/// entity has a new one.
fn retire(world: &mut World, entity: Entity, kind: Kind) {
    match kind {
        Kind::Timer if is_nowhere::<Timer>(world, entity) => retire_timer(world, entity),
        Kind::Lifetime if is_nowhere::<DespawnAfter>(world, entity) => {
            let mut entity = world.entity_mut(entity);
            if entity.contains::<Pauses>() {
                // Nothing else would end this pause.
                entity.despawn();
            } else {
                entity.remove::<DespawnAfter>();
            }
        }
        Kind::Timer | Kind::Lifetime => {}
    }
}

/// Takes the timer and the lifetime of an entity out of their queues, without an event.
#[cfg(feature = "serialize")]
pub(crate) fn forget_timers(world: &mut DeferredWorld, entity: Entity) {
    cancel_silently::<Timer>(world, entity);
    cancel_silently::<DespawnAfter>(world, entity);
}

fn is_nowhere<C: Arms>(world: &World, entity: Entity) -> bool {
    let component = world.get::<C>(entity);
    component.is_some_and(|component| matches!(component.seat().place(), Place::Nowhere))
}

fn retire_timer(world: &mut World, entity: Entity) {
    let Some(timer) = world.get::<Timer>(entity) else {
        return;
    };
    let acts = timer.acts_without_clock();
    let when_done = when_done(world, entity);
    let ended = Ended::timer(entity, when_done);
    end_recorded(world, Cadence::Frame, ended, |world| {
        end_unarmed(world, entity, when_done);
    });
    if acts && world.get_entity(entity).is_ok() {
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
        let when_done = WhenDone::DespawnUnlessOwned;
        lines
            .ended
            .push_for_any_run(Ended::timer(entity, when_done));
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
        WhenDone::DespawnUnlessOwned => world.get::<OwnedBy>(entity).is_none(),
    }
}
