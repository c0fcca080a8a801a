//! Importing an entity.

use alloc::vec::Vec;
use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::{Content, MoveError, MovedEntity, export::hold, names};
use crate::{
    clock::{ClockId, ClockTable, TimePassed, take_settings},
    message::HeldLetters,
    state::{
        Versioned,
        letter::{letters, rename_all},
        save::{SavedTimers, check_saved, load_checked},
    },
    transit::InTransit,
};

/// Imports an entity after this time on the way, and returns it. It is in transit from here on.
pub(crate) fn import_entity(
    world: &mut World,
    MovedEntity(Versioned::V1(content)): &MovedEntity,
    on_the_way: TimePassed,
    entities: &mut EntityHashMap<Entity>,
) -> Result<Entity, MoveError> {
    world.flush();
    take_settings(world);
    check(world, content, entities)?;
    let mut mail = letters(world, content.timers.mail())?;

    let members: Vec<Entity> = content.timers.entities().collect();
    for &member in &members {
        let target = entities.entry(member);
        target.or_insert_with(|| world.spawn_empty().id());
    }
    let names: EntityHashMap<Entity> = members
        .iter()
        .map(|member| (*member, entities[member]))
        .collect();
    let root = names[&content.entity];
    rename_all(&mut mail, entities);
    // The mark comes first, so that no timer is armed before it.
    HeldLetters::at_new_end(names.clone(), mail).begin(world, root);
    hold(world, root, names.values().copied());

    let (timers, clocks) = after(world, &content.timers, &on_the_way, entities);
    load_checked(world, &timers, entities, &on_the_way);
    if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
        for (clock, nanos) in clocks {
            table.pass(clock, nanos);
        }
    }
    names::bind(world, content, |member| names[&member]);
    world.flush();
    Ok(root)
}

/// Returns an error if an entity can't be imported with this map of entities.
fn check(
    world: &World,
    content: &Content,
    entities: &EntityHashMap<Entity>,
) -> Result<(), MoveError> {
    check_saved(world, &content.timers, entities)?;
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
    for member in &members {
        if let Some(&target) = entities.get(member)
            && world.get::<InTransit>(target).is_some()
        {
            return Err(MoveError::InTransit(target));
        }
    }
    let target = |member| entities.get(&member).copied();
    names::check_requests(world, content, target)?;
    names::check_keys(world, content, target)
}

/// Returns the timers with the time that has passed on clocks outside of the data. Also returns the clocks
/// that move along and whose parents do not, and how far these have advanced.
fn after(
    world: &World,
    timers: &SavedTimers,
    passed: &TimePassed,
    entities: &EntityHashMap<Entity>,
) -> (SavedTimers, Vec<(Entity, u64)>) {
    let table = world.get_resource::<ClockTable>();
    let passed_on = |clock| {
        let here = match clock {
            ClockId::Own(clock) => entities.get(&clock).copied().unwrap_or(clock).into(),
            built_in => built_in,
        };
        table.map_or(0, |table| table.share(here, passed))
    };
    let moving: EntityHashMap<(ClockId, bool)> = timers.clocks().collect();
    let top = moving
        .iter()
        .filter(|&(_, (parent, is_held))| match parent {
            ClockId::Own(parent) => !is_held && !moving.contains_key(parent),
            _ => !is_held,
        });
    let clocks = top.map(|(clock, &(parent, _))| (entities[clock], passed_on(parent)));
    let mut timers = timers.clone();
    timers.pass(passed_on);
    (timers, clocks.collect())
}
