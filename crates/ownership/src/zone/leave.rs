//! Entities that leave the zone.

use core::{fmt, time::Duration};

use bevy_due::{
    moving::{HeldMail, MoveWorldExt, MovedEntity},
    worlds::StableKey,
};
use bevy_ecs::prelude::*;

use super::{Failure, ZoneState, notify, now};
use crate::{
    components,
    events::MoveFailed,
    item::{Item, MovedOut, encode},
    stored::{Body, Stored},
};

/// How long an entity waits for an answer of the zone to which it goes.
const REACH_WITHIN: Duration = Duration::from_secs(2);

/// The largest entity that can move, in bytes. It is one parcel, and links carry about 1 MiB.
const MAX_MOVED_BYTES: usize = 768 << 10;

const NOT_DURABLE: &str =
    "it is not durable: it belongs to another entity with a stable key, or it could not be stored";

const STORE_SILENT: &str = "the store of owners has not answered for two seconds";

/// An entity that is to leave.
pub(super) struct Departure {
    pub(super) entity: Entity,
    pub(super) zone: StableKey,
    since: Duration,
    pub(super) step: Step,
}

/// How far a departure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The zone has to answer.
    Reaching,
    /// The store of owners has to answer.
    Asked,
    /// It may leave.
    Decided,
}

impl Departure {
    pub(super) fn decided(entity: Entity, zone: StableKey) -> Self {
        Self {
            entity,
            zone,
            since: Duration::ZERO,
            step: Step::Decided,
        }
    }
}

impl ZoneState {
    /// Adds the moves of this frame. A later one replaces an earlier one.
    pub(super) fn note_departures(&mut self, world: &World, moves: Vec<(Entity, StableKey)>) {
        let since = now(world);
        for (entity, zone) in moves {
            // Who asks again for the same move does not wait longer.
            let is_other = |it: &Departure| {
                it.entity != entity || it.step != Step::Reaching || it.zone == zone
            };
            self.departures.retain(is_other);
            let is_leaving = self.departures.iter().any(|it| it.entity == entity);
            if zone != self.me.zone && !is_leaving {
                self.departures.push(Departure {
                    entity,
                    zone,
                    since,
                    step: Step::Reaching,
                });
            }
        }
    }

    /// Lets the entities leave whose zone answers.
    pub(super) fn let_leave(&mut self, world: &mut World) {
        for departure in core::mem::take(&mut self.departures) {
            let Departure { entity, zone, .. } = departure;
            if let Some(&key) = self.keys.get(&entity) {
                let waits = self.next_step(world, key, departure);
                self.departures.extend(waits);
            } else if world.get_entity(entity).is_ok() {
                self.note_failed_move(entity, zone, NOT_DURABLE.into());
            }
        }
    }

    /// Lets an entity leave, or returns its departure if it has to wait.
    fn next_step(
        &mut self,
        world: &mut World,
        key: StableKey,
        departure: Departure,
    ) -> Option<Departure> {
        let Departure {
            entity,
            zone,
            since,
            step,
        } = departure;
        let now = now(world);
        let has_time = now.saturating_sub(since) < REACH_WITHIN;
        // The question may be that of an earlier move, which has failed by now.
        let is_asked = step == Step::Asked || self.asked.contains(&key);
        match step {
            Step::Decided => {}
            _ if is_asked && has_time => return Some(departure),
            _ if is_asked => {
                self.note_failed_move(entity, zone, STORE_SILENT.into());
                return None;
            }
            _ if self.streams.is_near(zone, now) => {
                if let Some(step) = self.ask_to_leave(key, zone) {
                    return Some(Departure { step, ..departure });
                }
            }
            _ if has_time => return Some(departure),
            _ => {
                self.streams.forget_stranger(zone);
                self.note_failed_move(entity, zone, NoAnswer(zone).to_string());
                return None;
            }
        }
        if let Err(error) = self.leave(world, key, entity, zone) {
            if step == Step::Decided {
                self.claim_back(key, zone);
            }
            self.note_failed_move(entity, zone, error.to_string());
        }
        None
    }

    fn note_failed_move(&mut self, entity: Entity, zone: StableKey, reason: String) {
        self.failures.push(Failure::Move(MoveFailed {
            entity,
            zone,
            reason,
        }));
    }

    /// Tells entities what failed at the end of the last frame.
    pub(super) fn tell_failures(&mut self, world: &mut World) {
        for failure in core::mem::take(&mut self.failures) {
            match failure {
                Failure::Move(failed) => notify(world, failed),
                Failure::Mail(returned) => notify(world, returned),
            }
        }
    }

    /// Returns the stored form of an entity that leaves.
    fn stored(&self, world: &World, key: StableKey, moved: MovedEntity) -> Result<Vec<u8>> {
        let components = components::save(world, &self.declared, moved.entities())?;
        let outbox = self.owned.get(&key).map(|owned| owned.outbox.clone());
        let stored = encode(&Stored {
            body: Some(Body { moved, components }),
            outbox: outbox.unwrap_or_default(),
            readings: self.storage.readings(world),
        })?;
        match stored.len() {
            bytes if bytes > MAX_MOVED_BYTES => Err(TooLarge(bytes).into()),
            _ => Ok(stored),
        }
    }

    /// Takes an entity out of the world, and puts it into the stream to a zone.
    fn leave(
        &mut self,
        world: &mut World,
        key: StableKey,
        entity: Entity,
        zone: StableKey,
    ) -> Result {
        let epoch = self.owned.get(&key).map_or(0, |owned| owned.epoch);
        let moved = world.export_entity(entity)?;
        let stored = match self.stored(world, key, moved) {
            Ok(stored) => stored,
            Err(error) => {
                world.commit_entity(entity, &HeldMail::default())?;
                return Err(error);
            }
        };
        let late = world.forget_entity(entity)?;
        self.disown(world, key);
        self.dirty.remove(&key);
        self.ended.push(self.gone(key, epoch));
        self.routes.learn(key, zone, epoch + 1);
        let moved = MovedOut {
            key,
            epoch: epoch + 1,
            stored,
            late,
            left: self.storage.readings(world).real(),
            waited: Duration::ZERO,
            refused: None,
        };
        self.streams.push(zone, Item::Entity(moved));
        Ok(())
    }
}

/// An entity is too large to move.
#[derive(Debug)]
struct TooLarge(usize);

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the entity has {} bytes with its letters, more than {MAX_MOVED_BYTES}: let it own less",
            self.0
        )
    }
}

impl core::error::Error for TooLarge {}

/// A zone does not answer.
struct NoAnswer(StableKey);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zone {} has not answered for two seconds", self.0.0)
    }
}
