//! Snapshots, and going back to them.

use core::iter;
use std::collections::VecDeque;

use bevy_due::rollback::{RollbackWorldExt, TimerSnapshot};
use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{Cast, Game};
use crate::{
    entry::Id,
    op::{SLOTS, SNAPSHOTS},
};

#[derive(Default)]
pub(super) struct Rollback {
    /// The last snapshots, the newest first.
    moments: VecDeque<Moment>,
    /// The entity that took the place of each one that was spawned again.
    successors: EntityHashMap<Entity>,
}

impl Rollback {
    /// Drops all snapshots.
    pub(super) fn forget(&mut self) {
        self.moments.clear();
    }
}

/// Everything that the game restores.
struct Moment {
    timers: TimerSnapshot,
    times: (Time<Real>, Time<Virtual>, Time<Fixed>, Time),
    alive: Vec<Id>,
    slots: [Option<Id>; SLOTS],
}

impl Game {
    pub(super) fn snapshot(&mut self) {
        let world = self.app.world_mut();
        let timers = world.snapshot_timers();
        let cast = self.shared.cast();
        let exists = |&id: &Id| world.entities().contains_spawned(cast.entities[id]);
        let moment = Moment {
            timers,
            times: (
                *world.resource(),
                *world.resource(),
                *world.resource(),
                *world.resource(),
            ),
            alive: (0..cast.entities.len()).filter(exists).collect(),
            slots: cast.slots,
        };
        self.rollback.moments.push_front(moment);
        self.rollback.moments.truncate(SNAPSHOTS);
    }

    pub(super) fn restore(&mut self, nth: usize) {
        let Rollback {
            moments,
            successors,
        } = &mut self.rollback;
        let Some(moment) = moments.get(nth) else {
            return;
        };
        let world = self.app.world_mut();
        world.restore_timers(&moment.timers, successors);
        let (real, game, fixed, time) = moment.times;
        world.insert_resource(real);
        world.insert_resource(game);
        world.insert_resource(fixed);
        world.insert_resource(time);
        let mut cast = self.shared.cast();
        let mut kept = Vec::new();
        for &id in &moment.alive {
            let entity = cast.entities[id];
            let latest = latest(world, successors, entity).unwrap_or_else(|| {
                let new = world.spawn_empty().id();
                let last = last_name(successors, entity);
                successors.insert(last, new);
                new
            });
            if latest != entity && cast.requests.contains(&entity) {
                cast.requests.push(latest);
            }
            kept.push(cast.id_or_name(latest));
        }
        for (id, &entity) in cast.entities.iter().enumerate() {
            if !kept.contains(&id)
                && let Ok(mut entity) = world.get_entity_mut(entity)
            {
                // Its children may be older.
                entity.remove::<Children>();
                entity.despawn();
            }
        }
        let slots = moment.slots.map(|id| {
            let entity = cast.entities[id?];
            Some(cast.id(latest(world, successors, entity).unwrap_or(entity)))
        });
        cast.slots = slots;
    }
}

/// Returns the last name of an entity that was spawned again, or its own.
fn last_name(successors: &EntityHashMap<Entity>, entity: Entity) -> Entity {
    let next = |entity: &Entity| successors.get(entity).copied();
    iter::successors(Some(entity), next)
        .last()
        .unwrap_or(entity)
}

/// Returns an entity, or the last one that took its place, if it exists.
fn latest(world: &World, successors: &EntityHashMap<Entity>, entity: Entity) -> Option<Entity> {
    let mut latest = entity;
    while !world.entities().contains_spawned(latest) {
        latest = *successors.get(&latest)?;
    }
    Some(latest)
}

impl Cast {
    fn id_or_name(&mut self, entity: Entity) -> Id {
        match self.ids.get(&entity) {
            Some(&id) => id,
            None => self.name(entity),
        }
    }
}
