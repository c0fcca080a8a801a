//! Saving all timers, and going on in a new app.

use bevy_app::App;
use bevy_due::{
    message::MessageComponent,
    save::{SaveWorldExt, SavedTimers},
};
use bevy_ecs::{
    entity::{EntityHashMap, EntityHashSet},
    entity_disabling::Disabled,
    prelude::*,
};
use bevy_time::{Time, Virtual};

use super::{Cast, Condition, Following, Game, Held, Rollback, handlers, install, set_step};
use crate::entry::NOWHERE;

impl Game {
    /// The game restores its own components, its message components, and the pause of its time. Update
    /// callbacks and snapshots are lost.
    pub(super) fn reload(&mut self) {
        let old = self.app.world_mut();
        let saved = old.save_timers().expect("all actions are data");
        let text = ron::to_string(&saved).expect("the timers can be serialized");
        let saved: SavedTimers = ron::from_str(&text).expect("the timers can be deserialized");
        let mut app = self.rules.app();
        set_step(&mut app, self.rules);
        handlers::add_codecs(app.world_mut());
        let mut cast = self.shared.cast();
        let mut entities = spawn_others(&cast, old, &mut app, &saved);
        let loaded = app.world_mut().load_timers(&saved, &mut entities);
        loaded.unwrap_or_else(|error| panic!("{error}: {text}"));
        let new = app.world_mut();
        for (&from, &to) in &entities {
            if old.get::<Held>(from).is_some() {
                new.entity_mut(to).insert(Held);
            }
        }
        if old.resource::<Time<Virtual>>().is_paused() {
            new.resource_mut::<Time<Virtual>>().pause();
        }
        let Condition(condition) = *old.resource();
        let follows = cast.entities.iter().filter_map(|entity| {
            let follows = old.get::<MessageComponent>(*entity);
            let following = follows.and(old.get::<Following>(*entity))?;
            Some((*entities.get(entity)?, *following))
        });
        let follows: Vec<(Entity, Following)> = follows.collect();
        cast.follow(new, &entities);
        drop(cast);
        install(&mut app, &self.shared);
        app.insert_resource(Condition(condition));
        for (entity, Following(topics)) in follows {
            let component = handlers::follower(&self.shared, topics);
            let follower = (component, Following(topics));
            app.world_mut().entity_mut(entity).insert(follower);
        }
        self.shared.record().heard.clear();
        self.rollback = Rollback::default();
        self.app = app;
    }
}

/// Spawns the entities that have no timers, as a game that loads its own components does.
fn spawn_others(
    cast: &Cast,
    old: &World,
    app: &mut App,
    saved: &SavedTimers,
) -> EntityHashMap<Entity> {
    let saved: EntityHashSet = saved.entities().collect();
    let exists = |entity: &&Entity| old.entities().contains_spawned(**entity);
    let others = cast.entities.iter().filter(exists);
    let others = others.filter(|entity| !saved.contains(*entity));
    let spawn = |&entity| {
        let mut new = app.world_mut().spawn_empty();
        if old.get::<Disabled>(entity).is_some() {
            new.insert(Disabled);
        }
        (entity, new.id())
    };
    others.map(spawn).collect()
}

/// Returns an entity that does not exist.
fn gone(world: &mut World) -> Entity {
    let gone = world.spawn_empty().id();
    world.despawn(gone);
    gone
}

impl Cast {
    /// Follows the entities to another world. Those that do not exist have other names there.
    fn follow(&mut self, world: &mut World, entities: &EntityHashMap<Entity>) {
        self.nowhere = gone(world);
        for entity in &mut self.entities {
            let entity_there = entities.get(entity).copied();
            *entity = entity_there.unwrap_or_else(|| gone(world));
        }
        let requests = self.requests.iter();
        self.requests = requests
            .filter_map(|request| entities.get(request).copied())
            .collect();
        let ids = self.entities.iter().copied().zip(0..);
        let nowhere = [self.nowhere, Entity::PLACEHOLDER];
        self.ids = nowhere
            .map(|entity| (entity, NOWHERE))
            .into_iter()
            .chain(ids)
            .collect();
    }
}
