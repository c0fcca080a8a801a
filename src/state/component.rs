//! Components of the game that are saved, moved and rolled back with those of the crate.

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};
#[cfg(feature = "serialize")]
use alloc::{format, string::ToString};
#[cfg(feature = "serialize")]
use core::any::type_name;

#[cfg(feature = "serialize")]
use bevy_ecs::resource::IsResource;
use bevy_ecs::{change_detection::Tick, component::ComponentId, entity::EntityMapper, prelude::*};
use bevy_platform::sync::Arc;
#[cfg(feature = "serialize")]
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::part::MapEach;
#[cfg(feature = "serialize")]
use super::{part, rollback};
#[cfg(feature = "serialize")]
use crate::timer::know_component;

/// The components of the game that a world saves.
#[derive(Resource, Clone, Debug, Default)]
pub(super) struct SavedComponents(Vec<Arc<SavedComponent>>);

/// How to turn one of the components into data and back, and how to copy it.
#[derive(Debug)]
pub(super) struct SavedComponent {
    pub(super) name: Cow<'static, str>,
    pub(super) id: ComponentId,
    save: fn(EntityRef, &mut dyn EntityMapper) -> Option<Result<Vec<u8>, String>>,
    load: fn(&[u8], &mut dyn EntityMapper, Option<&mut EntityWorldMut>) -> Result<(), String>,
    copy: fn(&World, ComponentId) -> Box<dyn ComponentCopies>,
}

/// The serialized form of a component.
#[cfg(feature = "serialize")]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentData {
    pub(super) name: Cow<'static, str>,
    data: Vec<u8>,
}

impl SavedComponents {
    pub(super) fn iter(&self) -> impl Iterator<Item = &SavedComponent> {
        self.0.iter().map(|component| &**component)
    }

    /// Adds the component `C` under a name.
    #[cfg(feature = "serialize")]
    #[track_caller]
    pub(super) fn add<C: Component + Clone + Serialize + DeserializeOwned>(
        world: &mut World,
        name: Cow<'static, str>,
    ) {
        rollback::forget_dropped_snapshots(world);
        assert!(
            !rollback::is_watched(world),
            "can't add the saved component {name:?} while a snapshot exists: add it at start-up"
        );
        let id = world.register_component::<C>();
        assert!(
            !part::is_part(world, id),
            "the component `{}` of this crate is saved with the timers: do not register it",
            type_name::<C>()
        );
        let mark = world.register_component::<IsResource>();
        let info = world.components().get_info(id);
        let is_resource = info.is_some_and(|info| {
            let mut required = info.required_components().iter_ids();
            required.any(|required| required == mark)
        });
        assert!(
            !is_resource,
            "`{}` is a resource, which belongs to no entity of a save: save it next to the timers",
            type_name::<C>()
        );
        let mut components = world.get_resource_or_init::<Self>();
        for other in components.iter() {
            assert!(
                other.name != name,
                "a saved component is already registered as {name:?}: choose another name"
            );
            assert!(
                other.id != id,
                "the component `{}` is already saved as {:?}: register it once",
                type_name::<C>(),
                other.name
            );
        }
        let component = SavedComponent {
            name,
            id,
            save: save::<C>,
            load: load::<C>,
            copy: |world, id| Box::new(Copies::<C>::of(world, id)),
        };
        components.0.push(Arc::new(component));
        know_component::<C>(world, id);
    }

    /// Returns the component with this name.
    #[cfg(feature = "serialize")]
    pub(super) fn find(&self, name: &str) -> Option<&SavedComponent> {
        self.iter().find(|component| component.name == name)
    }

    /// Copies all components of a world.
    pub(super) fn copy(world: &World) -> Vec<Box<dyn ComponentCopies>> {
        let components = world.get_resource::<Self>().into_iter();
        let components = components.flat_map(Self::iter);
        let copies = components.map(|component| (component.copy)(world, component.id));
        copies.collect()
    }
}

#[cfg(feature = "serialize")]
impl SavedComponent {
    /// Returns the component of an entity as data, with the names that entities have there, or the error of its
    /// `Serialize`.
    pub(super) fn save(
        &self,
        entity: EntityRef,
        names: &mut dyn EntityMapper,
    ) -> Option<Result<ComponentData, String>> {
        let data = (self.save)(entity, names)?;
        let name = self.name.clone();
        Some(data.map(|data| ComponentData { name, data }))
    }

