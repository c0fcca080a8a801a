//! Loading timers into a world.

use alloc::vec::Vec;
use core::time::Duration;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet, MapEntities},
    prelude::*,
};

use super::{Content, LoadError, SavedEntity, SavedTimers, check::check_saved};
use crate::{
    clock::{Clock, ClockId, ClockTable, TimePassed, clock_of, settle_clocks, update_clock_later},
    message::{MessageComponent, deliver_soon},
    owner::owner_of,
    report::report,
    state::{
        component::{SavedComponents, insert_again},
        letter::{letters, rename_all},
        part::{MapEach, Part, PartKind, PartKinds},
    },
    timer::{Cooldown, Kind, TimerQueues, cancel_silently, put_ends, put_state},
};

/// Loads timers. Saved entities that are not in the map are spawned and added to it.
///
/// If the data is invalid, the world and the map stay as they were.
pub(crate) fn load_timers(
    world: &mut World,
    saved: &SavedTimers,
    entities: &mut EntityHashMap<Entity>,
) -> Result<(), LoadError> {
    world.flush();
    settle_clocks(world);
    check_saved(world, saved, entities)?;
    let mut mail = letters(world, saved.mail())?;
    begin_loading(world, saved, entities);
    load_checked(world, saved, entities, &TimePassed::default());
    rename_all(&mut mail, entities);
    deliver_soon(world, mail);
    Ok(())
}

/// Begins to load checked timers. A clock starts with its speed, and so do the clocks below it, so what changes their
/// speed comes first.
pub(crate) fn begin_loading(
    world: &mut World,
    SavedTimers(saved): &SavedTimers,
    entities: &mut EntityHashMap<Entity>,
) {
    let Content {
        world: state,
        entities: saved,
        ..
    } = &**saved;
    for saved in saved {
        let target = entities.entry(saved.entity);
        target.or_insert_with(|| world.spawn_empty().id());
    }
    if let Some(state) = state {
        state.put(world);
    }
    for saved in saved {
        load_parts(world, saved, entities, is_brake);
    }
}

/// Returns `true` for what changes the speed of a clock.
fn is_brake(part: &Part) -> bool {
    matches!(part, Part::SpeedModifier(_) | Part::Disabled)
}

/// Loads the rest of checked timers without their mail, also if an observer has changed the world since. The built-in
/// clocks have advanced by `passed` since the save, as far as cooldowns are concerned.
pub(crate) fn load_checked(
    world: &mut World,
    SavedTimers(saved): &SavedTimers,
    entities: &mut EntityHashMap<Entity>,
    passed: &TimePassed,
) {
    let Content {
        entities: saved,
        ends,
        ..
    } = &**saved;
    // The timers must find their clocks.
    let is_clock = |part: &Part| matches!(part, Part::Clock(_));
    let is_place = |part: &Part| {
        matches!(
            part,
            Part::OnClock(_) | Part::OwnedBy(_) | Part::Paused | Part::Pauses(_)
        )
    };
    put_in_order(world, saved, entities);
    let numbers = world.get_resource().map(TimerQueues::numbers);
    for clock in clocks_in_order(world, saved, entities) {
        load_parts(world, clock, entities, is_clock);
    }
    for saved in saved {
        load_parts(world, saved, entities, is_place);
    }
    // What these bring along finds its clock, its owner and its pauses.
    let kinds = PartKinds::of(world);
    let begin = world.increment_change_tick();
    for saved in in_turn(saved, |(update, _)| update) {
        load_components(world, &kinds, saved, entities);
    }
    for SavedEntity { entity, .. } in in_turn(saved, |(_, message)| message) {
        insert_again::<MessageComponent>(world, entities[entity], begin);
    }
    for saved in saved {
        load_parts(world, saved, entities, |part| {
            !is_brake(part) && !is_clock(part) && !is_place(part)
        });
    }
    world.flush();
    put_in_order(world, saved, entities);
    put_states(world, saved, entities);
    // Insertion has drawn others.
    if let (Some(numbers), Some(mut queues)) = (numbers, world.get_resource_mut::<TimerQueues>()) {
        queues.set_numbers(numbers);
    }
    let ends = ends.iter().copied();
    let ends = ends.map(|mut end| {
        end.entity = entities[&end.entity];
        end
    });
    put_ends(world, ends);
    carry_cooldowns(world, saved, entities, passed);
}

/// Returns the entities in the order of their places among the callbacks or the followers. Those without one come first.
fn in_turn(
    saved: &[SavedEntity],
    turn: impl Fn((Option<u64>, Option<u64>)) -> Option<u64>,
) -> Vec<&SavedEntity> {
    let mut saved: Vec<&SavedEntity> = saved.iter().collect();
    saved.sort_by_cached_key(|saved| {
        let mut parts = saved.parts.iter();
        parts.find_map(|part| match part {
            Part::Turns { update, message } => turn((*update, *message)),
            _ => None,
        })
    });
    saved
}

/// Gives the timers that were inserted the states that they had, in the order in which they were armed.
fn put_states(world: &mut World, saved: &[SavedEntity], entities: &mut EntityHashMap<Entity>) {
    let mut states = Vec::new();
    for SavedEntity { entity, parts } in saved {
        let timers = parts.iter().filter_map(Part::timer);
        let timers = timers.filter_map(|(kind, timer)| Some((kind, *timer.state.clone()?)));
        states.extend(timers.map(|(kind, state)| (state.order(), entities[entity], kind, state)));
    }
    states.sort_by_key(|&(order, ..)| order);
    for (_, entity, kind, mut state) in states {
        state.map_entities(entities);
        put_state(world, entity, kind, &state);
    }
}

