//! Clocks that come and go.

use alloc::vec::Vec;

use bevy_ecs::{
    component::Component,
    entity::Entity,
    error::BevyError,
    lifecycle::{Discard, Insert},
    observer::On,
    world::{DeferredWorld, World},
};

use super::{
    ArmedTimer, CancelReason, Timelines, Timer,
    hooks::{cancel_for, end},
    timeline::Source,
};
use crate::{
    clock::{Clock, ClockId, UnknownClock},
    queue::TimerKey,
};

pub(crate) fn on_insert_clock(inserted: On<Insert<Clock>>, mut world: DeferredWorld) {
    begin_clock(&mut world, inserted.entity);
}

pub(crate) fn on_discard_clock(discarded: On<Discard<Clock>>, mut world: DeferredWorld) {
    let is_despawned = discarded.trigger().new_archetype.is_none();
    end_clock(&mut world, discarded.entity, is_despawned);
}

/// Takes a clock in, if it is not yet known, and those that it runs on.
pub(crate) fn begin_clock(world: &mut DeferredWorld, entity: Entity) {
    begin_with_parents(world, entity, &mut Vec::new());
}

fn begin_with_parents(world: &mut DeferredWorld, entity: Entity, children: &mut Vec<Entity>) {
    let (Some(&clock), Some(timelines)) = (
        world.get::<Clock>(entity),
        world.get_resource::<Timelines>(),
    ) else {
        return;
    };
    if children.contains(&entity) || timelines.key_of(entity).is_some() {
        return;
    }
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>()
        && let Some(key) = timelines.restore_clock(entity)
    {
        timelines.begin_line(key, clock.read());
        return;
    }
    if let ClockId::Own(parent) = clock.parent() {
        children.push(entity);
        begin_with_parents(world, parent, children);
    }
    let Some(timelines) = world.get_resource::<Timelines>() else {
        return;
    };
    let (source, is_fixed, parent_now) = match timelines.find(clock.parent()) {
        Ok((key, line)) => {
            let parent = timelines.read_line_now(world, key);
            let parent_now = parent.map_or(0, |parent| parent.now);
            (Source::Clock(key), line.is_fixed, parent_now)
        }
        Err(error) => {
            warn(world, error);
            (Source::Nothing, false, 0)
        }
    };
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>() {
        let key = timelines.add_clock(entity, source, is_fixed);
        if let Some(line) = timelines.get_mut(key) {
            line.seen = parent_now;
            line.reading = clock.read();
            line.last_run = line.reading.now;
        }
    }
}

/// Cancels all timers of a clock.
fn end_clock(world: &mut DeferredWorld, clock: Entity, is_despawned: bool) {
    let timelines = world.get_resource::<Timelines>();
    let line = timelines.and_then(|timelines| timelines.get(timelines.key_of(clock)?));
    let Some(line) = line else {
        return;
    };
    // If it was their owner, too, that is the better reason.
    let reason = |timer: &ArmedTimer| match timer.owner {
        owner if is_despawned && owner == clock => CancelReason::OwnerGone,
        _ => CancelReason::ClockGone,
    };
    let timers = line.queue.iter();
    let timers: Vec<_> = timers
        .map(|(.., timer)| (timer.entity, reason(timer)))
        .collect();
    for &(timer, reason) in &timers {
        cancel_for(world, timer, reason);
    }
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>() {
        timelines.remove_clock(clock);
    }
    world.commands().queue(move |world: &mut World| {
        for (timer, _) in timers {
            retire(world, timer);
        }
    });
}

/// Takes an entity out of use whose timer is over, unless it has another.
pub(super) fn retire(world: &mut World, entity: Entity) {
    let timer = world.get::<Timer>(entity);
    if timer.is_none_or(|timer| timer.key() != TimerKey::NONE) {
        return;
    }
    if end(world, entity) {
        world.despawn(entity);
    } else if let Some(&IfClockGone(then)) = world.get(entity) {
        then(world, entity);
    }
}

/// What is to be done when the clock of the timer on this entity has gone, or was never there.
#[derive(Component, Clone, Copy)]
pub(crate) struct IfClockGone(pub(crate) fn(&mut World, Entity));

/// Takes an entity out of use before the next run.
pub(super) fn retire_later(world: &mut World, entity: Entity) {
    end(world, entity);
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>() {
        timelines.finish(entity, false);
    }
}

/// Tells Bevy's error handler, when the world is free.
pub(crate) fn warn(world: &mut DeferredWorld, error: UnknownClock) {
    let result = Err::<(), _>(BevyError::warning(error));
    world.commands().queue(move |_: &mut World| result);
}
