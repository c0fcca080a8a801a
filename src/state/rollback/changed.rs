//! The entities that have changed since a mark.

use alloc::vec::Vec;

use bevy_ecs::{entity::EntityHashSet, prelude::*, relationship::Relationship};

use super::{
    ChangeMark, check, check_world,
    log::{Changes, Log, end_journals},
    states::differing,
};
use crate::{
    clock::{ChangedClocks, Clock, OnClock, SpeedModifier, SpeedModifiers, clock_of},
    owner::{OwnedBy, owner_of},
    pause::Pauses,
    state::{
        component::{SavedComponent, holders_of},
        is_free,
        part::PartKind,
    },
    timer::{Cooldown, Timer, TimerQueues, settle_arrivals},
};

/// Returns the entities that have changed since a snapshot, in order.
#[track_caller]
pub(crate) fn changed_since(world: &mut World, since: &ChangeMark) -> Vec<Entity> {
    check(world, "ask for changes");
    check_world(world, since);
    world.flush();
    // A copy that follows does so, too.
    settle_arrivals(world);
    end_journals(world);
    let changes = world.resource::<Log>().changes_since(&since.token);
    let modified = holders::<SpeedModifiers>(world).filter(|&it| is_modified_elsewhere(world, it));
    let clocks = ChangedClocks::since(&since.clocks, world, modified);
    let queues = world.resource::<TimerQueues>();
    let mut changed = Vec::new();
    queues.add_changed(world, &since.queues, &changes.timers, &mut changed);
    let kinds = &world.resource::<Log>().kinds;
    changed.extend(differing(&changes.states, world, kinds, |_| true));
    changed.extend(
        changes
            .names
            .iter()
            .flat_map(|(name, latest)| [name, latest]),
    );
    changed.extend(changes.rebound.iter().map(|(entity, ())| entity));
    let now = world.read_change_tick();
    for &SavedComponent { id, .. } in kinds.components.iter() {
        // Systems write to it unseen.
        changed.extend(holders_of(world, id).filter(|&entity| {
            let ticks = world.entity(entity).get_change_ticks_by_id(id);
            ticks.is_some_and(|ticks| ticks.is_changed(since.tick, now))
        }));
    }
    // An effect is saved with its owner or its target, and may have switched between the two.
    let targets = changed.iter().flat_map(|&entity| {
        let paused = world.get::<Pauses>(entity).map(Relationship::get);
        let modified = world.get::<SpeedModifier>(entity).map(Relationship::get);
        [paused, modified]
    });
    let targets: Vec<Entity> = targets.flatten().collect();
    changed.extend(targets);
    changed.extend(clocks.entities());
    queues.add_running_on(&clocks, &mut changed);
    add_followers(world, &clocks, &changes, &mut changed);
    changed.sort_unstable();
    changed.dedup();
    changed
}

/// Returns `true` if a speed modifier of a clock belongs to somebody else. It is not copied with the clock, so a copy
/// does not know how fast the clock has run since.
fn is_modified_elsewhere(world: &World, clock: Entity) -> bool {
    let modifiers = world.get::<SpeedModifiers>(clock).into_iter();
    let mut modifiers = modifiers.flat_map(SpeedModifiers::iter);
    modifiers.any(|modifier| match world.get::<OwnedBy>(modifier) {
        Some(&OwnedBy(owner)) => owner != clock,
        None => {
            let pauses = world.get::<Pauses>(modifier);
            pauses.is_some_and(|&Pauses(target)| target != clock) || !is_free(world, modifier)
        }
    })
}

/// Adds the entities that are not in a queue, but whose data depends on a clock that has changed, or on
/// which of the clocks their owner has chosen.
fn add_followers(
    world: &World,
    clocks: &ChangedClocks,
    changes: &Changes,
    changed: &mut Vec<Entity>,
) {
    let kinds = &world.resource::<Log>().kinds;
    let mut choosers: EntityHashSet =
        differing(&changes.states, world, kinds, PartKind::chooses_clock).collect();
    // They choose the parent of the clock that they modify.
    let modifiers = clocks
        .entities()
        .filter_map(|clock| world.get::<SpeedModifiers>(clock));
    choosers.extend(modifiers.flatten().copied());
    if clocks.is_empty() && choosers.is_empty() {
        return;
    }
    let on_changed = holders::<OnClock>(world).filter(|&entity| {
        let on = world.get::<OnClock>(entity);
        on.is_some_and(|on| clocks.contains(on.0))
    });
    changed.extend(on_changed);
    if clocks
        .entities()
        .any(|clock| world.get::<Clock>(clock).is_none())
    {
        // A timer that was moved to another clock still names the first one.
        let names_changed = |entity| {
            let named = world.get(entity).and_then(Timer::clock);
            named.is_some_and(|clock| clocks.contains(clock))
        };
        let choosing = world.resource::<TimerQueues>().with_chosen_clocks();
        changed.extend(choosing.filter(|&entity| names_changed(entity)));
    }
    let pending = world.resource::<TimerQueues>().new_timers();
    let pending = pending.map(|(entity, _)| entity);
    for entity in holders::<Cooldown>(world).chain(pending) {
        if let Ok(follower) = world.get_entity(entity) {
            let owner = owner_of(follower);
            let clock = clock_of(world, follower, owner, None);
            if clocks.contains(clock) || [entity, owner].iter().any(|it| choosers.contains(it)) {
                changed.push(entity);
            }
        }
    }
}

/// Returns the entities with a component.
pub(super) fn holders<C: Component>(world: &World) -> impl Iterator<Item = Entity> {
    let id = world.component_id::<C>().into_iter();
    id.flat_map(|id| holders_of(world, id))
}
