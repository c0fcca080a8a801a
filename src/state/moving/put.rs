//! Putting entities into a world.

use alloc::vec::Vec;

use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};
use bevy_platform::collections::{HashMap, HashSet};

use super::{Content, MoveError, MovedEntity, PutError, RequestName, names};
use crate::{
    clock::{Clock, TimePassed, settle_clocks},
    message::{Letter, deliver_soon},
    state::{
        letter::{letters, rename_all},
        save::{LoadError, check_map, check_moved, load_checked, report_missing},
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
    let map = check_map(world, entities);
    let mut taken = Taken::default();
    let mut arrivals = Vec::new();
    let results = moved.into_iter().map(|(moved, passed)| {
        let checked = map.clone().map_err(MoveError::from);
        match checked.and_then(|()| check(world, &moved, entities, &taken)) {
            Ok(mut mail) => {
                let MovedEntity(content) = moved;
                let content = content.into_inner();
                content.timers.spawn(world, entities);
                // If an observer panics later, the mail is there.
                rename_all(&mut mail, entities);
                deliver_soon(world, mail);
                taken.add(&content, entities);
                let root = entities[&content.entity];
                arrivals.push((content, passed));
                Ok(root)
            }
            Err(reason) => Err(PutError { moved, reason }),
        }
    });
    let results = results.collect();
    drop_missing(world, &mut arrivals, entities);
    let timers = arrivals.iter();
    let timers: Vec<_> = timers.map(|(it, passed)| (&it.timers, *passed)).collect();
    load_checked(world, &timers, entities);
    for (content, _) in &arrivals {
        names::bind(world, content, |member| entities[&member]);
    }
    world.flush();
    results
}

/// The names of the entities that have arrived together.
#[derive(Default)]
struct Taken {
    members: EntityHashSet,
    /// The entities of this world that get the keys.
    keys: HashMap<u64, Entity>,
    requests: HashSet<(u64, u64)>,
}

impl Taken {
    /// Returns an error if an entity contradicts an earlier one.
    fn check(&self, content: &Content) -> Result<(), MoveError> {
        let mut members = content.timers.entities();
        if let Some(twice) = members.find(|member| self.members.contains(member)) {
            return Err(LoadError::DuplicateEntity(twice).into());
        }
        for (_, key) in &content.keys {
            if let Some(&entity) = self.keys.get(key) {
                return Err(MoveError::KeyInUse { key: *key, entity });
            }
        }
        let mut requests = content.requests.iter();
        match requests.find(|it| self.requests.contains(&it.name())) {
            Some(twice) => Err(MoveError::InvalidRequest(twice.entity)),
            None => Ok(()),
        }
    }

    fn add(&mut self, content: &Content, entities: &EntityHashMap<Entity>) {
        self.members.extend(content.timers.entities());
        let keys = content.keys.iter();
        self.keys
            .extend(keys.map(|(entity, key)| (*key, entities[entity])));
        self.requests
            .extend(content.requests.iter().map(RequestName::name));
    }
}

/// Drops what leads to entities that neither arrive nor are in the map, and reports it.
fn drop_missing(
    world: &World,
    arrivals: &mut [(Content, TimePassed)],
    entities: &EntityHashMap<Entity>,
) {
    let arriving = arrivals.iter().flat_map(|(it, _)| it.timers.entities());
    let arriving: EntityHashSet = arriving.collect();
    let is_known = |entity| entities.contains_key(&entity);
    // One that arrives without a clock may get it later.
    let is_clock = |entity| {
        let is_here = |&here: &Entity| world.get::<Clock>(here).is_some();
        arriving.contains(&entity) || entities.get(&entity).is_some_and(is_here)
    };
    for (content, _) in arrivals {
        report_missing(world, content.timers.drop_missing(is_known, is_clock));
    }
}

/// Returns the mail of an entity, or an error if the entity can't be put into the world with this map of entities.
fn check(
    world: &World,
    MovedEntity(content): &MovedEntity,
    entities: &EntityHashMap<Entity>,
    taken: &Taken,
) -> Result<Vec<Letter>, MoveError> {
    check_moved(world, &content.timers, entities)?;
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
    taken.check(content)?;
    let target = |member| entities.get(&member).copied();
    names::check_requests(world, content, target)?;
    names::check_keys(world, content, target)?;
    Ok(letters(world, content.timers.mail())?)
}