/// Brings the entities that refer to another one into the order of the saved world. The product of speed
/// modifiers depends on it in the last bit.
fn put_in_order(world: &mut World, saved: &[SavedEntity], entities: &mut EntityHashMap<Entity>) {
    for SavedEntity { entity, parts } in saved {
        let target = entities[entity];
        for part in parts.iter().filter(|part| part.list().is_some()) {
            let mut part = part.clone();
            part.map_entities(entities);
            part.put_in_order(world, target);
            if let Part::SpeedModifiers(_) = part {
                update_clock_later(&mut world.into(), target);
            }
        }
    }
    world.flush();
}

/// Moves the cooldowns to the clocks of their entities in this world. A clock that was saved with a
/// cooldown shows the same time as before.
fn carry_cooldowns(
    world: &mut World,
    saved: &[SavedEntity],
    entities: &EntityHashMap<Entity>,
    passed: &TimePassed,
) {
    let clocks = saved.iter().filter(|saved| saved.own_clock().is_some());
    let clocks: EntityHashSet = clocks.map(|saved| entities[&saved.entity]).collect();
    for saved in saved {
        let then = saved.parts.iter().find_map(|part| match part {
            Part::CooldownNow(then) => Some(*then),
            _ => None,
        });
        let Some(there) = then else {
            continue;
        };
        let Ok(entity) = world.get_entity(entities[&saved.entity]) else {
            continue;
        };
        let clock = clock_of(world, entity, owner_of(entity), None);
        let table = world.resource::<ClockTable>();
        let here = table.now(clock).unwrap_or_default();
        let passed = match clock {
            ClockId::Own(clock) if clocks.contains(&clock) => 0,
            clock => table.share(clock, passed),
        };
        let entity = entity.id();
        if (here, passed) != (there, 0)
            && let Some(mut cooldown) = world.get_mut::<Cooldown>(entity)
        {
            cooldown.carry(there, here, Duration::from_nanos(passed));
        }
    }
}

/// Inserts the components of the game into a saved entity. The components of this crate that they bring along go again,
/// because what was saved says which are there.
fn load_components(
    world: &mut World,
    kinds: &PartKinds,
    SavedEntity { entity, parts }: &SavedEntity,
    entities: &mut EntityHashMap<Entity>,
) {
    let data = parts.iter().filter_map(|part| match part {
        Part::Component(data) => Some(data),
        _ => None,
    });
    let data: Vec<_> = data.collect();
    if data.is_empty() {
        return;
    }
    let entity = entities[entity];
    let of_crate = |world: &World| {
        let entity = world.get_entity(entity).into_iter();
        let kinds = entity.flat_map(|entity| kinds.of_crate(entity));
        kinds.collect::<Vec<PartKind>>()
    };
    let before = of_crate(world);
    // What leads to an entity that is not there leads to none.
    let known = |entity| entities.get(&entity).copied();
    let mut known = MapEach(|entity| known(entity).unwrap_or(Entity::PLACEHOLDER));
    for data in data {
        if let Some(component) = kinds.components.find(&data.name)
            && let Ok(mut target) = world.get_entity_mut(entity)
            && let Err(error) = component.load(data, &mut known, Some(&mut target))
        {
            // It could be read in the check.
            report::<SavedComponents>(world, BevyError::error(error));
        }
    }
    for kind in of_crate(world) {
        if before.contains(&kind) {
            continue;
        }
        if kind == PartKind::Timer {
            // Its hook would report a cancellation.
            cancel_silently(&mut world.into(), entity, Kind::Timer);
        }
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            kind.remove(&mut entity);
        }
    }
}

/// Inserts some components of this crate into a saved entity.
fn load_parts(
    world: &mut World,
    SavedEntity { entity, parts }: &SavedEntity,
    entities: &mut EntityHashMap<Entity>,
    is_wanted: impl Fn(&Part) -> bool,
) {
    for part in parts.iter().filter(|part| is_wanted(part)) {
        let mut part = part.clone();
        part.map_entities(entities);
        // An observer of an earlier part may have despawned the entity.
        if let Ok(mut target) = world.get_entity_mut(entities[entity]) {
            part.insert(&mut target);
        }
    }
}

/// Returns the saved clocks: the new ones in the order in which they run, and then those that are there already, each
/// after its parent. One that is there therefore finds its new parent, and that one no longer runs on a clock below it.
fn clocks_in_order<'a>(
    world: &World,
    saved: &'a [SavedEntity],
    entities: &EntityHashMap<Entity>,
) -> Vec<&'a SavedEntity> {
    let clocks = saved.iter();
    let clocks = clocks.filter_map(|it| Some((it.entity, (it, it.own_clock()?))));
    let mut waiting: EntityHashMap<_> = clocks.clone().collect();
    let mut in_order = Vec::new();
    for (clock, _) in clocks {
        let first = in_order.len();
        let mut next = waiting.remove(&clock);
        while let Some((saved, state)) = next {
            let is_there = world.get::<Clock>(entities[&saved.entity]).is_some();
            in_order.push((is_there, if is_there { 0 } else { state.order }, saved));
            next = match state.parent() {
                Some(ClockId::Own(parent)) => waiting.remove(&parent),
                _ => None,
            };
        }
        in_order[first..].reverse();
    }
    in_order.sort_by_key(|&(is_there, order, _)| (is_there, order));
    in_order.into_iter().map(|(.., saved)| saved).collect()
}