    /// Inserts the component into an entity, if there is one, with the names that entities have in the world. Returns
    /// the error of its `Deserialize`.
    pub(super) fn load(
        &self,
        data: &ComponentData,
        names: &mut dyn EntityMapper,
        entity: Option<&mut EntityWorldMut>,
    ) -> Result<(), String> {
        (self.load)(&data.data, names, entity)
    }
}

#[cfg(feature = "serialize")]
fn save<C: Component + Clone + Serialize + DeserializeOwned>(
    entity: EntityRef,
    mut names: &mut dyn EntityMapper,
) -> Option<Result<Vec<u8>, String>> {
    let mut component = entity.get::<C>()?.clone();
    C::map_entities(&mut component, &mut names);
    let data = postcard::to_allocvec(&component).map_err(|error| error.to_string());
    // Some attributes of serde need a format that knows the names of fields.
    Some(data.and_then(|data| decode::<C>(&data).map(|_| data)))
}

#[cfg(feature = "serialize")]
fn decode<C: DeserializeOwned>(data: &[u8]) -> Result<C, String> {
    match postcard::take_from_bytes(data).map_err(|error| error.to_string())? {
        (component, []) => Ok(component),
        (_, rest) => Err(format!("bytes left over: {}", rest.len())),
    }
}

#[cfg(feature = "serialize")]
fn load<C: Component + DeserializeOwned>(
    data: &[u8],
    mut names: &mut dyn EntityMapper,
    entity: Option<&mut EntityWorldMut>,
) -> Result<(), String> {
    let mut component = decode::<C>(data)?;
    C::map_entities(&mut component, &mut names);
    if let Some(entity) = entity {
        entity.insert(component);
    }
    Ok(())
}

/// All components of one type, as they were.
pub(super) trait ComponentCopies: Send + Sync {
    /// Inserts those that have changed since a tick, or that refer to an entity that was spawned again since. `names`
    /// has the new names, if there are any. Adds the entities that had none to `inserted`.
    fn put_back(
        &self,
        world: &mut World,
        since: Tick,
        names: Option<&dyn Fn(Entity) -> Entity>,
        inserted: &mut Vec<Entity>,
    );
}

struct Copies<C>(Vec<(Entity, C)>);

impl<C: Component + Clone> Copies<C> {
    fn of(world: &World, id: ComponentId) -> Self {
        let holders = holders_of(world, id);
        let copies = holders.filter_map(|entity| Some((entity, world.get::<C>(entity)?.clone())));
        Self(copies.collect())
    }
}

impl<C: Component + Clone> ComponentCopies for Copies<C> {
    fn put_back(
        &self,
        world: &mut World,
        since: Tick,
        names: Option<&dyn Fn(Entity) -> Entity>,
        inserted: &mut Vec<Entity>,
    ) {
        let name = |entity| names.map_or(entity, |name| name(entity));
        for (entity, component) in &self.0 {
            let entity = name(*entity);
            let now = world.change_tick();
            let Ok(target) = world.get_entity(entity) else {
                continue;
            };
            let ticks = target.get_change_ticks::<C>();
            let mut is_different = ticks.is_none_or(|ticks| ticks.is_changed(since, now));
            if !is_different && names.is_none() {
                continue;
            }
            let mut component = component.clone();
            let mut renamed = MapEach(|entity| {
                is_different |= name(entity) != entity;
                name(entity)
            });
            C::map_entities(&mut component, &mut renamed);
            if !is_different {
                continue;
            }
            match ticks {
                // It must not bring along again what it requires.
                Some(_) => _ = world.modify_component(entity, |there: &mut C| *there = component),
                None => {
                    inserted.push(entity);
                    world.entity_mut(entity).insert(component);
                }
            }
        }
    }
}

/// Returns the entities with a component.
pub(super) fn holders_of(world: &World, id: ComponentId) -> impl Iterator<Item = Entity> {
    let archetypes = world.archetypes();
    let found = archetypes.component_index().get(&id);
    let mut ids: Vec<_> = found.into_iter().flat_map(|found| found.keys()).collect();
    ids.sort_unstable();
    let holders = ids.into_iter().filter_map(|&id| archetypes.get(id));
    holders
        .flat_map(|archetype| archetype.entities())
        .map(|entity| entity.id())
}
