//! Moving one entity out of the world, and back.

use core::time::Duration;

use bevy_due::{
    moving::{MoveError, MoveWorldExt, MovedEntity},
    prelude::*,
    save::SaveWorldExt,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{Following, Game, handlers};
use crate::{entry::Entry, op::Slot};

impl Game {
    /// The world plays both ends of the move. Mail that is not data stops it.
    pub(super) fn move_away_and_back(&mut self, slot: Slot, on_the_way: Duration) {
        let old = self.shared.cast().entity(slot);
        let world = self.app.world_mut();
        if world.get_entity(old).is_err() {
            return;
        }
        // Both ends are in this world. An owner outside would have its keys twice.
        let moving = world.save_entity(old).expect("all actions are data");
        let moving: Vec<Entity> = moving.entities().collect();
        for &id in &moving {
            let owner = world.get::<OwnedBy>(id).map(|owner| owner.0);
            if owner.is_some_and(|owner| !moving.contains(&owner)) {
                world.entity_mut(id).remove::<OwnedBy>();
            }
            // Children stay.
            world.entity_mut(id).remove::<Children>();
        }
        world.flush();
        let following: EntityHashMap<Following> = moving
            .iter()
            .filter(|&&id| world.get::<MessageComponent>(id).is_some())
            .map(|&id| (id, *world.get(id).expect("its topics are known")))
            .collect();
        let moved = match world.take_entity(old) {
            Ok(moved) => moved,
            Err(MoveError::Mail(_)) => return self.shared.log(Entry::Refused),
            Err(error) => panic!("{error}"),
        };
        let text = ron::to_string(&moved).expect("the entity can be serialized");
        let moved: MovedEntity = ron::from_str(&text).expect("the entity can be deserialized");
        let mut mine: Vec<Entity> = moved.entities().collect();
        let cast = self.shared.cast();
        mine.sort_unstable_by_key(|&entity| cast.id(entity));
        drop(cast);
        let cast = self.shared.cast().entities.clone();
        let others = cast
            .into_iter()
            .filter(|&entity| world.entities().contains_spawned(entity) && !mine.contains(&entity));
        let mut entities: EntityHashMap<Entity> = others.map(|entity| (entity, entity)).collect();
        let put = world.put_entity(moved, on_the_way, &mut entities);
        put.unwrap_or_else(|error| panic!("{error}: {text}"));
        for before in &mine {
            self.shared.cast().succeed(*before, entities[before]);
            if let Some(&following) = following.get(before) {
                let follower = handlers::follower(&self.shared, following.0);
                world
                    .entity_mut(entities[before])
                    .insert((follower, following));
            }
        }
        // A game does not roll back past a move.
        self.rollback.forget();
    }
}
