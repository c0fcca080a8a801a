//! The states of the entities that have changed, as they were.

use alloc::vec::Vec;

use bevy_ecs::{change_detection::Tick, component::ComponentId, entity::MapEntities, prelude::*};
use bevy_platform::sync::Arc;

use super::names::Names;
use crate::{
    journal::Journal,
    message::MessageComponent,
    state::part::{Part, PartKind, PartKinds},
    update::UpdateComponent,
};

/// The parts of the entities that have changed, as they were. A new entity had none.
pub(super) type States = Journal<Entity, Arc<Vec<Part>>>;

/// Returns what an entity was at first, if it has changed.
pub(super) fn first_of<'a>(
    states: &'a States,
    names: &Names,
    entity: Entity,
) -> Option<&'a [Part]> {
    let noted = names.up_to(entity).filter_map(|name| states.get(name));
    noted.last().map(|parts| &***parts)
}

/// Returns what each entity was at first, with its latest name.
pub(super) fn first<'a>(
    states: &'a States,
    names: &'a Names,
) -> impl Iterator<Item = (Entity, &'a [Part])> {
    let first = states.under_first_names(|entity| names.earlier(entity));
    first.map(|(entity, parts)| (names.latest(entity), &***parts))
}

/// Returns the entities for which a part of such a kind differs from the noted one.
pub(super) fn differing(
    states: &States,
    world: &World,
    kinds: &PartKinds,
    is_wanted: impl Fn(PartKind) -> bool + Copy,
) -> impl Iterator<Item = Entity> {
    let differs = move |&(entity, before): &(Entity, &Arc<Vec<Part>>)| {
        let now = read(world, kinds, entity, is_wanted);
        let before = before
            .iter()
            .filter(|part| part.kind().is_some_and(is_wanted));
        !(now.len() == before.clone().count()
            && now
                .iter()
                .zip(before)
                .all(|(now, before)| now.is_like(before)))
    };
    states.iter().filter(differs).map(|(entity, _)| entity)
}

/// Inserts and removes components until each entity has the same ones as before.
///
/// `new` entities, which despawn later, come last. If an observer panics before that, the next restore
/// finds them by their components.
pub(super) fn put_back(
    states: &States,
    world: &mut World,
    kinds: &PartKinds,
    names: &Names,
    new: &[Entity],
    since: Tick,
) {
    let put_parts_back = |world: &mut World, noted, is_wanted: &dyn Fn(PartKind) -> bool| {
        put_parts_back(world, kinds, names, noted, since, is_wanted);
    };
    let is_new = |entity| new.binary_search(&entity).is_ok();
    for (entity, parts) in first(states, names).filter(|&(entity, _)| !is_new(entity)) {
        put_parts_back(world, (entity, parts), &|kind| kind != PartKind::Disabled);
    }
    // Only this crate's entities are enabled and disabled. New entities are gone then.
    let is_ours = |world: &World, entity| {
        let is_old = |part: &Part| {
            part.list()
                .is_none_or(|list| !list.iter().copied().all(is_new))
        };
        let parts = read(world, kinds, entity, |kind| kind != PartKind::Disabled);
        parts.iter().any(is_old)
    };
    for (entity, parts) in first(states, names) {
        if is_ours(world, entity) {
            put_parts_back(world, (entity, parts), &|kind| kind == PartKind::Disabled);
        }
    }
    for (entity, parts) in first(states, names).filter(|&(entity, _)| is_new(entity)) {
        put_parts_back(world, (entity, parts), &|_| true);
    }
    world.flush();
}

/// Brings the entities of each list into their order.
pub(super) fn put_in_order(states: &States, world: &mut World, names: &Names) {
    for (entity, parts) in first(states, names) {
        for part in parts {
            let mut part = part.clone();
            part.map_entities(&mut &*names);
            part.put_in_order(world, entity);
        }
    }
}

/// Inserts and removes the components of some kinds until an entity has the same ones as before.
fn put_parts_back(
    world: &mut World,
    kinds: &PartKinds,
    names: &Names,
    (entity, before): (Entity, &[Part]),
    since: Tick,
    is_wanted: &dyn Fn(PartKind) -> bool,
) {
    let now = read(world, kinds, entity, is_wanted);
    let find = |parts: &[Part], kind| parts.iter().position(|part| part.kind() == Some(kind));
    // An observer of one change may despawn the entity.
    for kind in now.iter().filter_map(Part::kind) {
        if find(before, kind).is_none()
            && let Ok(mut entity) = world.get_entity_mut(entity)
        {
            kind.remove(&mut entity);
        }
        if let PartKind::Has(id) = kind {
            remove_required::<UpdateComponent>(world, entity, id, since);
            remove_required::<MessageComponent>(world, entity, id, since);
        }
    }
    for part in before {
        let Some(kind) = part.kind().filter(|&kind| is_wanted(kind)) else {
            continue;
        };
        let mut part = part.copied();
        if !names.is_empty() {
            part.map_entities(&mut &*names);
        }
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            match find(&now, kind) {
                Some(nth) if now[nth].is_like(&part) => {}
                _ => {
                    part.keep_place(&entity);
                    part.insert(&mut entity);
                }
            }
        }
    }
}

/// Removes a callback that a component of the game has brought along since a tick, unless another one requires it, too.
fn remove_required<C: Component>(world: &mut World, entity: Entity, by: ComponentId, since: Tick) {
    let Ok(holder) = world.get_entity(entity) else {
        return;
    };
    let requires = |component: ComponentId| {
        let info = world.components().get_info(component);
        info.is_some_and(|info| {
            let mut required = info.required_components().iter_ids();
            required.any(|id| Some(id) == world.component_id::<C>())
        })
    };
    let ticks = holder.get_change_ticks::<C>();
    let is_added = ticks.is_some_and(|ticks| ticks.is_added(since, world.read_change_tick()));
    let mut others = holder.archetype().components().iter();
    if is_added && requires(by) && !others.any(|&other| requires(other)) {
        world.entity_mut(entity).remove::<C>();
    }
}

/// Returns copies of the components of some kinds.
fn read(
    world: &World,
    kinds: &PartKinds,
    entity: Entity,
    is_wanted: impl Fn(PartKind) -> bool,
) -> Vec<Part> {
    let entity = world.get_entity(entity).into_iter();
    let parts = entity.flat_map(|entity| kinds.read(entity, |kind, _| is_wanted(kind)));
    parts.collect()
}

/// Returns `true` if an entity with these parts has a component of this crate or a registered one.
pub(super) fn is_ours(parts: &[Part]) -> bool {
    parts
        .iter()
        .any(|part| part.kind() != Some(PartKind::Disabled))
}

/// Returns `true` if an entity has a component of this crate or a registered one.
pub(super) fn has_any(world: &World, kinds: &PartKinds, entity: Entity) -> bool {
    let entity = world.get_entity(entity);
    entity.is_ok_and(|entity| kinds.has_any(entity))
}
