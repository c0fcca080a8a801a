//! The components of the game that are stored with their entities.

use core::fmt;
use std::sync::Arc;

use bevy_app::prelude::*;
use bevy_ecs::{entity::EntityHashMap, entity_disabling::Disabled, prelude::*};
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

use crate::{
    changes::{Noted, StoreFrame},
    stored::ComponentData,
};

/// A component of the game that is stored.
#[derive(Clone)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    version: u32,
    save: fn(EntityRef) -> Option<Result<Vec<u8>, postcard::Error>>,
    load: fn(&mut EntityWorldMut, &[u8]) -> Result,
    /// Reads the data of older versions.
    load_older: Option<Arc<LoadOlder>>,
    watch: fn(&mut App),
}

/// Inserts a component that an older version has stored.
type LoadOlder = dyn Fn(&mut EntityWorldMut, u32, &[u8]) -> Result + Send + Sync;

impl Declared {
    pub(crate) fn new<C: Component + Serialize + DeserializeOwned>(name: &'static str) -> Self {
        Self {
            name,
            version: 0,
            save: |entity| entity.get::<C>().map(postcard::to_allocvec),
            load: |entity, data| {
                let (component, rest) = postcard::take_from_bytes::<C>(data)?;
                if !rest.is_empty() {
                    return Err(format!("{} bytes are left", rest.len()).into());
                }
                entity.insert(component);
                Ok(())
            },
            load_older: None,
            watch: |app| {
                app.add_systems(Last, note_changes::<C>.before(StoreFrame))
                    .add_observer(note_removal::<C>);
            },
        }
    }

    /// Stores the component as this version, and reads older ones with a function.
    pub(crate) fn with_version<C: Component>(
        self,
        version: u32,
        read_older: impl Fn(u32, &[u8]) -> Result<C> + Send + Sync + 'static,
    ) -> Self {
        let load_older = move |entity: &mut EntityWorldMut, version, data: &[u8]| {
            entity.insert(read_older(version, data)?);
            Ok(())
        };
        Self {
            version,
            load_older: Some(Arc::new(load_older)),
            ..self
        }
    }

    fn load(&self, entity: &mut EntityWorldMut, version: u32, data: &[u8]) -> Result {
        match &self.load_older {
            _ if version == self.version => (self.load)(entity, data),
            Some(load_older) if version < self.version => load_older(entity, version, data),
            _ => Err(format!(
                "it has version {version}, and this build knows version {}",
                self.version
            )
            .into()),
        }
    }

    pub(crate) fn watch(&self, app: &mut App) {
        (self.watch)(app);
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn note_changes<C: Component>(
    changed: Query<Entity, (Changed<C>, Allow<Disabled>)>,
    mut noted: ResMut<Noted>,
) {
    noted.touched.extend(&changed);
}

fn note_removal<C: Component>(removed: On<Remove<C>>, mut noted: ResMut<Noted>) {
    noted.touched.insert(removed.entity);
}

/// Returns the declared components of entities.
pub(crate) fn save(
    world: &World,
    declared: &[Declared],
    entities: impl IntoIterator<Item = Entity>,
) -> Result<Vec<ComponentData>> {
    let mut saved = Vec::new();
    for entity in entities {
        let Ok(found) = world.get_entity(entity) else {
            continue;
        };
        for component in declared {
            if let Some(data) = (component.save)(found) {
                saved.push(ComponentData {
                    entity,
                    name: component.name.into(),
                    version: component.version,
                    data: data.map_err(|error| ComponentError::new(component.name, error))?,
                });
            }
        }
    }
    Ok(saved)
}

/// Inserts stored components. `entities` leads from the stored entities to those of this world.
pub(crate) fn load(
    world: &mut World,
    declared: &[Declared],
    stored: &[ComponentData],
    entities: &EntityHashMap<Entity>,
) -> Result {
    for ComponentData {
        entity,
        name,
        version,
        data,
    } in stored
    {
        let component = declared.iter().find(|it| it.name == name);
        let component = component.ok_or_else(|| ComponentError::Unknown(name.clone()))?;
        let Some(&entity) = entities.get(entity) else {
            continue;
        };
        component
            .load(&mut world.get_entity_mut(entity)?, *version, data)
            .map_err(|error| ComponentError::new(name, error))?;
    }
    Ok(())
}

/// Why a declared component can't be stored or loaded.
#[derive(Debug, Error)]
enum ComponentError {
    #[error("the component {0:?} can't be stored or loaded: {1}")]
    Data(String, BevyError),
    #[error(
        "no component is declared as {0:?}: declare it with `ZonePlugin::component`, in all zones"
    )]
    Unknown(String),
}

impl ComponentError {
    fn new(name: &str, error: impl Into<BevyError>) -> Self {
        Self::Data(name.into(), error.into())
    }
}
