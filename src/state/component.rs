//! Components of the game, as data: they are saved, moved and rolled back with those of the crate.

use alloc::{borrow::Cow, string::String, vec::Vec};
#[cfg(feature = "serialize")]
use alloc::{format, string::ToString};
#[cfg(feature = "serialize")]
use core::any::type_name;

use bevy_ecs::{component::ComponentId, entity::EntityMapper, prelude::*};
use bevy_platform::sync::Arc;
#[cfg(feature = "serialize")]
use serde::{Deserialize, Serialize, de::DeserializeOwned};

#[cfg(feature = "serialize")]
use super::{part::MapEach, rollback};

/// The components of the game that a world saves.
#[derive(Resource, Clone, Debug, Default)]
pub(super) struct SavedComponents(Vec<Arc<SavedComponent>>);

/// How to turn one of the components into data and back.
#[derive(Debug)]
pub(super) struct SavedComponent {
    pub(super) name: Cow<'static, str>,
    pub(super) id: ComponentId,
    encode: fn(EntityRef) -> Option<Encoded>,
    map_entities: fn(&[u8], &mut dyn EntityMapper) -> Encoded,
    insert: fn(&[u8], &mut EntityWorldMut) -> Result<(), String>,
}

type Encoded = Result<Vec<u8>, String>;

/// A component of the game as it was, or the error of its `Serialize`.
#[derive(Clone, Debug)]
pub(super) struct Captured {
    pub(super) component: Arc<SavedComponent>,
    pub(super) data: Encoded,
}

/// The serialized form of a component of the game.
#[cfg(feature = "serialize")]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComponentData {
    pub(super) name: Cow<'static, str>,
    data: Vec<u8>,
}

impl SavedComponents {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<SavedComponent>> {
        self.0.iter()
    }

    /// Adds the component `C` under a name.
    #[cfg(feature = "serialize")]
    #[track_caller]
    pub(super) fn add<C: Component + Serialize + DeserializeOwned>(
        world: &mut World,
        name: Cow<'static, str>,
    ) {
        assert!(
            !rollback::is_watched(world),
            "can't add the saved component {name:?} while a snapshot exists: add it at start-up"
        );
        let id = world.register_component::<C>();
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
        components.0.push(Arc::new(SavedComponent {
            name,
            id,
            encode: |entity| Some(encode(entity.get::<C>()?)),
            map_entities: map_entities::<C>,
            insert: |data, entity| {
                entity.insert(decode::<C>(data)?);
                Ok(())
            },
        }));
    }

    /// Returns a component as it was when it was saved, or `None` if there is none of its name.
    #[cfg(feature = "serialize")]
    pub(super) fn loaded(&self, ComponentData { name, data }: &ComponentData) -> Option<Captured> {
        let component = self.iter().find(|it| it.name == *name)?.clone();
        let data = Ok(data.clone());
        Some(Captured { component, data })
    }
}

impl SavedComponent {
    pub(super) fn capture(self: &Arc<Self>, entity: EntityRef) -> Option<Captured> {
        let data = (self.encode)(entity)?;
        let component = self.clone();
        Some(Captured { component, data })
    }
}

impl Captured {
    /// Returns the serialized form.
    #[cfg(feature = "serialize")]
    pub(super) fn to_data(&self) -> Result<ComponentData, String> {
        let name = self.component.name.clone();
        let data = self.data.clone()?;
        Ok(ComponentData { name, data })
    }

    /// Returns `true` if the component is the same. What can't be turned into data is left as it is.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.data.is_err() || other.data.is_err() || self.data == other.data
    }

    pub(super) fn map_entities(&mut self, mapper: &mut dyn EntityMapper) {
        if let Ok(data) = &self.data {
            self.data = (self.component.map_entities)(data, mapper);
        }
    }

    /// Returns the entities that the component refers to, except for those that were gone when it was saved.
    #[cfg(feature = "serialize")]
    pub(super) fn references(&self) -> Result<Vec<Entity>, String> {
        let mut references = Vec::new();
        let mut note = MapEach(|entity| {
            references.push(entity);
            entity
        });
        let mut noted = self.clone();
        noted.map_entities(&mut note);
        noted.data?;
        references.retain(|&entity| entity != Entity::PLACEHOLDER);
        Ok(references)
    }

    /// Inserts the component, or returns the error of its `Deserialize`.
    pub(super) fn insert(&self, entity: &mut EntityWorldMut) -> Result<(), String> {
        (self.component.insert)(self.data.as_deref().map_err(String::clone)?, entity)
    }
}

#[cfg(feature = "serialize")]
fn encode<C: Serialize>(component: &C) -> Encoded {
    postcard::to_allocvec(component).map_err(|error| error.to_string())
}

#[cfg(feature = "serialize")]
fn decode<C: DeserializeOwned>(data: &[u8]) -> Result<C, String> {
    match postcard::take_from_bytes(data).map_err(|error| error.to_string())? {
        (component, []) => Ok(component),
        (_, rest) => Err(format!("{} bytes are left over", rest.len())),
    }
}

/// Replaces the entities in a component.
#[cfg(feature = "serialize")]
fn map_entities<C: Component + Serialize + DeserializeOwned>(
    data: &[u8],
    mapper: &mut dyn EntityMapper,
) -> Encoded {
    let mut component = decode::<C>(data)?;
    let mut mapper = Noting {
        mapper,
        has_changed: false,
    };
    C::map_entities(&mut component, &mut mapper);
    match mapper.has_changed {
        true => encode(&component),
        false => Ok(data.to_vec()),
    }
}

/// Notes whether an entity was replaced by another one.
struct Noting<'a> {
    mapper: &'a mut dyn EntityMapper,
    has_changed: bool,
}

impl EntityMapper for Noting<'_> {
    fn get_mapped(&mut self, source: Entity) -> Entity {
        let target = self.mapper.get_mapped(source);
        self.has_changed |= target != source;
        target
    }

    fn set_mapped(&mut self, source: Entity, target: Entity) {
        self.mapper.set_mapped(source, target);
    }
}
