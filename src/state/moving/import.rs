//! Importing an entity.

use alloc::vec::Vec;
use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    prelude::*,
};

use super::{Content, LetterData, MoveError, MovedEntity, export::hold, names};
use crate::{
    clock::{ClockId, ClockTable, TimePassed, take_settings},
    message::{HeldLetters, Letter},
    state::{
        Versioned,
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
    let mut mail = letters(world, &content.mail)?;

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
    for letter in &mut mail {
        letter.rename(&names);
    }
    // The mark comes first, so that no timer is armed before it.
    HeldLetters::at_new_end(names.clone(), mail).begin(world, root);
    hold(world, root, names.values().copied());

    let passed = Passed {
        time: on_the_way,
        entities,
    };
    let timers = passed.timers(world, content);
    let clocks = passed.clocks(world, &content.timers);
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
    let named = named.chain(content.mail.iter().map(LetterData::to));
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

/// Turns mail into letters, by the names of the world that it comes from.
pub(super) fn letters(world: &World, mail: &[LetterData]) -> Result<Vec<Letter>, MoveError> {
    mail.iter().map(|letter| letter.to_letter(world)).collect()
}

/// The time that has passed on the built-in clocks, and the clocks of this world by their names in the
/// data.
struct Passed<'a> {
    time: TimePassed,
    entities: &'a EntityHashMap<Entity>,
}

impl Passed<'_> {
    /// Returns the timers with the time that has passed on clocks outside of the data.
    fn timers(&self, world: &World, content: &Content) -> SavedTimers {
        let mut timers = content.timers.clone();
        timers.pass(|clock| self.on(world, clock));
        timers
    }

    /// Returns the clocks that move along and whose parents do not, and how far these have advanced.
    fn clocks(&self, world: &World, timers: &SavedTimers) -> Vec<(Entity, u64)> {
        let moving: EntityHashMap<(ClockId, bool)> = timers.clocks().collect();
        let top = moving
            .iter()
            .filter(|&(_, (parent, is_held))| match parent {
                ClockId::Own(parent) => !is_held && !moving.contains_key(parent),
                _ => !is_held,
            });
        let top = top.map(|(clock, &(parent, _))| (self.entities[clock], self.on(world, parent)));
        top.collect()
    }

    /// Returns how far a clock outside of the data has advanced.
    fn on(&self, world: &World, clock: ClockId) -> u64 {
        let table = world.get_resource::<ClockTable>();
        table.map_or(0, |table| table.share(self.here(clock), &self.time))
    }

    fn here(&self, mut clock: ClockId) -> ClockId {
        if let ClockId::Own(entity) = &mut clock
            && let Some(&here) = self.entities.get(entity)
        {
            *entity = here;
        }
        clock
    }
}
