//! Everything that a game restores: the timers, and what belongs to the game itself.

use bevy_due::{
    TimerFired,
    rollback::{RollbackWorldExt, TimerSnapshot},
};
use bevy_ecs::{entity::EntityHashMap, entity_disabling::Disabled, message::Messages, prelude::*};
use bevy_time::prelude::*;

use crate::saving::game::{Game, OwnerOf};

/// A moment of a game.
pub(crate) struct Checkpoint {
    seed: u64,
    timers: TimerSnapshot,
    times: (Time<Real>, Time<Virtual>, Time<Fixed>, Time),
    entities: Vec<Entity>,
    /// The entities that exist, whether they own timers, and whether they are disabled.
    alive: Vec<(Entity, bool, bool)>,
}

impl Checkpoint {
    pub(crate) fn of(game: &mut Game) -> Self {
        let timers = game.app.world_mut().snapshot_timers();
        let world = game.app.world();
        let alive = game.entities.iter().filter_map(|&entity| {
            let it = world.get_entity(entity).ok()?;
            Some((entity, it.contains::<OwnerOf>(), it.contains::<Disabled>()))
        });
        Self {
            seed: game.seed,
            timers,
            times: (
                *world.resource(),
                *world.resource(),
                *world.resource(),
                *world.resource(),
            ),
            entities: game.entities.clone(),
            alive: alive.collect(),
        }
    }

    /// Goes back to this moment. Half of the games restore their own state first.
    pub(crate) fn restore(&self, game: &mut Game, names: &mut EntityHashMap<Entity>) {
        game.seed = self.seed;
        if self.seed.is_multiple_of(2) {
            self.restore_times(game);
            game.app.world_mut().restore_timers(&self.timers, names);
        } else {
            game.app.world_mut().restore_timers(&self.timers, names);
            self.restore_times(game);
        }
        self.restore_entities(game, names);
        // The messages of the prediction are of no interest.
        let mut messages = game.app.world_mut().resource_mut::<Messages<TimerFired>>();
        messages.clear();
        game.fired = messages.get_cursor_current();
    }

    fn restore_times(&self, game: &mut Game) {
        let (real, virt, fixed, time) = self.times;
        game.app
            .insert_resource(real)
            .insert_resource(virt)
            .insert_resource(fixed)
            .insert_resource(time);
    }

    /// Restores the entities that have no timers, and what has nothing to do with timers.
    fn restore_entities(&self, game: &mut Game, names: &mut EntityHashMap<Entity>) {
        let world = game.app.world_mut();
        for &(entity, owns, is_disabled) in &self.alive {
            let mut now = entity;
            while world.get_entity(now).is_err() {
                now = match names.get(&now) {
                    Some(&next) => next,
                    None => {
                        let new = world.spawn_empty().id();
                        names.insert(now, new);
                        new
                    }
                };
            }
            if owns {
                world.entity_mut(now).insert(OwnerOf);
            }
            match is_disabled {
                true => world.entity_mut(now).insert_if_new(Disabled),
                false => world.entity_mut(now).remove::<Disabled>(),
            };
            if now != entity {
                names.insert(entity, now);
            }
        }
        let now = |entity: &Entity| match self.alive.iter().any(|(it, ..)| it == entity) {
            true => names.get(entity).copied().unwrap_or(*entity),
            false => Entity::PLACEHOLDER,
        };
        let entities: Vec<Entity> = self.entities.iter().map(now).collect();
        for &entity in &game.entities {
            if !entities.contains(&entity) {
                world.try_despawn(entity).ok();
            }
        }
        game.entities = entities;
    }
}
