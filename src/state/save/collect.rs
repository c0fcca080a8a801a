//! Collecting the timers of a world.

use alloc::{borrow::ToOwned, vec::Vec};

use bevy_ecs::{
    archetype::Archetype,
    component::ComponentId,
    entity::{EntityHashMap, EntityHashSet, MapEntities},
    prelude::*,
};

use super::{Content, SaveError, SavedEntity, SavedTimers, Unsavable, part::Part};
use crate::{
    clock::{ClockTable, SpeedModifiers},
    message::timed_out,
    owner::{Owned, owner_of},
    pause::PausedBy,
    state::Versioned,
    timer::{Keyed, SavedWorld, TimerAction, write_timer_states, write_timer_states_of},
};

/// Saves all timers of a world, except those with closures, which it returns too.
pub(crate) fn save_all(world: &mut World) -> (SavedTimers, Vec<Unsavable>) {
    write_timer_states(world);
    let parts: Vec<ComponentId> = Part::components(world).collect();
    let has_part = |archetype: &&Archetype| parts.iter().any(|&part| archetype.contains(part));
    let archetypes = world.archetypes().iter().filter(has_part);
    let entities = archetypes.flat_map(Archetype::entities);
    let timed_out = Collector::timed_out(world);
    let mut collector = Collector::new(world, &timed_out);
    for entity in entities {
        collector.add_root(entity.id());
    }
    collector.finish(world.get_resource::<SavedWorld>().cloned())
}

/// Saves all timers of a world.
pub(crate) fn save_timers(world: &mut World) -> Result<SavedTimers, SaveError> {
    check_plugin(world)?;
    all_or_error(save_all(world))
}

/// Saves an entity and everything it owns.
pub(crate) fn save_entity(world: &mut World, entity: Entity) -> Result<SavedTimers, SaveError> {
    let saved = save_entities(world, &[entity]).pop();
    saved.unwrap_or(Err(SaveError::NoSuchEntity(entity)))
}

/// Saves each of some entities with everything it owns.
pub(crate) fn save_entities(
    world: &mut World,
    entities: &[Entity],
) -> Vec<Result<SavedTimers, SaveError>> {
    world.flush();
    let members = entities.iter().flat_map(|&root| dependents(world, root));
    let members = members.map(|member| member.id()).collect();
    write_timer_states_of(world, &members);
    let timed_out = Collector::timed_out(world);
    let saved = entities.iter().map(|&entity| {
        check_plugin(world)?;
        if world.get_entity(entity).is_err() {
            return Err(SaveError::NoSuchEntity(entity));
        }
        let mut collector = Collector::new(world, &timed_out);
        collector.add(entity);
        all_or_error(collector.finish(None))
    });
    saved.collect()
}

fn check_plugin(world: &World) -> Result<(), SaveError> {
    match world.contains_resource::<ClockTable>() {
        true => Ok(()),
        false => Err(SaveError::NoPlugin),
    }
}

fn all_or_error(
    (saved, unsavable): (SavedTimers, Vec<Unsavable>),
) -> Result<SavedTimers, SaveError> {
    match unsavable.is_empty() {
        true => Ok(saved),
        false => Err(SaveError::Closures(unsavable)),
    }
}

/// Returns an entity and everything that depends on it: what it owns, and then the pauses and the speed
/// modifiers of all of these, with what they own.
pub(crate) fn dependents(world: &World, entity: Entity) -> Vec<EntityRef<'_>> {
    let mut seen = EntityHashSet::default();
    let mut found = with_owned(world, entity, &mut seen);
    let mut next = 0;
    while let Some(&entity) = found.get(next) {
        next += 1;
        for effect in effects(entity) {
            found.extend(with_owned(world, effect, &mut seen));
        }
    }
    found
}

/// Returns an entity and everything it owns, in order, except for the entities that were seen.
fn with_owned<'w>(
    world: &'w World,
    entity: Entity,
    seen: &mut EntityHashSet,
) -> Vec<EntityRef<'w>> {
    let mut found = Vec::new();
    let mut to_visit = Vec::from([entity]);
    while let Some(entity) = to_visit.pop() {
        let Ok(entity) = world.get_entity(entity) else {
            continue;
        };
        if !seen.insert(entity.id()) {
            continue;
        }
        found.push(entity);
        let first = to_visit.len();
        to_visit.extend(entity.get::<Owned>().into_iter().flat_map(Owned::iter));
        to_visit[first..].reverse();
    }
    found
}

