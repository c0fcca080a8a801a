//! Saving one entity, and loading it again.

use bevy_due::save::{SaveWorldExt, SavedTimers};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{Cast, Game};
use crate::op::Slot;

impl Game {
    /// An entity despawns with everything that depends on it, and is loaded again. If others despawn
    /// with it, for instance timers on its clock, it is not loaded: they may be named in the data.
    pub(super) fn revive(&mut self, slot: Slot) {
        let world = self.app.world_mut();
        let mut cast = self.shared.cast();
        let entity = cast.entity(slot);
        if !world.entities().contains_spawned(entity) {
            return;
        }
        let saved = world.save_entity(entity).expect("all actions are data");
        let text = ron::to_string(&saved).expect("the timers can be serialized");
        let saved: SavedTimers = ron::from_str(&text).expect("the timers can be deserialized");
        let mut mine: Vec<Entity> = saved.entities().collect();
        let others = cast
            .entities
            .iter()
            .filter(|&entity| world.entities().contains_spawned(*entity) && !mine.contains(entity));
        let mut entities: EntityHashMap<Entity> = others.map(|&entity| (entity, entity)).collect();
        drop(cast);
        world.despawn(entity);
        world.flush();
        let is_left = |entity: &Entity| world.entities().contains_spawned(*entity);
        if !entities.keys().all(is_left) {
            return;
        }
        let loaded = world.load_timers(&saved, &mut entities);
        loaded.unwrap_or_else(|error| panic!("{error}: {text}"));
        cast = self.shared.cast();
        mine.sort_unstable_by_key(|&entity| cast.id(entity));
        for before in mine {
            cast.succeed(before, entities[&before]);
        }
    }
}

impl Cast {
    /// Puts a new entity into the place of another.
    pub(super) fn succeed(&mut self, before: Entity, new: Entity) {
        let (id, name) = (self.id(before), self.name(new));
        self.slots = self.slots.map(|slot| match slot {
            Some(of) if of == id => Some(name),
            other => other,
        });
        if self.requests.contains(&before) {
            self.requests.push(new);
        }
    }
}
