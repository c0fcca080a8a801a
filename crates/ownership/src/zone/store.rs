//! The end of a frame: what has changed goes to the journal.

use core::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{sync::Arc, time::Instant};

use bevy_due::{
    ClockId, DespawnAfter, OnClock,
    message::MessageSender,
    moving::{MoveWorldExt, MovedEntity},
    rollback::ChangeMark,
    worlds::StableKey,
};
use bevy_ecs::prelude::*;

use super::{State, Zone, ZoneState};
use crate::{
    changes::Outgoing,
    committer::{Stall, Submitter},
    error::JournalError,
    ids::{Life, Recipient},
    item::{Item, encode},
    journal::{Change, rows},
    report::report,
    shard::Shard,
    stored::{Body, Stored},
    zone_clock::Readings,
};

/// How long a world runs on while the disk is behind, and the bytes that it may send meanwhile. Then it waits.
const RUN_ON: Duration = Duration::from_secs(1);
const RUN_ON_BYTES: usize = 16 << 20;

/// How long a world waits for the disk. Then it ends.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// The way of a world to the journal.
pub(super) struct Storage {
    submitter: Submitter,
    /// Since when frames of this world could not be submitted.
    behind_since: Option<Instant>,
    /// The number of frames of this world.
    frames: u64,
    /// What the clocks of the zone showed when this world showed `start`.
    before: Readings,
    start: Readings,
    /// The readings that the journal has.
    stored: Readings,
    /// What has ended in this frame.
    pub(super) ended: Vec<Change>,
    /// When the last frame was stored.
    pub(super) mark: Option<ChangeMark>,
    wake: Wake,
    /// An entity that despawns when the world has to look after the zone, and after which time it does.
    awake: Option<(Entity, Duration)>,
}

/// Wakes a world that sleeps when the journal has room again.
#[derive(Clone)]
struct Wake {
    is_wanted: Arc<AtomicBool>,
    sender: MessageSender,
}

impl Storage {
    pub(super) fn new(
        shard: &Shard,
        sender: MessageSender,
        start: Readings,
        before: Readings,
    ) -> Self {
        Self {
            submitter: shard.submitter(),
            behind_since: None,
            frames: 0,
            before,
            start,
            stored: Readings::default(),
            ended: Vec::new(),
            mark: None,
            wake: Wake {
                is_wanted: Arc::default(),
                sender,
            },
            awake: None,
        }
    }

    /// Returns what the clocks of the zone show.
    pub(super) fn readings(&self, world: &World) -> Readings {
        let now = Readings::of(world, self.frames);
        self.before.advanced(self.start, now)
    }
}

impl Wake {
    fn call(&self) {
        if self.is_wanted.swap(false, Ordering::AcqRel) {
            self.sender.run(|_| {}).ok();
        }
    }
}

impl ZoneState {
    /// Stores what has changed since the last frame that was stored, unless the journal is behind.
    ///
    /// # Errors
    ///
    /// Returns an error if the world must end.
    pub(crate) fn store(&mut self, world: &mut World) -> Result {
        self.storage.frames += 1;
        self.report_panics(world);
        if !self.storage.submitter.has_room() {
            self.storage.wake.is_wanted.store(true, Ordering::Release);
            if !self.storage.submitter.has_room() && !self.wait_for_disk(world)? {
                return Ok(());
            }
        }
        self.storage.behind_since = None;
        self.note_changes(world);
        self.take_notes(world);
        self.note_mail(world);
        self.send_letters(world);
        self.let_leave(world);
        let changes = self.changes(world)?;
        self.tell(world)?;
        self.keep_awake(world);
        self.submit(world, changes)?;
        Ok(())
    }

