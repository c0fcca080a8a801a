//! Putting entities into a world.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};
use bevy_platform::collections::{HashMap, HashSet};
use thiserror::Error;

use super::{Content, MoveError, MovedEntity, PutError, RequestName, names};
use crate::{
    clock::{Clock, ClockId, ClockTable, TimePassed, settle_clocks},
    message::{Letter, deliver_soon},
    report::report,
    state::{
        letter::{letters, rename_all},
        save::{LoadError, begin_loading, check_map, check_moved, load_checked},
    },
};

/// Puts entities into a world, each after this time on the way.
pub(crate) fn put_entities(
    world: &mut World,
    moved: Vec<(MovedEntity, TimePassed)>,
    entities: &mut EntityHashMap<Entity>,
) -> Vec<Result<Entity, PutError>> {
    world.flush();
    settle_clocks(world);
    let checked = check_all(world, &moved, entities);
    let mut arrivals: Vec<Arrival> = Vec::new();
    let results = moved
        .into_iter()
        .zip(checked)
        .map(|((moved, passed), checked)| match checked {
            Ok(mail) => {
                let arrival = Arrival::begin(world, moved, passed, mail, entities);
                let root = entities[&arrival.content.entity];
                arrivals.push(arrival);
                Ok(root)
            }
            Err(reason) => Err(PutError { moved, reason }),
        });
    let results = results.collect();
    drop_missing(world, &mut arrivals, entities);
    for arrival in &arrivals {
        begin_loading(world, &arrival.content.timers, entities);
    }
    let mut new_clocks = EntityHashSet::default();
    for nth in in_order_of_clocks(&arrivals) {
        let arrival = &mut arrivals[nth];
        let timers = &arrival.content.timers;
        let mut needed = timers.clocks_in_use();
        if !new_clocks.is_empty() && needed.any(|clock| new_clocks.contains(&clock)) {
            // They tell how far they have come.
            settle_clocks(world);
            new_clocks.clear();
        }
        drop(needed);
        new_clocks.extend(timers.clocks().map(|(clock, _)| clock));
        arrival.finish(world, entities);
    }
    world.flush();
    results
}

/// An entity that is put into a world.
struct Arrival {
    content: Content,
    passed: TimePassed,
}

impl Arrival {
    /// Spawns the entity and everything that it owns, and queues its mail. If an observer panics later, the mail
    /// is there.
    fn begin(
        world: &mut World,
        MovedEntity(moved): MovedEntity,
        passed: TimePassed,
        mut mail: Vec<Letter>,
        entities: &mut EntityHashMap<Entity>,
    ) -> Self {
        let content = moved.into_inner();
        for member in content.timers.entities() {
            let target = entities.entry(member);
            target.or_insert_with(|| world.spawn_empty().id());
        }
        rename_all(&mut mail, entities);
        deliver_soon(world, mail);
        Self { content, passed }
    }

    fn finish(&mut self, world: &mut World, entities: &mut EntityHashMap<Entity>) {
        let clocks = self.let_time_pass(world, entities);
        load_checked(world, &self.content.timers, entities, &self.passed);
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            for (clock, nanos) in clocks {
                table.pass(clock, nanos);
            }
        }
        names::bind(world, &self.content, |member| entities[&member]);
    }

    /// Lets the time pass on clocks outside of the data. Returns the clocks that move along and whose parents do not, and how far these have
    /// advanced.
    fn let_time_pass(
        &mut self,
        world: &World,
        entities: &EntityHashMap<Entity>,
    ) -> Vec<(Entity, u64)> {
        let Self {
            content: Content { timers, .. },
            passed,
        } = self;
        let table = world.get_resource::<ClockTable>();
        let passed_on = |clock| {
            let here = match clock {
                ClockId::Own(clock) => entities.get(&clock).copied().unwrap_or(clock).into(),
                built_in => built_in,
            };
            table.map_or(0, |table| table.share(here, passed))
        };
        let moving: EntityHashMap<(Option<ClockId>, bool)> = timers.clocks().collect();
        // No time passes on a manual clock.
        let top = moving.iter().filter_map(|(clock, &(parent, is_held))| {
            let parent = parent.filter(|_| !is_held)?;
            let moves = matches!(parent, ClockId::Own(parent) if moving.contains_key(&parent));
            (!moves).then_some((clock, parent))
        });
        let clocks = top.map(|(clock, parent)| (entities[clock], passed_on(parent)));
        let clocks = clocks.collect();
        timers.pass(passed_on);
        clocks
    }
}

