//! Halting armed timers, and keeping track of their owners.

use alloc::vec::Vec;

use bevy_ecs::{entity_disabling::Disabled, prelude::*, world::DeferredWorld};

use super::{
    Arms, CancelReason, DespawnAfter, Timer, TimerLines,
    arm::cancel,
    end::retire_later,
    key_hooks::{free_key, take_key},
    lines::change_armed,
    place::Place,
    timer_seat::TimerSeat,
};
use crate::{
    clock::ClockTable,
    owner::{Owned, OwnedBy, owner_of},
    pause::{Paused, PausedBy, Pauses, is_paused},
    transit::{InTransit, is_in_transit},
};

/// Halts the timers of an entity when it is paused, disabled or in transit.
pub(crate) fn on_pause(
    paused: On<Add<(Paused, PausedBy, Disabled, InTransit)>>,
    mut world: DeferredWorld,
) {
    update_all(&mut world, paused.entity);
}

/// Updates the timer of an entity that begins to pause its owner, or pauses another entity instead.
/// Unlike other timers, the end of a pause runs while its owner is paused.
pub(crate) fn on_pauses(pause: On<Insert<Pauses>>, mut world: DeferredWorld) {
    update(&mut world, pause.entity);
}

/// Resumes the timers of an entity when it is no longer paused, disabled or in transit, and
/// updates the timer of an entity that no longer pauses its owner.
pub(crate) fn on_resume(
    resumed: On<Remove<(Paused, PausedBy, Disabled, InTransit, Pauses)>>,
    mut world: DeferredWorld,
) {
    let entity = resumed.entity;
    // A component that is being removed is still there.
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| update_all(&mut world.into(), entity));
}

/// Makes a timer follow its new owner.
pub(crate) fn on_own(world: &mut DeferredWorld, entity: Entity) {
    if is_waiting(world, entity)
        && let Some(&OwnedBy(owner)) = world.get(entity)
    {
        change_armed(world, entity, |timer| timer.owner = owner);
        update(world, entity);
    }
    take_key(world, entity);
}

/// Cancels the timer of an entity whose owner does not exist, and despawns the entity.
pub(crate) fn on_orphan(world: &mut DeferredWorld, entity: Entity) {
    // The timer may arrive in the same bundle.
    world.commands().queue(move |world: &mut World| {
        cancel(&mut world.into(), entity, CancelReason::OwnerGone);
        world.flush();
        retire_later(world, entity);
    });
}

/// Makes the timer's entity its own owner again.
pub(crate) fn on_disown(world: &mut DeferredWorld, entity: Entity) {
    free_key(world, entity);
    if is_waiting(world, entity) {
        change_armed(world, entity, |timer| timer.owner = entity);
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| update(&mut world.into(), entity));
    }
}

/// Returns `true` if an entity has a timer or a lifetime that is pending or armed.
fn is_waiting(world: &World, entity: Entity) -> bool {
    let Ok(entity) = world.get_entity(entity) else {
        return false;
    };
    let timer = entity.get().map(<Timer as Arms>::seat);
    let lifetime = entity.get().map(<DespawnAfter as Arms>::seat);
    let seats = [timer, lifetime].into_iter().flatten();
    seats.map(TimerSeat::place).any(|place| match place {
        Place::Pending(_) | Place::Armed(..) => true,
        Place::Nowhere | Place::Reported(_) => false,
    })
}

fn update_all(world: &mut DeferredWorld, entity: Entity) {
    update(world, entity);
    let owned = world.get::<Owned>(entity);
    let owned: Vec<Entity> = owned.into_iter().flat_map(Owned::iter).collect();
    for owned in owned {
        update(world, owned);
    }
}

/// Halts or resumes the timers of an entity, depending on its entity and its owner.
fn update(world: &mut DeferredWorld, entity: Entity) {
    update_one::<Timer>(world, entity);
    update_one::<DespawnAfter>(world, entity);
}

fn update_one<C: Arms>(world: &mut DeferredWorld, entity: Entity) {
    let Ok(entity_ref) = world.get_entity(entity) else {
        return;
    };
    let Some(armed) = entity_ref.get::<C>() else {
        return;
    };
    let (place, delay) = (armed.seat().place(), armed.first_wait());
    let is_paused = is_paused(world, entity_ref, owner_of(entity_ref));
    let is_in_transit = is_in_transit(world, entity_ref, owner_of(entity_ref));
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        lines.set_in_transit(place, is_in_transit);
    }
    let read = |clock| {
        let table = world.get_resource::<ClockTable>()?;
        table.read_now(world, clock)
    };
    let lines = world.get_resource::<TimerLines>();
    let clock = match (place, lines) {
        (Place::Armed(clock, key), Some(lines)) => {
            let line = lines.get(clock);
            let changes = line.is_some_and(|line| line.is_paused(key) != is_paused);
            changes.then_some(clock)
        }
        (Place::Pending(index), Some(lines)) => {
            let pending = lines.pending.get(index);
            let start = pending.and_then(|pending| lines.pending.start(pending, delay));
            let start = start.filter(|start| start.is_paused != is_paused);
            start.map(|start| start.clock)
        }
        _ => None,
    };
    let Some(reading) = clock.and_then(read) else {
        return;
    };
    if let Some(armed) = world.get::<C>(entity) {
        armed.seat().unwrite();
    }
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        lines.set_paused(place, delay, is_paused, reading);
    }
}