    /// Waits for the disk if it is far behind, so that nothing that this world takes fills the memory. Returns
    /// `true` if there is room.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal has stopped, or the disk is behind for too long.
    fn wait_for_disk(&mut self, world: &World) -> Result<bool> {
        let Storage {
            submitter,
            behind_since,
            ..
        } = &mut self.storage;
        if let Some(error) = submitter.error() {
            return Err(BevyError::error(error));
        }
        let behind = behind_since.get_or_insert_with(Instant::now).elapsed();
        if behind < RUN_ON && world.resource::<Outgoing>().bytes() < RUN_ON_BYTES {
            return Ok(false);
        }
        let stall = self.home.shard.stall().and_then(|stall| stall.error);
        let why = stall.map_or_else(String::new, |error| format!(". {error}"));
        let slow = format!(
            "the disk is too slow for what this zone does: the zone waits, and ends after ten seconds{why}"
        );
        report(world, slow);
        let left = STALL_LIMIT.saturating_sub(behind);
        match submitter.wait_for_room(left).map_err(BevyError::error)? {
            None => Ok(submitter.has_room()),
            Some(Stall { since, error }) => {
                let error = error.unwrap_or(JournalError::Hangs { since });
                Err(BevyError::error(error))
            }
        }
    }

    /// Reports the calls after commits that have panicked.
    fn report_panics(&self, world: &World) {
        for _ in 0..self.storage.submitter.take_panics() {
            let panicked = "a call of `after_commit` panicked: see the message of the panic. All others were made";
            report(world, panicked);
        }
    }

    fn send_letters(&mut self, world: &mut World) {
        let ready = self.post.outboxes.take_ready();
        for batch in ready {
            self.route(world, Item::Letters(batch));
        }
    }

    /// Returns what the journal has to know of this frame.
    fn changes(&mut self, world: &mut World) -> Result<Vec<Change>> {
        let zone = self.home.me.zone;
        // What begins again in this frame comes later.
        let mut changes = core::mem::take(&mut self.storage.ended);
        changes.extend(self.post.streams.changes()?);
        changes.extend(self.post.unrouted.changes(zone)?);
        for life in self.post.outboxes.take_changed() {
            match self.owned(Recipient::Life(life)) {
                Some(_) => _ = self.book.dirty.insert(life.key),
                None => changes.push(self.last_letters(life)?),
            }
        }
        let readings = self.storage.readings(world);
        changes.extend(self.changed_entities(world, readings)?);
        if !changes.is_empty() || self.storage.stored.is_old(&readings) {
            self.storage.stored = readings;
            changes.push(Change::Put(rows::readings(zone), encode(&readings)?));
        }
        Ok(changes)
    }

    /// Returns the row of an entity that has despawned. It ends when all its letters are delivered, and the store of
    /// owners has heard of its end.
    fn last_letters(&self, life: Life) -> Result<Change> {
        let place = rows::entity(self.home.me.zone, life);
        let released = self.claims.released.get(&life).copied();
        if !self.post.outboxes.contains(life) && released.is_none() {
            return Ok(Change::remove(place));
        }
        let stored = self.stored(life, None, Readings::default());
        let epoch = released.unwrap_or(0);
        Ok(Change::Put(place, encode(&(epoch, stored))?))
    }

    fn changed_entities(&mut self, world: &mut World, readings: Readings) -> Result<Vec<Change>> {
        let mut dirty = core::mem::take(&mut self.book.dirty);
        // They are stored again in the next frame, when their mail has been delivered.
        self.book.dirty = core::mem::take(&mut self.book.with_mail);
        let mut changes = Vec::new();
        let here = dirty
            .iter()
            .filter_map(|key| Some((*key, self.book.entity(*key)?)));
        let here: Vec<_> = here.collect();
        let entities: Vec<_> = here.iter().map(|&(_, entity)| entity).collect();
        for (&(key, _), copy) in here.iter().zip(world.copy_entities(&entities)) {
            let body = copy.map_err(BevyError::from).map(|moved| {
                for letter in moved.left_out() {
                    report(world, letter.clone());
                }
                self.body(moved)
            });
            match body {
                Ok(body) => changes.extend(self.row(key, body, readings)?),
                Err(error) => self.refuse(world, key, error)?,
            }
            dirty.remove(&key);
        }
        for key in dirty {
            let state = self.book.owned.get(&key).map(|owned| &owned.state);
            if let Some(State::Unloadable(unloadable)) = state {
                let (body, readings) = (**unloadable).clone();
                changes.extend(self.row(key, body, readings)?);
            }
        }
        Ok(changes)
    }