/// Returns the pauses and the speed modifiers of an entity.
fn effects(entity: EntityRef<'_>) -> impl Iterator<Item = Entity> {
    let pauses = entity.get::<PausedBy>();
    let pauses = pauses.into_iter().flat_map(RelationshipTarget::iter);
    let modifiers = entity.get::<SpeedModifiers>();
    pauses.chain(modifiers.into_iter().flat_map(RelationshipTarget::iter))
}

/// Saves entities, each after its owner, and the entities of an owner in its order.
struct Collector<'w> {
    world: &'w World,
    /// The requests that have timed out, with their places in the mail.
    timed_out: &'w EntityHashMap<u32>,
    seen: EntityHashSet,
    entities: Vec<SavedEntity>,
    unsavable: Vec<Unsavable>,
}

impl<'w> Collector<'w> {
    /// Returns the requests that have timed out, with their places in the mail.
    fn timed_out(world: &World) -> EntityHashMap<u32> {
        timed_out(world).into_iter().zip(0..).collect()
    }

    fn new(world: &'w World, timed_out: &'w EntityHashMap<u32>) -> Self {
        Self {
            world,
            timed_out,
            seen: EntityHashSet::default(),
            entities: Vec::new(),
            unsavable: Vec::new(),
        }
    }

    /// Adds the owner of an entity, or the owner of that owner, and everything it owns.
    fn add_root(&mut self, entity: Entity) {
        let mut root = entity;
        let mut path = EntityHashSet::default();
        while let Ok(entity) = self.world.get_entity(root)
            && path.insert(root)
        {
            root = owner_of(entity);
        }
        self.add(root);
    }

    /// Adds an entity and everything it owns, in order.
    fn add(&mut self, entity: Entity) {
        for entity in with_owned(self.world, entity, &mut self.seen) {
            self.save(entity);
        }
    }

    /// Adds the pauses and the speed modifiers of all entities so far. They come last, because one that
    /// is owned has its place among the entities of its owner.
    fn add_effects(&mut self) {
        let mut next = 0;
        while let Some(saved) = self.entities.get(next) {
            next += 1;
            let entity = self.world.get_entity(saved.entity);
            for effect in entity.into_iter().flat_map(effects) {
                self.add(effect);
            }
        }
    }

    fn save(&mut self, entity: EntityRef) {
        let mut parts: Vec<Part> = Part::all_of(self.world, entity).collect();
        parts.extend(
            self.timed_out
                .get(&entity.id())
                .copied()
                .map(Part::TimedOut),
        );
        if let Some(closure) = entity.get().and_then(TimerAction::closure) {
            if parts.iter().any(|part| matches!(part, Part::Timer(_))) {
                self.unsavable.push(Unsavable {
                    entity: entity.id(),
                    owner: owner_of(entity),
                    key: entity.get().cloned().map(Keyed::into),
                    closure: closure.to_owned(),
                });
            }
            parts.retain(|part| !part.serves_timer());
        }
        for part in &mut parts {
            part.map_entities(&mut Existing(self.world));
        }
        self.entities.push(SavedEntity {
            entity: entity.id(),
            parts,
        });
    }

    fn finish(mut self, world: Option<SavedWorld>) -> (SavedTimers, Vec<Unsavable>) {
        self.add_effects();
        let Self {
            mut entities,
            unsavable,
            ..
        } = self;
        if !unsavable.is_empty() {
            drop_remains(&mut entities, &unsavable);
        }
        (
            SavedTimers(Versioned::V1(Content { world, entities })),
            unsavable,
        )
    }
}

/// Drops the entities of timers that were left out, unless something else needs them.
fn drop_remains(entities: &mut Vec<SavedEntity>, unsavable: &[Unsavable]) {
    let left_out: EntityHashSet = unsavable.iter().map(|timer| timer.entity).collect();
    let parts = entities.iter().flat_map(|saved| &saved.parts);
    let referred: EntityHashSet = parts.flat_map(Part::references).collect();
    entities.retain(|SavedEntity { entity, parts }| {
        let is_bare = parts.iter().all(|part| matches!(part, Part::OwnedBy(_)));
        !(left_out.contains(entity) && is_bare) || referred.contains(entity)
    });
}

/// Maps entities that no longer exist to a placeholder.
struct Existing<'w>(&'w World);

impl EntityMapper for Existing<'_> {
    fn get_mapped(&mut self, entity: Entity) -> Entity {
        match self.0.entities().contains_spawned(entity) {
            true => entity,
            false => Entity::PLACEHOLDER,
        }
    }

    fn set_mapped(&mut self, _: Entity, _: Entity) {}
}
