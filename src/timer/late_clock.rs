//! Clocks that come to an entity later than its timers.

use alloc::vec::Vec;
use core::iter;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    Kind, Place, TimerQueues,
    arm::{put_on_loaded_clock, settle_now, start_again},
    place::NO_CLOCK,
    queued::Mark,
};
use crate::{
    clock::{Clock, ClockId, ClockTable, OnClock, SpeedModifiers, clock_besides, clock_of},
    owner::{owned_by, owner_of},
};

/// Gives each entity with speed modifiers a clock, unless it has one. It shows the time of the clock that the
/// entity is on, which drives it.
pub(crate) fn add_modified_clocks(world: &mut World) {
    let table = world.get_resource_mut::<ClockTable>();
    let modified = table.map(|mut table| table.take_modified());
    for entity in modified.into_iter().flatten() {
        if let Ok(entity) = world.get_entity(entity)
            && entity.contains::<SpeedModifiers>()
            && !entity.contains::<Clock>()
        {
            let parent = clock_of(world, entity, owner_of(entity), None);
            let now = world.resource::<ClockTable>().now(parent);
            let clock = Clock::of(parent).with_now(now.unwrap_or_default());
            let entity = entity.id();
            world.entity_mut(entity).insert(clock);
        }
    }
}

/// Moves the timers that are on the clock of an entity by default to a new clock there. A loaded clock takes only
/// those that wait for it: the others were saved on their clocks.
pub(crate) fn move_timers_to_clock(world: &mut DeferredWorld, clock: Entity) {
    let is_loaded = world.get(clock).is_some_and(Clock::is_loaded);
    let owned = owned_by(world, clock).into_iter();
    for (entity, kind, _) in placed(world, iter::once(clock).chain(owned)) {
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| {
            match is_loaded {
                true => put_on_loaded_clock(world, entity, kind),
                false => follow_clock(world, entity, kind, clock),
            };
        });
    }
}

/// Returns the timers on entities that are in a queue.
fn placed(world: &World, entities: impl Iterator<Item = Entity>) -> Vec<(Entity, Kind, Place)> {
    let timers = entities.flat_map(|entity| Kind::ALL.map(|kind| (entity, kind)));
    let placed = timers.filter_map(|(entity, kind)| {
        let place = kind.get(world, entity)?.seat.place()?;
        Some((entity, kind, place))
    });
    placed.collect()
}

/// Puts the loaded timers of an owner that wait for its clock on it: a scene inserts the list of what the owner owns
/// after the clock.
pub(super) fn follow_loaded_clock(world: &mut DeferredWorld, owner: Entity) {
    if world.get::<Clock>(owner).is_none() {
        return;
    }
    let owned = owned_by(world, owner).into_iter();
    for (entity, kind, place) in placed(world, owned) {
        if place.0 == NO_CLOCK {
            let mut commands = world.commands();
            commands.queue(move |world: &mut World| _ = put_on_loaded_clock(world, entity, kind));
        }
    }
}

/// Starts the new timers again that an [`OnClock`] puts on another clock.
pub(crate) fn start_on_clock(inserted: On<Insert<OnClock>>, mut world: DeferredWorld) {
    let entity = inserted.entity;
    for owned in owned_by(&world, entity) {
        start_again_if_elsewhere(&mut world, owned);
    }
    start_again_if_elsewhere(&mut world, entity);
}

/// Starts the new timers on an entity again, if they are on another clock by now.
pub(super) fn start_again_if_elsewhere(world: &mut DeferredWorld, entity: Entity) {
    for kind in Kind::ALL {
        let is_elsewhere = || {
            let it = world.get_entity(entity).ok()?;
            let timer = kind.on(it)?;
            let place = timer.seat.place()?;
            let queues = world.get_resource::<TimerQueues>()?;
            queues
                .timer(place)
                .filter(|timer| timer.is(Mark::Unsettled))?;
            let clock = clock_of(world, it, owner_of(it), timer.chosen_clock());
            let found = world.get_resource::<ClockTable>()?.find(clock).ok()?;
            Some(found.key != place.0)
        };
        if is_elsewhere() == Some(true) {
            let mut commands = world.commands();
            commands.queue(move |world: &mut World| _ = start_again(world, entity, kind));
        }
    }
}

/// Moves a timer to a new clock, where it keeps its remaining time, unless it chose another clock. A new timer starts
/// again. A loaded one was settled when it was saved.
fn follow_clock(world: &mut World, entity: Entity, kind: Kind, clock: Entity) -> Option<()> {
    let component = kind.get(world, entity)?;
    let (mut place, is_loaded) = (component.seat.place()?, component.loaded().is_some());
    if is_loaded {
        place = settle_now(world, place)?.ok()?;
    }
    let queues = world.get_resource::<TimerQueues>()?;
    if queues.timer(place)?.is(Mark::Unsettled) {
        return start_again(world, entity, kind);
    }
    let entity_ref = world.get_entity(entity).ok()?;
    let component = kind.on(entity_ref)?;
    let (chosen, owner) = (component.chosen_clock(), owner_of(entity_ref));
    if clock_of(world, entity_ref, owner, chosen) != ClockId::Own(clock) {
        return None;
    }
    let table = world.get_resource::<ClockTable>()?;
    let before = clock_besides(world, entity_ref, owner, chosen, Some(clock));
    if table.find(before).ok()?.key != place.0 {
        return None;
    }
    let here = table.reading(place.0)?;
    let (found, there) = table.read(clock.into()).ok()?;
    component.seat.unwrite();
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    let place = queues.carry(place, here, (found.key, there))?;
    kind.get(world, entity)?.seat.move_to(Some(place));
    Some(())
}
