//! Clocks that come to an entity later than its timers.

use alloc::vec::Vec;
use core::iter;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{Kind, TimerQueues, place::NO_CLOCK, queued::Mark};
use crate::{
    clock::{Clock, ClockTable, Reading, SpeedModifiers, clock_of, settle_clocks},
    owner::{owned_by, owner_of},
    queue::NEVER,
};

/// Gives each entity with speed modifiers a clock, unless it has one. It shows the time of the clock that the
/// entity is on, which drives it. What is on the entities of the modifiers of a clock follows its new parent.
pub(crate) fn add_modified_clocks(world: &mut World) {
    let Some(mut table) = world.get_resource_mut::<ClockTable>() else {
        return;
    };
    if !table.is_any_modified() {
        return;
    }
    // One at a time: if an observer panics, the others wait for the next call.
    for _ in 0..table.modified().len() {
        let entity = world.resource_mut::<ClockTable>().modified().pop_front();
        if let Some(Ok(entity)) = entity.map(|entity| world.get_entity(entity))
            && entity.contains::<SpeedModifiers>()
            && !entity.contains::<Clock>()
        {
            let parent = clock_of(world, entity, owner_of(entity), None);
            let now = world.resource::<ClockTable>().now(parent);
            let clock = Clock::beneath(parent).with_now(now.unwrap_or_default());
            let entity = entity.id();
            world.entity_mut(entity).insert(clock);
        }
    }
    // The new clocks are among them.
    let mut table = world.resource_mut::<ClockTable>();
    for _ in 0..table.reparented().len() {
        let clock = world.resource_mut::<ClockTable>().reparented().pop_front();
        let modifiers = clock.and_then(|clock| world.get::<SpeedModifiers>(clock));
        let modifiers: Vec<Entity> = modifiers.into_iter().flatten().copied().collect();
        for modifier in modifiers {
            follow_clocks_later(&mut world.into(), modifier);
        }
    }
    world.flush();
}

/// Lets clocks, parents and modifiers find each other that have arrived in any order. Nothing is left to do for another
/// call.
pub(crate) fn settle_arrivals(world: &mut World) {
    add_modified_clocks(world);
    settle_clocks(world);
    add_modified_clocks(world);
}

/// Moves the timers on an entity, and those that it owns, to the clocks that they are on by default, once all commands
/// have run.
pub(crate) fn follow_clocks_later(world: &mut DeferredWorld, entity: Entity) {
    let owned = owned_by(world, entity).into_iter();
    for entity in iter::once(entity).chain(owned) {
        follow_clock_later(world, entity, true);
    }
}

/// Moves the timers on an entity to the clock that they are on by default, once all commands have run. Unless
/// `may_be_gone` says that a component that decides it is about to go, those that are there already are left out.
pub(super) fn follow_clock_later(world: &mut DeferredWorld, entity: Entity, may_be_gone: bool) {
    for kind in Kind::ALL {
        if may_follow(world, entity, kind, may_be_gone) == Some(true) {
            let mut commands = world.commands();
            commands.queue(move |world: &mut World| {
                follow_clock(&mut world.into(), entity, kind);
            });
        }
    }
}

fn may_follow(world: &World, entity: Entity, kind: Kind, may_be_gone: bool) -> Option<bool> {
    let entity = world.get_entity(entity).ok()?;
    let timer = kind.on(entity)?;
    let (clock, _) = timer.seat.place()?;
    let is_there = || {
        let default = clock_of(world, entity, owner_of(entity), timer.clock());
        let table = world.get_resource::<ClockTable>();
        let found = table.and_then(|table| table.find(default).ok());
        found.is_some_and(|found| found.key == clock)
    };
    Some(may_be_gone || !is_there())
}

/// Moves a timer to the clock that it is on by now, if this is another one.
///
/// The timer keeps its remaining time. A new timer starts again. A timer that chose its clock stays, unless this clock
/// was missing so far.
pub(super) fn follow_clock(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let entity_ref = world.get_entity(entity).ok()?;
    let component = kind.on(entity_ref)?;
    let from = component.seat.place()?;
    let queues = world.get_resource::<TimerQueues>()?;
    let timer = queues.timer(from)?;
    let was_missing = from.0 == NO_CLOCK;
    if timer.is(Mark::Chosen) && !was_missing {
        return None;
    }
    let is_new = timer.is(Mark::New);
    let clock = clock_of(world, entity_ref, owner_of(entity_ref), component.clock());
    let table = world.get_resource::<ClockTable>()?;
    let found = table.read(clock).ok();
    let (to, there) = found.map_or((NO_CLOCK, Reading::default()), |(found, reading)| {
        (found.key, reading)
    });
    if to == from.0 {
        return None;
    }
    let here = table.reading(from.0).unwrap_or_default();
    let delay = component.delay;
    let mut numbers = queues.arming.numbers;
    let start = (is_new && to != NO_CLOCK).then(|| component.start(there, &mut numbers));
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.arming.numbers = numbers;
    let place = match start {
        Some((deadline, wait)) => {
            if let Some(timer) = queues.timer_mut(from) {
                timer.set_wait(wait, delay);
            }
            queues.move_new(from, to, deadline, there.now)
        }
        // Its delay has not started.
        None if is_new => queues.move_new(from, to, NEVER, 0),
        None => queues.carry(from, here, (to, there)),
    };
    kind.get(world, entity)?.seat.move_to(place);
    Some(())
}
