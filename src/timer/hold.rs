//! Pausing armed timers, and keeping track of their owners.

use bevy_ecs::{entity_disabling::Disabled, prelude::*, world::DeferredWorld};

use super::{CancelReason, Timer, TimerLines, arm::cancel, end::retire_later, lines::change_armed};
use crate::{
    clock::ClockTable,
    owner::{Owned, OwnedBy, owner_of},
    pause::{Paused, is_paused},
};

/// Pauses the timers of an entity when it is paused or disabled.
pub(crate) fn on_pause(paused: On<Add<(Paused, Disabled)>>, mut world: DeferredWorld) {
    update_all(&mut world, paused.entity);
}

/// Resumes the timers of an entity when it is no longer paused or disabled.
pub(crate) fn on_resume(resumed: On<Remove<(Paused, Disabled)>>, mut world: DeferredWorld) {
    let entity = resumed.entity;
    // A component that is being removed is still there.
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| update_all(&mut world.into(), entity));
}

/// Makes a timer follow its new owner. Without an owner, it is cancelled and its entity despawns.
pub(crate) fn on_own(owned: On<Insert<OwnedBy>>, mut world: DeferredWorld) {
    let entity = owned.entity;
    let Some(&OwnedBy(owner)) = world.get::<OwnedBy>(entity) else {
        return;
    };
    if !world.entities().contains_spawned(owner) {
        // Bevy is about to remove the `OwnedBy`.
        cancel(&mut world, entity, CancelReason::OwnerGone);
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| retire_later(world, entity));
        return;
    }
    change_armed(&mut world, entity, |timer| timer.owner = owner);
    update(&mut world, entity);
}

/// Makes the timer's entity its own owner again.
pub(crate) fn on_disown(disowned: On<Discard<OwnedBy>>, mut world: DeferredWorld) {
    let entity = disowned.entity;
    change_armed(&mut world, entity, |timer| timer.owner = entity);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| update(&mut world.into(), entity));
}

fn update_all(world: &mut DeferredWorld, entity: Entity) {
    update(world, entity);
    let mut nth = 0;
    while let Some(&owned) = world.get::<Owned>(entity).and_then(|owned| owned.get(nth)) {
        update(world, owned);
        nth += 1;
    }
}

/// Pauses or resumes the timer of an entity, depending on its entity and its owner.
fn update(world: &mut DeferredWorld, entity: Entity) {
    let Ok(entity) = world.get_entity(entity) else {
        return;
    };
    let Some((clock, key)) = entity.get::<Timer>().and_then(Timer::seat) else {
        return;
    };
    let is_paused = is_paused(world, entity, owner_of(entity));
    let line = world.get_resource::<TimerLines>();
    let Some(line) = line.and_then(|lines| lines.get(clock)) else {
        return;
    };
    if line.is_paused(key) == is_paused {
        return;
    }
    let table = world.get_resource::<ClockTable>();
    let Some(reading) = table.and_then(|table| table.read_now(world, clock)) else {
        return;
    };
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>()
        && let Some(line) = lines.get_mut(clock)
    {
        line.set_paused(key, is_paused, reading.now);
    }
}