/// Returns the mail of each entity, or the reason for which it can't be put into the world. An entity that contradicts
/// an earlier one has an error.
fn check_all(
    world: &World,
    moved: &[(MovedEntity, TimePassed)],
    entities: &EntityHashMap<Entity>,
) -> Vec<Result<Vec<Letter>, MoveError>> {
    let map = check_map(world, entities);
    let members = moved.iter().flat_map(|(moved, _)| moved.entities());
    let members: EntityHashSet = members.collect();
    let is_known = |entity| members.contains(&entity) || entities.contains_key(&entity);
    let mut taken = Taken::default();
    let moved = moved.iter().map(|(MovedEntity(moved), _)| {
        map.clone()?;
        let content: &Content = moved;
        let missing = check(world, content, entities, is_known)?;
        let mail = letters(world, content.timers.mail())?;
        taken.take(content)?;
        missing
            .into_iter()
            .for_each(|error| report_missing(world, error));
        Ok(mail)
    });
    moved.collect()
}

/// The names of the entities that arrive together.
#[derive(Default)]
struct Taken {
    members: EntityHashSet,
    keys: HashMap<u64, Entity>,
    requests: HashSet<(u64, u64)>,
}

impl Taken {
    fn take(&mut self, content: &Content) -> Result<(), MoveError> {
        let members = || content.timers.entities();
        let name = |request: &RequestName| (request.token, request.number);
        if let Some(twice) = members().find(|member| self.members.contains(member)) {
            return Err(LoadError::DuplicateEntity(twice).into());
        }
        for &(entity, key) in &content.keys {
            if self.keys.contains_key(&key) {
                return Err(MoveError::KeyInUse { key, entity });
            }
        }
        let mut requests = content.requests.iter();
        if let Some(twice) = requests.find(|it| self.requests.contains(&name(it))) {
            return Err(MoveError::InvalidRequest(twice.entity));
        }
        self.members.extend(members());
        self.keys
            .extend(content.keys.iter().map(|&(entity, key)| (key, entity)));
        self.requests.extend(content.requests.iter().map(name));
        Ok(())
    }
}

/// Drops what leads to entities that neither arrive nor are in the map, and reports it.
fn drop_missing(world: &World, arrivals: &mut [Arrival], entities: &EntityHashMap<Entity>) {
    let arriving = arrivals.iter().flat_map(|it| it.content.timers.entities());
    let arriving: EntityHashSet = arriving.collect();
    // One that arrives without a clock may get it later.
    let is_clock = |entity| {
        let is_here = |&here: &Entity| world.get::<Clock>(here).is_some();
        arriving.contains(&entity) || entities.get(&entity).is_some_and(is_here)
    };
    for arrival in arrivals {
        let is_known = |entity| entities.contains_key(&entity);
        let missing = arrival.content.timers.drop_missing(is_known, is_clock);
        missing
            .into_iter()
            .for_each(|error| report_missing(world, error));
    }
}

fn report_missing(world: &World, error: LoadError) {
    report::<MovedEntity>(world, BevyError::warning(Missing(error)));
}

/// Returns the numbers of the arrivals, each after those with the clocks that it needs.
fn in_order_of_clocks(arrivals: &[Arrival]) -> Vec<usize> {
    let owners = arrivals.iter().enumerate();
    let owners = owners.flat_map(|(nth, it)| {
        it.content
            .timers
            .clocks()
            .map(move |(clock, _)| (clock, nth))
    });
    let owners: EntityHashMap<usize> = owners.collect();
    let mut order = Vec::new();
    let mut is_seen = alloc::vec![false; arrivals.len()];
    for first in 0..arrivals.len() {
        let mut path: Vec<usize> = [first].into_iter().filter(|&nth| !is_seen[nth]).collect();
        while let Some(&nth) = path.last() {
            is_seen[nth] = true;
            let mut needed = arrivals[nth].content.timers.clocks_in_use();
            match needed.find_map(|clock| owners.get(&clock).filter(|&&nth| !is_seen[nth])) {
                Some(&before) => path.push(before),
                None => {
                    order.push(nth);
                    path.pop();
                }
            }
        }
    }
    order
}

/// Something of an entity leads to another one that is not here.
#[derive(Debug, Error)]
#[error("dropped from an entity that has arrived: {0}")]
struct Missing(LoadError);

/// Returns an error if an entity can't be put into the world with this map of entities, and otherwise the references of its
/// components to unknown entities.
fn check(
    world: &World,
    content: &Content,
    entities: &EntityHashMap<Entity>,
    is_known: impl Fn(Entity) -> bool,
) -> Result<Vec<LoadError>, MoveError> {
    let missing = check_moved(world, &content.timers, entities, is_known)?;
    if content.timers.is_whole_world() {
        return Err(MoveError::WholeWorld);
    }
    let members: EntityHashSet = content.timers.entities().collect();
    let named = content.requests.iter().map(|it| it.entity);
    let named = named.chain(content.keys.iter().map(|&(entity, _)| entity));
    for entity in [content.entity].into_iter().chain(named) {
        if !members.contains(&entity) {
            return Err(MoveError::UnknownEntity(entity));
        }
    }
    let target = |member| entities.get(&member).copied();
    names::check_requests(world, content, target)?;
    names::check_keys(world, content, target)?;
    Ok(missing)
}
