//! Entities that leave the zone.

use core::time::Duration;

use bevy_due::{
    moving::{MoveError, MoveWorldExt, MovedEntity},
    worlds::StableKey,
};
use bevy_ecs::prelude::*;

use super::{Entry, ZoneState, claims::key_in_use, now};
use crate::{
    events::MoveFailed,
    ids::{Life, ZoneId},
    item::{Item, MovedOut, encode},
    owners::Owner,
};

/// How long an entity waits for an answer of the zone to which it goes.
const REACH_WITHIN: Duration = Duration::from_secs(2);

/// The number of entities that leave in a frame. Each visits all mail that waits in the world.
const LEAVE_AT_ONCE: usize = 256;

/// The largest entity that can move, in bytes. It is one parcel, and links carry about 1 MiB.
const MAX_MOVED_BYTES: usize = 768 << 10;

const NOT_DURABLE: &str =
    "it is not durable: it belongs to another entity with a stable key, or it could not be stored";

pub(super) const JOURNAL_LOST: &str = "the journal of the zone is lost";

const STORE_SILENT: &str = "the store of owners has not answered for two seconds";

/// An entity that is to leave.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) zone: StableKey,
    pub(super) since: Duration,
    pub(super) step: Step,
}

/// How far a departure is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// The zone has to answer.
    Reaching,
    /// The store has to agree to this owner.
    Asked(Owner),
    /// It has agreed.
    Agreed(Owner),
}

impl ZoneState {
    /// Adds the moves of this frame. A later one replaces an earlier one.
    pub(super) fn note_departures(&mut self, world: &World, moves: Vec<(Entity, StableKey)>) {
        let since = now(world);
        for (entity, zone) in moves {
            let before = self.departures.get(&entity);
            // Who asks again for the same move does not wait longer.
            if before.is_some_and(|it| it.zone == zone) {
                continue;
            }
            if let Some(Departure { step, .. }) = self.departures.remove(&entity)
                && let Step::Agreed(owner) = step
                && let Some(key) = self.book.key_of(world, entity)
            {
                self.claim_from(self.book.owned[&key].life, owner);
            }
            if zone != self.home.me.zone {
                let step = Step::Reaching;
                let departure = Departure { zone, since, step };
                self.departures.insert(entity, departure);
            }
        }
    }

    /// Lets the entities leave whose zone answers.
    pub(super) fn let_leave(&mut self, world: &mut World) {
        let mut left = 0;
        for (entity, departure) in core::mem::take(&mut self.departures) {
            let waits = match self.book.key_of(world, entity) {
                Some(_) if left == LEAVE_AT_ONCE => Some(departure),
                Some(key) => {
                    let waits = self.next_step(world, key, (entity, departure));
                    left += usize::from(waits.is_none());
                    waits
                }
                None => {
                    if world.get_entity(entity).is_ok() {
                        self.note_failed_move(entity, departure.zone, NOT_DURABLE.into());
                    }
                    None
                }
            };
            let waits = waits.map(|departure| (entity, departure));
            self.departures.extend(waits);
        }
    }

    /// Lets an entity leave, or returns its departure if it has to wait.
    fn next_step(
        &mut self,
        world: &mut World,
        key: StableKey,
        (entity, departure): (Entity, Departure),
    ) -> Option<Departure> {
        let Departure { zone, since, step } = departure;
        let now = now(world);
        let has_time = now.saturating_sub(since) < REACH_WITHIN;
        let Entry { life, epoch, .. } = *self.book.owned.get(&key)?;
        let is_next = |it: Owner| (it.birth, it.epoch) == (Some(life.birth), epoch + 1);
        let step = match step {
            // The entity has got another key since.
            Step::Asked(owner) | Step::Agreed(owner) if !is_next(owner) => Step::Reaching,
            step => step,
        };
        let is_near = step == Step::Reaching && self.is_near(zone, now);
        let reason = match step {
            Step::Agreed(owner) => {
                let met = self.meet(owner.zone);
                let left = met.and_then(|()| self.leave(world, key, entity, zone));
                let error = left.err()?;
                self.claim_from(life, owner);
                error.to_string()
            }
            _ if self.claims.is_in_conflict(life) => key_in_use(key),
            Step::Asked(_) if has_time => return Some(departure),
            Step::Asked(_) => STORE_SILENT.into(),
            Step::Reaching if is_near && !self.claims.asked.contains(&key) => {
                match self.ask_to_leave(world, key, zone) {
                    Some(owner) => {
                        let step = Step::Asked(owner);
                        return Some(Departure { step, ..departure });
                    }
                    None => self.leave(world, key, entity, zone).err()?.to_string(),
                }
            }
            Step::Reaching if has_time => return Some(departure),
            // The store has yet to answer for an earlier move.
            Step::Reaching if is_near => STORE_SILENT.into(),
            Step::Reaching => {
                self.post.streams.forget_stranger(zone);
                format!("zone {} has not answered for two seconds", zone.0)
            }
        };
        self.note_failed_move(entity, zone, reason);
        None
    }

    /// Returns `true` if a zone has answered within the last second, and its journal was not given up.
    fn is_near(&mut self, zone: StableKey, now: Duration) -> bool {
        let id = self.post.streams.id_of(zone);
        let is_lost = id.is_some_and(|id| self.lost.dead.contains(&id.journal));
        !is_lost && self.post.streams.is_near(zone, now)
    }

    /// Notes the journal of the zone that the store of owners has agreed to. Fails if the zone has another one, or its
    /// journal is lost.
    fn meet(&mut self, zone: ZoneId) -> Result {
        match self.lost.dead.contains(&zone.journal) {
            true => Err(JOURNAL_LOST.into()),
            false => Ok(self.post.streams.meet(zone)?),
        }
    }

    fn note_failed_move(&mut self, entity: Entity, zone: StableKey, reason: String) {
        self.post.fail(MoveFailed {
            entity,
            zone,
            reason,
        });
    }

    /// Tells entities what failed at the end of the last frame.
    pub(super) fn tell_failures(&mut self, world: &mut World) {
        for failure in core::mem::take(&mut self.post.failures) {
            failure(world);
        }
    }

    /// Encodes an entity that leaves.
    fn encode(&self, world: &World, life: Life, moved: MovedEntity) -> Result<Vec<u8>> {
        let readings = self.storage.readings(world);
        let stored = self.stored(life, Some(self.body(moved)), readings);
        let stored = encode(&stored)?;
        match stored.len() {
            bytes if bytes > MAX_MOVED_BYTES => Err(format!(
                "the entity has {bytes} bytes with its letters, more than {MAX_MOVED_BYTES}: let it own less"
            )
            .into()),
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
        let Some(owned) = self.book.owned.get(&key) else {
            return Err(NOT_DURABLE.into());
        };
        let (life, epoch) = (owned.life, owned.epoch);
        // An entity that can't be sent must keep its id.
        let copy = world.copy_entities(&[entity]).pop();
        let copy = copy.unwrap_or(Err(MoveError::NoSuchEntity(entity)))?;
        let stored = self.encode(world, life, copy)?;
        let _stored = world.take_entity(entity)?;
        self.disown(world, key);
        self.post.outboxes.remove(life);
        self.end_life(life);
        let moved = MovedOut {
            life,
            epoch: epoch + 1,
            stored,
            left: self.storage.readings(world).real(),
            waited: Duration::ZERO,
            refused: None,
        };
        self.post.routes.learn(moved.location(zone));
        self.post.streams.push(zone, Item::Entity(moved));
        Ok(())
    }
}