    fn row(&mut self, key: StableKey, body: Body, readings: Readings) -> Result<Option<Change>> {
        let Some(entry) = self.book.owned.get_mut(&key) else {
            return Ok(None);
        };
        entry.is_stored = true;
        let (life, epoch) = (entry.life, entry.epoch);
        let stored = self.stored(life, Some(body), readings);
        let place = rows::entity(self.home.me.zone, life);
        Ok(Some(Change::Put(place, encode(&(epoch, stored))?)))
    }

    /// Returns what an entity of this world has.
    pub(super) fn body(&self, moved: MovedEntity) -> Body {
        Body {
            names: self.home.names,
            moved,
        }
    }

    /// Returns the stored form of an entity, with its outbox.
    pub(super) fn stored(&self, life: Life, body: Option<Body>, readings: Readings) -> Stored {
        Stored {
            body,
            outbox: self.post.outboxes.copy(life),
            readings,
        }
    }

    /// Reports an entity that can't be stored. If the journal has it already, the world ends: it would come
    /// back as it was before.
    fn refuse(&mut self, world: &mut World, key: StableKey, error: BevyError) -> Result {
        let Some(owned) = self.book.owned.get(&key) else {
            return Ok(());
        };
        let is_stored = owned.is_stored;
        let so = match is_stored {
            true => "The world ends, because the journal has an earlier state of it",
            false => "It will not survive a crash, and can't move",
        };
        let error = format!(
            "the entity with the stable key {} can't be stored: {error}. {so}",
            key.0
        );
        if is_stored {
            return Err(BevyError::error(error));
        }
        report(world, error);
        if let Some(owned) = self.disown(world, key) {
            self.post.outboxes.touch(owned.life);
            self.book.refused.extend(owned.entity());
        }
        Ok(())
    }

    /// Gives the frame to the journal, with what others will see of it.
    fn submit(&mut self, world: &mut World, changes: Vec<Change>) -> Result {
        let on_the_way = self.on_the_way();
        world.resource_mut::<Zone>().on_the_way = on_the_way;
        let mut effects = world.resource::<Outgoing>().take();
        effects.extend(self.tell_store());
        if changes.is_empty() && effects.is_empty() {
            return Ok(());
        }
        let wake = self.storage.wake.clone();
        effects.push(Box::new(move || wake.call()));
        let submitted = self.storage.submitter.submit(changes, effects);
        submitted.map_err(BevyError::error)
    }

    pub(super) fn on_the_way(&self) -> usize {
        self.leaves_or_waits() + self.post.outboxes.len()
    }

    /// Returns the number of things that the zone has to look after.
    fn leaves_or_waits(&self) -> usize {
        let items = self.post.streams.len() + self.post.unrouted.len();
        items + self.departures.len() + self.claims.conflicts() + self.post.failures.len()
    }

    /// Lets a world that sleeps look after its zone in time: when something is on its way, or when its clocks are to be
    /// stored. A timer would call the observers of the game.
    fn keep_awake(&mut self, world: &mut World) {
        let pace = match self.leaves_or_waits() > 0 {
            true => Duration::from_millis(250),
            false => Duration::from_secs(1),
        };
        if let Some((entity, before)) = self.storage.awake
            && let Ok(entity) = world.get_entity_mut(entity)
        {
            if before == pace {
                return;
            }
            entity.despawn();
        }
        let lifetime = (OnClock(ClockId::Real), DespawnAfter::new(pace));
        self.storage.awake = Some((world.spawn(lifetime).id(), pace));
    }
}
