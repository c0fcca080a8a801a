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
    while let Some(Ended { entity, when_done }) = next_ended(world, cadence) {
        end_unarmed(world, entity, when_done);
    }
}

/// Ends the timer on an entity, unless a timer is armed there.
pub(super) fn end_unarmed(world: &mut World, entity: Entity, when_done: WhenDone) {
    let has_timer = world.get::<Timer>(entity).is_some();
    if has_timer && is_armed(world, entity) {
        world.entity_mut(entity).remove::<Finished>();
        return;
    }
    if despawns(world, entity, when_done) {
        world.try_despawn(entity).ok();
    } else if has_timer {
        world.entity_mut(entity).remove::<Timer>();
    }
}

fn next_ended(world: &mut World, cadence: Cadence) -> Option<Ended> {
    let mut lines = world.resource_mut::<TimerLines>();
    lines.ended.next(cadence)
}

/// Cancels the timers of a clock that is removed or despawned.
pub(crate) fn on_remove_clock(removed: On<Remove<Clock>>, mut world: DeferredWorld) {
    let clock = removed.entity;
    let is_despawned = removed.trigger().new_archetype.is_none();
    let key = world.get_resource::<ClockTable>();
    let key = key.and_then(|table| table.key_of(clock));
    let lines = world.get_resource::<TimerLines>();
    let line = lines.and_then(|lines| lines.get(key?));
    let timers = line.into_iter().flat_map(|line| line.queue.iter());
    let timers: Vec<_> = timers
        .map(|(.., timer)| (timer.entity, timer.owner, timer.kind()))
        .collect();
    for (timer, owner, kind) in timers {
        // If the clock is also the owner, `OwnerGone` is the more precise reason.
        let reason = match is_despawned && owner == clock {
            true => CancelReason::OwnerGone,
            false => CancelReason::ClockGone,
        };
        match kind {
            Kind::Timer => cancel(&mut world, timer, reason),
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
        Kind::Timer => cancel(&mut world.into(), entity, CancelReason::ClockGone),
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

fn is_nowhere<C: Arms>(world: &World, entity: Entity) -> bool {
    let component = world.get::<C>(entity);
    component.is_some_and(|component| matches!(component.seat().place(), Place::Nowhere))
}

fn retire_timer(world: &mut World, entity: Entity) {
    let Some(timer) = world.get::<Timer>(entity) else {
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
        let when_done = WhenDone::DespawnUnlessOwned;
        lines.ended.push_for_any_run(Ended { entity, when_done });
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
