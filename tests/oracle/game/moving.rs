//! Moving one entity out of the world, and back.

use core::time::Duration;

use bevy_due::{
    moving::{HeldMail, InTransit, MoveError, MoveWorldExt, MovedEntity},
    prelude::*,
    save::SaveWorldExt,
};
use bevy_ecs::{entity::EntityHashMap, entity_disabling::Disabled, prelude::*};

use super::{Following, Game, handlers};
use crate::{entry::Entry, op::Slot};

impl Game {
    /// One entity moves at a time.
    pub(super) fn export(&mut self, slot: Slot) {
        let entity = self.shared.cast().entity(slot);
        let is_moving = self.moving().is_some();
        let world = self.app.world_mut();
        if is_moving || world.get_entity(entity).is_err() {
            return;
        }
        match world.export_entity(entity) {
            Ok(_) => self.rollback.forget(),
            Err(MoveError::Mail(_)) => self.shared.log(Entry::Refused),
            Err(error) => panic!("{error}"),
        }
    }

    /// The other world has refused the entity.
    pub(super) fn stay(&mut self) {
        let Some(root) = self.moving() else { return };
        let world = self.app.world_mut();
        if let Err(error) = world.commit_entity(root, &HeldMail::default()) {
            assert_eq!(error, MoveError::NotInTransit(root));
            self.shared.log(Entry::Refused);
        }
    }

    /// Returns the entity that moves, if any. It may have despawned.
    pub(super) fn moving(&mut self) -> Option<Entity> {
        let world = self.app.world_mut();
        let mut moving = world.query_filtered::<&InTransit, Allow<Disabled>>();
        moving.iter(world).next().map(InTransit::root)
    }

    /// The world plays both ends of the move, one after the other. Mail that is not data stops it.
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
        }
        world.flush();
        let moved = match world.export_entity(old) {
            Ok(moved) => moved,
            Err(MoveError::Mail(_) | MoveError::InTransit(_)) => {
                return self.shared.log(Entry::Refused);
            }
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
        let imported = world.import_entity(&moved, on_the_way, &mut entities);
        let new = imported.unwrap_or_else(|error| panic!("{error}: {text}"));
        for before in &mine {
            self.shared.cast().succeed(*before, entities[before]);
            if world.get::<MessageComponent>(*before).is_some() {
                let following = *world
                    .get::<Following>(*before)
                    .expect("its topics are known");
                let follower = handlers::follower(&self.shared, following.0);
                world
                    .entity_mut(entities[before])
                    .insert((follower, following));
            }
        }
        let late = world.forget_entity(old).expect("it is in transit");
        let late = ron::to_string(&late).expect("the mail can be serialized");
        let late: HeldMail = ron::from_str(&late).expect("the mail can be deserialized");
        world.commit_entity(new, &late).expect("it is in transit");
        // A game does not roll back past a move.
        self.rollback.forget();
    }
}
