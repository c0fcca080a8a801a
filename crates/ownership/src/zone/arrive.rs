//! Entities that come into the zone.

use core::{fmt, time::Duration};

use bevy_due::{
    moving::{HeldMail, MoveWorldExt, TimePassed},
    worlds::StableKey,
};
use bevy_ecs::utils::prelude::DebugName;
use bevy_ecs::{entity::EntityHashMap, error::ErrorContext, prelude::*};

use super::{Owned, State, Zone, ZoneState, notify, open::Parked};
use crate::{
    components::{self, Declared},
    events::{Arrived, MoveFailed},
    item::{Item, MovedOut, decode},
    outbox::Outbox,
    stored::{Body, Stored},
    wire::Message,
};

/// The longest time on the way that clocks make up for.
const LONGEST_WAY: Duration = Duration::from_secs(60);

/// Loads stored entities into a world, where they are in transit. Each has been away for some time.
pub(super) fn bring_in(
    world: &mut World,
    declared: &[Declared],
    bodies: &[(&Body, TimePassed)],
) -> Vec<Result<Entity>> {
    let moved = bodies.iter().map(|&(body, passed)| (&body.moved, passed));
    let moved: Vec<_> = moved.collect();
    let mut entities = EntityHashMap::default();
    let imported = world.import_entities(&moved, &mut entities);
    let brought = bodies.iter().zip(imported).map(|((body, _), imported)| {
        let entity = imported?;
        if let Err(error) = components::load(world, declared, &body.components, &entities) {
            world.forget_entity(entity)?;
            return Err(error);
        }
        Ok(entity)
    });
    brought.collect()
}

/// Reports what nobody can handle here.
pub(crate) fn report(world: &World, error: impl Into<BevyError>) {
    let name = DebugName::type_name::<Zone>();
    let error = error
        .into()
        .with_severity(bevy_ecs::error::Severity::Warning);
    world.fallback_error_handler()(error, ErrorContext::Command { name });
}

impl ZoneState {
    /// Takes an entity that another zone has given to this one.
    pub(super) fn arrive(&mut self, world: &mut World, from: StableKey, moved: MovedOut) {
        let key = moved.key;
        let Stored { body, outbox, .. } = match decode(&moved.stored) {
            Ok(stored) => stored,
            Err(error) => return self.give_back(world, from, moved, error.to_string()),
        };
        let Some(body) = body else {
            return self.give_back(world, from, moved, "it has despawned".into());
        };
        if let Some(owned) = self.owned.get(&key) {
            if owned.epoch < moved.epoch {
                self.fence(world, key, moved.epoch);
            } else {
                let reason = format!("another entity of that zone has the stable key {}", key.0);
                return self.give_back(world, from, moved, reason);
            }
        }
        let passed = moved.waited.min(LONGEST_WAY).into();
        let brought = bring_in(world, &self.declared, &[(&body, passed)]).pop();
        match brought.unwrap_or(Err("the entity is empty".into())) {
            Ok(entity) => self.settle(world, (from, moved), entity, outbox),
            // It has come back to the zone that can't load it any more.
            Err(error) if moved.refused.is_some() => {
                self.park_arrival(world, moved, (body, outbox), error);
            }
            Err(error) => self.give_back(world, from, moved, error.to_string()),
        }
    }

    fn settle(
        &mut self,
        world: &mut World,
        (from, moved): (StableKey, MovedOut),
        entity: Entity,
        outbox: Outbox,
    ) {
        let MovedOut {
            key,
            epoch,
            late,
            refused,
            ..
        } = moved;
        self.own(world, key, entity, epoch, outbox);
        self.note_stored(key);
        if let Err(error) = self.welcome(world, key, entity, &late) {
            report(world, error);
        }
        if let Some(reason) = refused {
            let zone = from;
            notify(
                world,
                MoveFailed {
                    entity,
                    zone,
                    reason,
                },
            );
        }
    }

    /// Tells the game that an entity is here, and lets it act.
    pub(super) fn welcome(
        &mut self,
        world: &mut World,
        key: StableKey,
        entity: Entity,
        late: &HeldMail,
    ) -> Result {
        world.trigger(Arrived { entity, key });
        world.flush();
        self.with_mail.insert(key);
        if world.get_entity(entity).is_ok() {
            world.commit_entity(entity, late)?;
        }
        Ok(())
    }

    /// Gives an entity back to the zone that it came from.
    fn give_back(&mut self, world: &World, to: StableKey, moved: MovedOut, reason: String) {
        let moved = moved.returned(reason, self.storage.readings(world).real());
        self.routes.learn(moved.key, to, moved.epoch);
        self.streams.push(to, Item::Entity(moved));
    }

    fn park_arrival(
        &mut self,
        world: &mut World,
        moved: MovedOut,
        (body, outbox): (Body, Outbox),
        error: BevyError,
    ) {
        let MovedOut { key, epoch, .. } = moved;
        report(world, Parked { key, error });
        world.resource_mut::<Zone>().parked.insert(key);
        let readings = self.storage.readings(world);
        let owned = Owned {
            epoch,
            state: State::Parked(Box::new((body, readings))),
            outbox,
            is_stored: false,
        };
        self.owned.insert(key, owned);
        self.dirty.insert(key);
    }

    /// Takes back an entity from a zone whose journal is lost.
    pub(super) fn take_back(&mut self, world: &mut World, zone: StableKey, mut moved: MovedOut) {
        let now = self.storage.readings(world).real();
        moved.sent_at(now);
        let moved = moved.returned("the journal of the zone is lost".into(), now);
        let MovedOut { key, epoch, .. } = moved;
        self.routes.forget(key);
        self.arrive(world, zone, moved);
        let here = self.me.zone;
        self.to_tell
            .push((None, Message::At(vec![(key, here, epoch)])));
    }

    /// Drops an entity of which another zone has a later owner, without any event.
    pub(super) fn fence(&mut self, world: &mut World, key: StableKey, epoch: u64) {
        let Some(owned) = self.disown(world, key) else {
            return;
        };
        if let Some(entity) = owned.entity() {
            let is_forgotten =
                world.export_entity(entity).is_ok() && world.forget_entity(entity).is_ok();
            if !is_forgotten {
                world.try_despawn(entity).ok();
            }
        }
        self.ended.push(self.gone(key, owned.epoch));
        self.dirty.remove(&key);
        let known = owned.epoch;
        report(world, Fenced { key, known, epoch });
    }
}

/// Another zone has a later owner of an entity.
#[derive(Debug)]
struct Fenced {
    key: StableKey,
    known: u64,
    epoch: u64,
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, known, epoch } = self;
        write!(
            f,
            "the entity with the stable key {} was dropped here, because another zone is its owner number {epoch}, \
             and this one is number {known}",
            key.0
        )
    }
}

impl core::error::Error for Fenced {}
