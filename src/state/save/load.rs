//! Loading timers into a world.

use alloc::{string::ToString, vec::Vec};
use core::time::Duration;

use bevy_ecs::{
    entity::{EntityHashMap, MapEntities},
    prelude::*,
};
use thiserror::Error;

use super::{LoadError, SavedEntity, SavedTimers, check::check_saved};
use crate::{
    clock::{
        Clock, ClockId, ClockState, ClockTable, TimePassed, clock_of, settle_clocks,
        update_clock_later,
    },
    message::{MessageComponent, deliver_soon},
    owner::owner_of,
    report::report,
    state::{
        component::{SavedComponent, SavedComponents, insert_again},
        letter::{letters, rename_all},
        moving::MovedEntity,
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
    saved.spawn(world, entities);
    load_checked(world, &[(saved, TimePassed::default())], entities);
    rename_all(&mut mail, entities);
    deliver_soon(world, mail);
    Ok(())
}

/// Returns `true` for what changes the speed of a clock.
fn is_brake(part: &Part) -> bool {
    matches!(part, Part::SpeedModifier(_) | Part::Disabled)
}

impl SavedTimers {
    /// Spawns the saved entities that are not in the map.
    pub(in crate::state) fn spawn(&self, world: &mut World, entities: &mut EntityHashMap<Entity>) {
        for saved in self.entities() {
            let target = entities.entry(saved);
            target.or_insert_with(|| world.spawn_empty().id());
        }
    }
}

/// Loads checked timers without their mail into spawned entities, each after this time on the way.
///
/// What comes together is loaded together, because the entities may need each other in a circle: first all clocks, then
/// what leads to them, and so on.
pub(crate) fn load_checked(
    world: &mut World,
    saved: &[(&SavedTimers, TimePassed)],
    entities: &mut EntityHashMap<Entity>,
) {
    let contents = || saved.iter().map(|(SavedTimers(saved), _)| &**saved);
    let all: Vec<&SavedEntity> = contents().flat_map(|it| &it.entities).collect();
    contents()
        .filter_map(|content| content.world.as_ref())
        .for_each(|state| state.put(world));
    // A clock starts with its speed, and so do the clocks below it.
    load_parts(world, &all, entities, is_brake);
    put_in_order(world, &all, entities);
    let numbers = world.get_resource().map(TimerQueues::numbers);
    // The timers must find their clocks.
    let is_clock = |part: &Part| matches!(part, Part::Clock(_));
    let is_place = |part: &Part| {
        matches!(
            part,
            Part::OnClock(_) | Part::OwnedBy(_) | Part::Paused | Part::Pauses(_)
        )
    };
    let clocks: Vec<_> = contents().map(|it| parents_first(&it.entities)).collect();
    load_parts(
        world,
        &in_order(world, &clocks, entities),
        entities,
        is_clock,
    );
    load_parts(world, &all, entities, is_place);
    // What these bring along finds its clock, its owner and its pauses.
    let kinds = PartKinds::of(world);
    let begin = world.increment_change_tick();
    for content in contents() {
        for saved in in_turn(&content.entities, |(update, _)| update) {
            load_components(world, &kinds, saved, entities);
        }
    }
    for content in contents() {
        for SavedEntity { entity, .. } in in_turn(&content.entities, |(_, message)| message) {
            insert_again::<MessageComponent>(world, entities[entity], begin);
        }
    }
    load_parts(world, &all, entities, |part| {
        !is_brake(part) && !is_clock(part) && !is_place(part)
    });
    world.flush();
    put_in_order(world, &all, entities);
    let ways = clocks.iter().zip(saved);
    let ways = ways.map(|(clocks, &(_, passed))| Way::of(world, clocks, entities, passed));
    let ways: Vec<Way> = ways.collect();
    let on_way: Vec<_> = contents().map(|it| &*it.entities).zip(&ways).collect();
    put_states(world, &on_way, entities);
    // Insertion has drawn others.
    if let (Some(numbers), Some(mut queues)) = (numbers, world.get_resource_mut::<TimerQueues>()) {
        queues.set_numbers(numbers);
    }
    let ends = contents().flat_map(|content| content.ends.iter().copied());
    let ends = ends.map(|(ends_in, mut ended)| {
        ended.entity = entities[&ended.entity];
        (ends_in, ended)
    });
    put_ends(world, ends);
    carry_cooldowns(world, &on_way, entities);
}

/// The time on the way of what was saved together.
struct Way {
    passed: TimePassed,
    /// How far the clocks that come along have advanced, by their names in this world.
    clocks: EntityHashMap<u64>,
}

impl Way {
    /// Lets time pass on the clocks that come along, each after its parent. None passes on a manual clock or one that
    /// a condition held.
    fn of(
        world: &mut World,
        clocks: &[(&SavedEntity, &ClockState)],
        entities: &EntityHashMap<Entity>,
        passed: TimePassed,
    ) -> Self {
        let mut way = Self {
            passed,
            clocks: EntityHashMap::default(),
        };
        let Some(mut table) = world.get_resource_mut::<ClockTable>() else {
            return way;
        };
        if passed == TimePassed::default() {
            return way;
        }
        for (saved, state) in clocks {
            let parent = state.parent().filter(|_| !state.is_held);
            let above = parent.map(|parent| match parent {
                ClockId::Own(parent) => entities.get(&parent).copied().unwrap_or(parent).into(),
                built_in => built_in,
            });
            let above = above.map_or(0, |above| way.on(&table, above));
            let clock = entities[&saved.entity];
            let advanced = table.pass(clock, above);
            way.clocks.insert(clock, advanced.unwrap_or(0));
        }
        way
    }

    /// Returns how far a clock has advanced on the way.
    fn on(&self, table: &ClockTable, clock: ClockId) -> u64 {
        if self.passed == TimePassed::default() {
            return 0;
        }
        let along = match clock {
            ClockId::Own(clock) => self.clocks.get(&clock).copied(),
            _ => None,
        };
        along.unwrap_or_else(|| table.share(clock, &self.passed))
    }
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
fn put_states(
    world: &mut World,
    on_way: &[(&[SavedEntity], &Way)],
    entities: &mut EntityHashMap<Entity>,
) {
    let Some(table) = world.get_resource::<ClockTable>() else {
        return;
    };
    let mut states = Vec::new();
    for (nth, (saved, way)) in on_way.iter().enumerate() {
        for SavedEntity { entity, parts } in *saved {
            let timers = parts.iter().filter_map(Part::timer);
            for (kind, timer) in timers {
                let Some(mut state) = timer.state.as_deref().copied() else {
                    continue;
                };
                state.map_entities(entities);
                state.pass(|clock| way.on(table, clock));
                states.push(((nth, state.order()), entities[entity], kind, state));
            }
        }
    }
    states.sort_by_key(|&(order, ..)| order);
    for (_, entity, kind, state) in states {
        put_state(world, entity, kind, &state);
    }
}

/// Brings the entities that refer to another one into the order of the saved world. The product of speed
/// modifiers depends on it in the last bit.
fn put_in_order(world: &mut World, saved: &[&SavedEntity], entities: &EntityHashMap<Entity>) {
    // Entities that were not saved with it have no name in this world.
    let name = |entity| entities.get(&entity).copied();
    let mut names = MapEach(|entity| name(entity).unwrap_or(Entity::PLACEHOLDER));
    for SavedEntity { entity, parts } in saved {
        let target = entities[entity];
        for part in parts.iter().filter(|part| part.list().is_some()) {
            let mut part = part.clone();
            part.map_entities(&mut names);
            part.put_in_order(world, target);
            if let Part::SpeedModifiers(_) = part {
                update_clock_later(&mut world.into(), target);
            }
        }
    }
    world.flush();
}

/// Moves the cooldowns to the clocks of their entities in this world.
fn carry_cooldowns(
    world: &mut World,
    on_way: &[(&[SavedEntity], &Way)],
    entities: &EntityHashMap<Entity>,
) {
    for &(saved, way) in on_way {
        for SavedEntity { entity, parts } in saved {
            let then = parts.iter().find_map(|part| match part {
                Part::CooldownNow { now, is_held } => Some((*now, *is_held)),
                _ => None,
            });
            let Some((there, is_held)) = then else {
                continue;
            };
            let Ok(entity) = world.get_entity(entities[entity]) else {
                continue;
            };
            let clock = clock_of(world, entity, owner_of(entity), None);
            let table = world.resource::<ClockTable>();
            let here = table.now(clock).unwrap_or_default();
            let passed = if is_held { 0 } else { way.on(table, clock) };
            let entity = entity.id();
            if (here, passed) != (there, 0)
                && let Some(mut cooldown) = world.get_mut::<Cooldown>(entity)
            {
                cooldown.carry(there, here, Duration::from_nanos(passed));
            }
        }
    }
}

/// Inserts the components of the game into a saved entity. Others that they bring along go again, because what was saved
/// says which are there.
fn load_components(
    world: &mut World,
    kinds: &PartKinds,
    SavedEntity {
        entity: saved,
        parts,
    }: &SavedEntity,
    entities: &EntityHashMap<Entity>,
) {
    let data = parts.iter().filter_map(|part| match part {
        Part::Component(data) => Some((kinds.components.find(&data.name)?, &**data)),
        _ => None,
    });
    let data: Vec<_> = data.collect();
    if data.is_empty() {
        return;
    }
    let entity = entities[saved];
    let present = |world: &World| {
        let entity = world.get_entity(entity).into_iter();
        entity
            .flat_map(|entity| kinds.saved(entity))
            .collect::<Vec<PartKind>>()
    };
    let before = present(world);
    // Returns an entity to which the component leads, and that is not there.
    let load = |world: &mut World, component: &SavedComponent, data| {
        let mut missing = None;
        let mut names = MapEach(|to| {
            let name = entities.get(&to).copied();
            if to != Entity::PLACEHOLDER && name.is_none() {
                missing.get_or_insert(to);
            }
            name.unwrap_or(Entity::PLACEHOLDER)
        });
        if let Ok(mut target) = world.get_entity_mut(entity)
            && let Err(error) = component.load(data, &mut names, Some(&mut target))
        {
            // It could be read in the check.
            report::<SavedComponents>(world, BevyError::error(error));
        }
        missing
    };
    let mut loaded = Vec::new();
    for &(component, data) in &data {
        let missing = load(world, component, data);
        loaded.push(world.increment_change_tick());
        let missing = missing.map(|to| LoadError::UnknownEntity {
            entity: *saved,
            component: component.name.to_string(),
            to,
        });
        report_missing(world, missing);
    }
    // An observer of one may have written to another.
    for (&(component, data), since) in data.iter().zip(loaded) {
        let now = world.change_tick();
        let is_changed = world.get_entity(entity).is_ok_and(|entity| {
            let ticks = entity.get_change_ticks_by_id(component.id);
            ticks.is_none_or(|ticks| ticks.is_changed(since, now))
        });
        if is_changed {
            load(world, component, data);
        }
    }
    let is_saved = |kind: &PartKind| {
        let mut data = data.iter();
        before.contains(kind) || data.any(|(component, _)| *kind == PartKind::Has(component.id))
    };
    for kind in present(world) {
        if is_saved(&kind) {
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

/// Warns of what leads to entities that are not here.
pub(crate) fn report_missing(world: &World, missing: impl IntoIterator<Item = LoadError>) {
    for error in missing {
        report::<MovedEntity>(world, BevyError::warning(Missing(error)));
    }
}

/// Something of an entity leads to another one that is not here.
#[derive(Debug, Error)]
#[error("dropped from an entity that has arrived: {0}")]
struct Missing(LoadError);

/// Inserts some components of this crate into saved entities.
fn load_parts(
    world: &mut World,
    saved: &[&SavedEntity],
    entities: &mut EntityHashMap<Entity>,
    is_wanted: impl Fn(&Part) -> bool,
) {
    for SavedEntity { entity, parts } in saved {
        for part in parts.iter().filter(|part| is_wanted(part)) {
            let mut part = part.clone();
            part.map_entities(entities);
            // An observer of an earlier part may have despawned the entity.
            if let Ok(mut target) = world.get_entity_mut(entities[entity]) {
                part.insert(&mut target);
            }
        }
    }
}

/// Returns the saved clocks, each after its parent.
fn parents_first(saved: &[SavedEntity]) -> Vec<(&SavedEntity, &ClockState)> {
    let clocks = saved.iter();
    let clocks = clocks.filter_map(|it| Some((it.entity, (it, it.own_clock()?))));
    let mut waiting: EntityHashMap<_> = clocks.clone().collect();
    let mut sorted = Vec::new();
    for (clock, _) in clocks {
        let first = sorted.len();
        let mut next = waiting.remove(&clock);
        while let Some((saved, state)) = next {
            sorted.push((saved, state));
            next = match state.parent() {
                Some(ClockId::Own(parent)) => waiting.remove(&parent),
                _ => None,
            };
        }
        sorted[first..].reverse();
    }
    sorted
}

/// Returns the saved clocks: the new ones in the order in which they run, and then those that are there already, each
/// after its parent. One that is there therefore finds its new parent, and that one no longer runs on a clock below it.
fn in_order<'a>(
    world: &World,
    clocks: &[Vec<(&'a SavedEntity, &ClockState)>],
    entities: &EntityHashMap<Entity>,
) -> Vec<&'a SavedEntity> {
    let mut in_order = Vec::new();
    for (nth, clocks) in clocks.iter().enumerate() {
        for (saved, state) in clocks {
            let is_there = world.get::<Clock>(entities[&saved.entity]).is_some();
            let order = if is_there { 0 } else { state.order };
            in_order.push(((is_there, nth, order), *saved));
        }
    }
    in_order.sort_by_key(|&(order, _)| order);
    in_order.into_iter().map(|(_, saved)| saved).collect()
}
