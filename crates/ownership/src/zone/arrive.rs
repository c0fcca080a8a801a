//! Entities that come into the zone.

use core::time::Duration;

use bevy_due::{
    moving::{MoveError, MoveWorldExt, PutError, TimePassed},
    worlds::StableKey,
};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

use super::{Entry, State, ZoneState, leave::JOURNAL_LOST, notify, open::cannot_load};
use crate::{
    events::{Arrived, MoveFailed},
    ids::Life,
    item::{Item, MovedOut, decode},
    journal::{Change, rows},
    outbox::Outbox,
    report::report,
    stored::{Body, Stored},
};

/// The longest time on the way that clocks make up for.
const LONGEST_WAY: Duration = Duration::from_secs(60);

/// Puts stored entities into a world. Each has been away for some time. Hands back what the world can't take.
pub(super) fn bring_in(
    world: &mut World,
    bodies: Vec<(Body, TimePassed)>,
) -> Vec<Result<Entity, (Body, MoveError)>> {
    let bodies = bodies.into_iter();
    let parts = bodies.map(|(Body { names, moved }, passed)| (names, (moved, passed)));
    let (names, moved): (Vec<_>, Vec<_>) = parts.unzip();
    let put = world.put_entities(moved, &mut EntityHashMap::default());
    let brought = names.into_iter().zip(put);
    let brought = brought.map(|(names, put)| {
        put.map_err(|PutError { moved, reason }| (Body { names, moved }, reason))
    });
    brought.collect()
}

impl ZoneState {
    /// Takes an entity that another zone has given to this one.
    pub(super) fn arrive(&mut self, world: &mut World, from: StableKey, moved: MovedOut) {
        let key = moved.life.key;
        let Stored { body, outbox, .. } = match decode(&moved.stored) {
            Ok(stored) => stored,
            Err(error) => return self.give_back(world, from, moved, error.to_string()),
        };
        let Some(body) = body else {
            return self.give_back(world, from, moved, "it has despawned".into());
        };
        if let Some(owned) = self.book.owned.get(&key) {
            let epoch = owned.epoch;
            if owned.life != moved.life {
                let reason = format!("another entity of that zone has the stable key {}", key.0);
                return self.give_back(world, from, moved, reason);
            }
            if epoch >= moved.epoch {
                // It has come from a copy of an old file. The sender hears where the entity is.
                self.tell_where(Some(from), self.here(moved.life, epoch));
                let known = moved.epoch;
                return report(world, fenced(key, known, epoch));
            }
            self.fence(world, moved.life, moved.epoch);
        }
        if let Some(later) = self.later_owner(&moved) {
            // It has come from a copy of an old file, too.
            let (known, epoch) = (moved.epoch, later.epoch);
            return report(world, fenced(key, known, epoch));
        }
        let passed = moved.waited.min(LONGEST_WAY).into();
        match bring_in(world, vec![(body, passed)]).pop() {
            None => {}
            Some(Ok(entity)) => self.settle(world, (from, moved), entity, outbox),
            // It has come back to the zone that can't load it any more.
            Some(Err((body, error))) if moved.refused.is_some() => {
                self.keep_unloadable(world, moved, (body, outbox), &error);
            }
            Some(Err((_, error))) => self.give_back(world, from, moved, error.to_string()),
        }
    }

    fn settle(
        &mut self,
        world: &mut World,
        (zone, moved): (StableKey, MovedOut),
        entity: Entity,
        outbox: Outbox,
    ) {
        let MovedOut { life, epoch, .. } = moved;
        let key = life.key;
        let entry = Entry::new(life, epoch, State::Here(entity));
        self.own(world, entry, outbox);
        self.welcome(world, key, entity);
        if let Some(reason) = moved.refused {
            let failed = MoveFailed {
                entity,
                zone,
                reason,
            };
            notify(world, failed);
        }
    }

    /// Tells the game that an entity is here.
    pub(super) fn welcome(&mut self, world: &mut World, key: StableKey, entity: Entity) {
        world.trigger(Arrived { entity, key });
        world.flush();
        self.book.with_mail.insert(key);
    }

    /// Gives an entity back to the zone that it came from.
    fn give_back(&mut self, world: &World, zone: StableKey, moved: MovedOut, reason: String) {
        if moved.refused.is_some() {
            // Neither zone can take it.
            let key = moved.life.key.0;
            let nobody = format!(
                "the entity with the stable key {key} bounces between two zones, because neither can take it: {reason}"
            );
            report(world, nobody);
        }
        let moved = moved.returned(reason, self.storage.readings(world).real());
        self.post.routes.learn(moved.location(zone));
        self.post.streams.push(zone, Item::Entity(moved));
    }

    fn keep_unloadable(
        &mut self,
        world: &mut World,
        MovedOut { life, epoch, .. }: MovedOut,
        (body, outbox): (Body, Outbox),
        error: &MoveError,
    ) {
        report(world, cannot_load(life.key, error));
        let readings = self.storage.readings(world);
        let state = State::Unloadable(Box::new((body, readings)));
        self.own(world, Entry::new(life, epoch, state), outbox);
    }

    /// Takes back an entity from a zone whose journal is lost.
    pub(super) fn take_back(&mut self, world: &mut World, zone: StableKey, mut moved: MovedOut) {
        let now = self.storage.readings(world).real();
        moved.sent_at(now);
        let moved = moved.returned(JOURNAL_LOST.into(), now);
        let (life, epoch) = (moved.life, moved.epoch);
        self.post.routes.forget(life);
        self.arrive(world, zone, moved);
        self.tell_where(None, self.here(life, epoch));
    }

    /// Drops an entity of which another zone has a later owner, without any event.
    pub(super) fn fence(&mut self, world: &mut World, life: Life, epoch: u64) {
        let key = life.key;
        let Some(owned) = self.disown(world, key) else {
            return;
        };
        if let Some(entity) = owned.entity()
            && world.take_entity(entity).is_err()
        {
            world.try_despawn(entity).ok();
        }
        let known = owned.epoch;
        self.post.outboxes.remove(life);
        self.end_life(life);
        report(world, fenced(key, known, epoch));
    }

    /// Ends the row of an entity that is no longer here.
    pub(super) fn end_life(&mut self, life: Life) {
        let zone = self.home.me.zone;
        self.book.dirty.remove(&life.key);
        let gone = Change::remove(rows::entity(zone, life));
        self.storage.ended.push(gone);
    }
}

/// Says that another zone has a later owner of an entity.
fn fenced(key: StableKey, known: u64, epoch: u64) -> String {
    format!(
        "a copy of the entity with the stable key {} was dropped here: it was that of owner number {known}, and there \
         is owner number {epoch}",
        key.0
    )
}
