//! Components of the game that are saved, moved and rolled back with those of the crate.

use alloc::{borrow::Cow, boxed::Box, string::String, vec::Vec};
#[cfg(feature = "serialize")]
use alloc::{format, string::ToString};
use core::fmt;
#[cfg(feature = "serialize")]
use core::{any::type_name, cmp::Ordering};

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
pub(super) struct SavedComponent {
    pub(super) name: Cow<'static, str>,
    pub(super) id: ComponentId,
    #[cfg(feature = "serialize")]
    version: u32,
    save: fn(EntityRef, &mut dyn EntityMapper) -> Option<Result<String, String>>,
    #[cfg(feature = "serialize")]
    load: Box<Load>,
    copy: fn(&World, ComponentId) -> Box<dyn ComponentCopies>,
}

/// Reads a component, and inserts it into an entity, if there is one.
#[cfg(feature = "serialize")]
type Load = dyn Fn(&ComponentData, &mut dyn EntityMapper, Option<&mut EntityWorldMut>) -> Result<(), String>
    + Send
    + Sync;

/// The serialized form of a component: its version, and its value in RON. That format knows the names of fields, and
/// its reader limits the depth of what it reads.
#[cfg(feature = "serialize")]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentData {
    pub(super) name: Cow<'static, str>,
    #[serde(default = "first_version")]
    version: u32,
    data: String,
}

/// The version of a component that was never changed.
#[cfg(feature = "serialize")]
fn first_version() -> u32 {
    1
}

/// A component in the form of an earlier release of the game.
///
/// A function that is passed to
/// [`add_versioned_component`](crate::save::SaveWorldExt::add_versioned_component) reads it.
#[cfg(feature = "serialize")]
#[derive(Clone, Copy, Debug)]
pub struct OlderComponent<'a> {
    version: u32,
    data: &'a str,
}

#[cfg(feature = "serialize")]
impl OlderComponent<'_> {
    /// Returns the version under which the component was saved.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Reads the component as the type that it had.
    ///
    /// # Errors
    ///
    /// Returns the error of the type's `Deserialize`.
    pub fn read<Older: DeserializeOwned>(&self) -> Result<Older> {
        Ok(ron::from_str(self.data)?)
    }
}

impl SavedComponents {
    pub(super) fn iter(&self) -> impl Iterator<Item = &SavedComponent> {
        self.0.iter().map(|component| &**component)
    }

    /// Adds the component `C` under a name, in a version.
    #[cfg(feature = "serialize")]
    #[track_caller]
    pub(super) fn add<C: Component + Clone + Serialize + DeserializeOwned>(
        world: &mut World,
        name: Cow<'static, str>,
        version: u32,
        read_older: impl Fn(OlderComponent) -> Result<C> + Send + Sync + 'static,
    ) {
        rollback::forget_dropped_snapshots(world);
        assert!(
            !rollback::is_watched(world),
            "can't add the saved component {name:?} while a snapshot or a mark exists: add it at start-up"
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
        let load = move |data: &ComponentData,
                         mut names: &mut dyn EntityMapper,
                         entity: Option<&mut EntityWorldMut>| {
            let mut component = read_version(data, version, &read_older)?;
            C::map_entities(&mut component, &mut names);
            if let Some(entity) = entity {
                entity.insert(component);
            }
            Ok(())
        };
        let component = SavedComponent {
            name,
            id,
            version,
            save: save::<C>,
            load: Box::new(load),
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
        let (name, version) = (self.name.clone(), self.version);
        Some(data.map(|data| ComponentData {
            name,
            version,
            data,
        }))
    }

    /// Inserts the component into an entity, if there is one, with the names that entities have in the world. Returns
    /// the error of its `Deserialize`.
    pub(super) fn load(
        &self,
        data: &ComponentData,
        names: &mut dyn EntityMapper,
        entity: Option<&mut EntityWorldMut>,
    ) -> Result<(), String> {
        (self.load)(data, names, entity)
    }
}

impl fmt::Debug for SavedComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SavedComponent");
        shown.field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(feature = "serialize")]
fn save<C: Component + Clone + Serialize + DeserializeOwned>(
    entity: EntityRef,
    mut names: &mut dyn EntityMapper,
) -> Option<Result<String, String>> {
    let mut component = entity.get::<C>()?.clone();
    C::map_entities(&mut component, &mut names);
    let data = ron::to_string(&component).map_err(|error| error.to_string());
    // What can be written can't always be read.
    Some(data.and_then(|data| read::<C>(&data).map(|_| data)))
}

#[cfg(feature = "serialize")]
fn read<C: DeserializeOwned>(data: &str) -> Result<C, String> {
    ron::from_str(data).map_err(|error| error.to_string())
}

/// Reads a component of this version or of an older one.
#[cfg(feature = "serialize")]
fn read_version<C: DeserializeOwned>(
    ComponentData {
        version: saved,
        data,
        ..
    }: &ComponentData,
    version: u32,
    read_older: impl Fn(OlderComponent) -> Result<C>,
) -> Result<C, String> {
    match saved.cmp(&version) {
        Ordering::Equal => read(data).map_err(|error| {
            format!(
                "{error}; if the component has changed since, give it a version with `add_versioned_component`"
            )
        }),
        Ordering::Less => {
            let version = *saved;
            let older = read_older(OlderComponent { version, data });
            older.map_err(|error| error.to_string())
        }
        Ordering::Greater => Err(format!(
            "it has version {saved}, and this build knows version {version}: start a later build"
        )),
    }
}

/// All components of one type, as they were.
pub(super) trait ComponentCopies: Send + Sync {
    /// Inserts those that have changed since a tick, or that refer to an entity that was spawned again since. `names`
    /// has the new names, if there are any, and those written since `begin` have them already. Adds the entities that had
    /// none to `inserted`.
    fn put_back(
        &self,
        world: &mut World,
        since: Tick,
        begin: Tick,
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
        begin: Tick,
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
            let is_written = ticks.is_some_and(|ticks| ticks.is_changed(begin, now));
            if !is_different && (names.is_none() || is_written) {
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

/// Inserts a component again that another one has brought along since a tick.
pub(super) fn insert_again<C: Component>(world: &mut World, entity: Entity, since: Tick) {
    let now = world.change_tick();
    let Ok(mut holder) = world.get_entity_mut(entity) else {
        return;
    };
    let ticks = holder.get_change_ticks::<C>();
    if ticks.is_some_and(|ticks| ticks.is_added(since, now))
        && let Some(component) = holder.take::<C>()
        // An observer may have despawned it.
        && let Ok(mut entity) = world.get_entity_mut(entity)
    {
        entity.insert(component);
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
