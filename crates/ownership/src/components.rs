//! The components of the game that are stored with their entities.

use core::{cmp::Ordering, fmt, marker::PhantomData};
use std::sync::Arc;

use bevy_app::prelude::*;
use bevy_ecs::{
    entity::EntityHashMap, entity_disabling::Disabled, observer::IntoObserver, prelude::*,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    changes::{Noted, StoreFrame},
    report::report,
    stored::ComponentData,
};

/// A component of the game that is stored.
#[derive(Clone)]
pub(crate) struct Declared {
    pub(crate) name: &'static str,
    version: u32,
    save: fn(EntityRef) -> Option<Result<Vec<u8>, postcard::Error>>,
    load: Arc<Load>,
    pub(crate) watch: fn(&mut App),
}

/// Shares its entity with the observer of the removals of `C`, so that a game does not despawn it.
#[derive(Resource)]
struct Watched<C: 'static>(PhantomData<fn(C)>);

/// Reads a component that this version or another one has stored, and inserts it into an entity, if there is one.
type Load = dyn Fn(Option<&mut EntityWorldMut>, u32, &[u8]) -> Result + Send + Sync;

impl Declared {
    /// Stores the component as this version, and reads older ones with a function.
    pub(crate) fn new<C: Component + Serialize + DeserializeOwned>(
        name: &'static str,
        version: u32,
        read_older: impl Fn(u32, &[u8]) -> Result<C> + Send + Sync + 'static,
    ) -> Self {
        let load = move |entity: Option<&mut EntityWorldMut>, stored: u32, data: &[u8]| {
            let component = match stored.cmp(&version) {
                Ordering::Equal => read(data)?,
                Ordering::Less => read_older(stored, data)?,
                Ordering::Greater => Err(format!(
                    "it has version {stored}, and this build knows version {version}"
                ))?,
            };
            if let Some(entity) = entity {
                entity.insert(component);
            }
            Ok(())
        };
        Self {
            name,
            version,
            save: |entity| entity.get::<C>().map(postcard::to_allocvec),
            load: Arc::new(load),
            watch: |app| {
                if !app.world().contains_resource::<Watched<C>>() {
                    app.add_systems(Last, note_changes::<C>.before(StoreFrame));
                    let observer = note_removal::<C>.into_observer();
                    app.world_mut().spawn((Watched::<C>(PhantomData), observer));
                }
            },
        }
    }
}

fn read<C: DeserializeOwned>(data: &[u8]) -> Result<C> {
    match postcard::take_from_bytes(data)? {
        (component, []) => Ok(component),
        (_, rest) => Err(format!("{} bytes are left", rest.len()).into()),
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
                    data: data.map_err(|error| failed(component.name, error))?,
                });
            }
        }
    }
    Ok(saved)
}

/// Returns an error if a stored component can't be loaded.
pub(crate) fn check(declared: &[Declared], stored: &[ComponentData]) -> Result {
    stored
        .iter()
        .try_for_each(|it| read_into(declared, it, None))
}

/// Inserts stored components that were checked. `entities` leads from the stored entities to those of this world.
pub(crate) fn load(
    world: &mut World,
    declared: &[Declared],
    stored: &[ComponentData],
    entities: &EntityHashMap<Entity>,
) {
    for data in stored {
        let entity = entities.get(&data.entity);
        // An observer of another component may have despawned it.
        if let Some(Ok(mut entity)) = entity.map(|&entity| world.get_entity_mut(entity))
            && let Err(error) = read_into(declared, data, Some(&mut entity))
        {
            report(world, error);
        }
    }
}

fn read_into(
    declared: &[Declared],
    ComponentData {
        name,
        version,
        data,
        ..
    }: &ComponentData,
    entity: Option<&mut EntityWorldMut>,
) -> Result {
    let component = declared.iter().find(|it| it.name == name);
    let component = component.ok_or_else(|| {
        format!("no component is declared as {name:?}: declare it with `ZonePlugin::component`, in all zones")
    })?;
    (component.load)(entity, *version, data).map_err(|error| failed(name, error))?;
    Ok(())
}

fn failed(name: &str, error: impl Into<BevyError>) -> String {
    let error = error.into();
    format!("the component {name:?} can't be stored or loaded: {error}")
}
