//! The entities that a restore spawns again or despawns.

use alloc::vec::Vec;

use bevy_ecs::{
    change_detection::Tick,
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::{
    TimerSnapshot,
    changed::holders,
    log::Log,
    names::{Names, find_in},
    states::{States, first_of, has_any, is_ours},
};
use crate::{
    clock::{Clock, ClockId, OnClock},
    message::MovedRequest,
    timer::{OpenRequest, Timer, TimerQueues},
};

/// Spawns the entities that have despawned since the snapshot, unless the map has them. Returns their new
/// names.
pub(super) fn respawn(
    world: &mut World,
    snapshot: &TimerSnapshot,
    (states, names): (&States, &mut Names),
    entities: &EntityHashMap<Entity>,
) -> Names {
    let changed = states.iter().map(|(entity, _)| entity);
    let changed = changed.filter(|&entity| first_of(states, names, entity).is_some_and(is_ours));
    let changed = changed.chain(snapshot.finished.iter().copied());
    let is_gone = |&entity: &Entity| !world.entities().contains_spawned(names.latest(entity));
    let mut gone: Vec<Entity> = changed.filter(is_gone).collect();
    gone.sort_unstable();
    let mut respawned = Names::default();
    for entity in gone {
        let last = names.latest(entity);
        if !world.entities().contains_spawned(last) {
            let name = find_named(world, entities, names, entity);
            let name = name.unwrap_or_else(|| world.spawn_empty().id());
            names.rename(last, name);
            respawned.rename(last, name);
        }
    }
    respawned
}

/// Returns the entities with such components that were spawned after the snapshot, also by
/// other restores.
pub(super) fn spawned_since(
    world: &World,
    snapshot: &TimerSnapshot,
    (states, names): (&States, &Names),
) -> Vec<Entity> {
    let kinds = &world.resource::<Log>().kinds;
    let now = world.read_change_tick();
    let is_new = |&entity: &Entity| is_newer(world, entity, snapshot.mark.tick, now);
    let changed = states.iter().map(|(entity, _)| names.latest(entity));
    let holders = changed.filter(|&entity| has_any(world, kinds, entity));
    let renamed = names.iter().map(|(_, latest)| latest);
    let new = holders.chain(renamed).chain(finished(world)).filter(is_new);
    let mut new: Vec<Entity> = new.collect();
    new.sort_unstable();
    new.dedup();
    let finished = snapshot.finished.iter();
    let mut existed: EntityHashSet = finished.map(|&entity| names.latest(entity)).collect();
    // The game has put them in the places of entities that have had nothing to restore.
    existed.extend(names.given().filter(|&given| !names.contains(given)));
    new.retain(|entity| !existed.contains(entity));
    // An entity that has not changed has the same components as then.
    new.retain(|&entity| {
        let then = first_of(states, names, entity);
        !then.map_or_else(|| has_any(world, kinds, entity), is_ours)
    });
    new
}

/// Leads all timers to the clocks that were spawned again by this restore. The timers on a clock end
/// with it, except for those that have moved to another clock.
pub(super) fn rename_clocks(world: &mut World, respawned: &Names, names: &Names) {
    let is_clock = |entity| world.get::<Clock>(entity).is_some();
    if !respawned.iter().any(|(_, latest)| is_clock(latest)) {
        return;
    }
    rename(world, names, Timer::clock, Timer::copy);
    rename(world, names, |&OnClock(clock)| Some(clock), Clone::clone);
    let copy = |OpenRequest(until): &OpenRequest| OpenRequest(until.copy());
    rename(world, names, |OpenRequest(until)| until.clock(), copy);
}

/// Leads those components to the clocks of other names that are on such a clock.
fn rename<C: Component>(
    world: &mut World,
    names: &Names,
    clock: impl Fn(&C) -> Option<ClockId>,
    copy: impl Fn(&C) -> C,
) {
    for entity in holders::<C>(world).collect::<Vec<_>>() {
        if let Some(component) = world.get::<C>(entity)
            && let Some(ClockId::Own(clock)) = clock(component)
            && names.latest(clock) != clock
        {
            let mut component = copy(component);
            C::map_entities(&mut component, &mut &*names);
            world.entity_mut(entity).insert(component);
        }
    }
}

/// Finds an entity that has despawned in a map. It may be there under any of its names.
fn find_named(
    world: &World,
    entities: &EntityHashMap<Entity>,
    names: &Names,
    entity: Entity,
) -> Option<Entity> {
    let mut names = names.up_to(names.latest(entity));
    names.find_map(|name| find_in(world, entities, name))
}

/// Returns the entities that the next run despawns, because their timers have finished.
pub(super) fn finished(world: &World) -> impl Iterator<Item = Entity> {
    let finished = world.resource::<TimerQueues>().finished();
    finished.filter(|&entity| world.entities().contains_spawned(entity))
}

/// Despawns new entities, to which nothing belongs by now. Children that existed at the snapshot lose their parents and
/// stay.
pub(super) fn despawn(
    world: &mut World,
    snapshot: &TimerSnapshot,
    names: &Names,
    new: Vec<Entity>,
) {
    let now = world.read_change_tick();
    let mut above = new.clone();
    while let Some(parent) = above.pop() {
        let children = world.get::<Children>(parent).into_iter();
        let children: Vec<Entity> = children.flat_map(RelationshipTarget::iter).collect();
        for child in children {
            if new.binary_search(&child).is_ok() {
                continue;
            }
            let is_old = !is_newer(world, child, snapshot.mark.tick, now);
            if !is_old && names.earlier(child).is_none() {
                above.push(child);
            } else if let Ok(mut child) = world.get_entity_mut(child) {
                child.remove::<ChildOf>();
            }
        }
    }
    for entity in new {
        world.try_despawn(entity).ok();
    }
    world.flush();
}

/// Returns `true` if an entity was spawned after a tick.
fn is_newer(world: &World, entity: Entity, tick: Tick, now: Tick) -> bool {
    let spawned = world.entities().entity_get_spawn_or_despawn_tick(entity);
    spawned.is_some_and(|spawned| spawned.is_newer_than(tick, now))
}

/// Lets replies find the requests that were spawned again: each keeps the name under which it was made.
pub(super) fn name_requests(world: &mut World, names: &Names) {
    for (_, latest) in names.iter() {
        if let Some(first) = names.up_to(latest).last()
            && let Ok(mut request) = world.get_entity_mut(latest)
            && request.contains::<OpenRequest>()
            && !request.contains::<MovedRequest>()
        {
            request.insert(MovedRequest::here(first));
        }
    }
}
