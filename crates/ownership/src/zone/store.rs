//! The end of a frame: what has changed goes to the journal.

use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::sync::Arc;

use bevy_due::{
    ClockId, OnClock, Timer, message::MessageSender, moving::MoveWorldExt, rollback::TimerSnapshot,
    worlds::StableKey,
};
use bevy_ecs::prelude::*;

use super::{State, Zone, ZoneState, report};
use crate::{
    committer::{Frame, SubmitError, Submitter},
    components,
    crash_point::crash_point,
    error::JournalError,
    item::{Item, encode},
    journal::Record,
    noted::Held,
    outbox::Outbox,
    readings::Readings,
    shard::Shard,
    stored::{Body, Stored},
};

/// How long a world runs on while the disk is full. What it does meanwhile fills the memory.
const STALL_LIMIT: Duration = Duration::from_secs(10);

/// The way of a world to the journal.
pub(super) struct Storage {
    submitter: Submitter,
    /// The number of frames of this world.
    frames: u64,
    /// What the clocks of the zone showed when this world showed `start`.
    before: Readings,
    start: Readings,
    /// The readings that the journal has.
    stored: Readings,
    /// The timers as the last frame that was stored had them.
    pub(super) snapshot: Option<TimerSnapshot>,
    wake: Wake,
    pace: Pace,
}

/// Wakes a world that sleeps when the journal has room again.
#[derive(Clone)]
struct Wake {
    is_wanted: Arc<AtomicBool>,
    sender: MessageSender,
}

/// How often a world that sleeps looks after its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Unset,
    /// It tells the journal what its clocks show.
    Idle,
    /// It waits for others.
    Waiting,
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
            frames: 0,
            before,
            start,
            stored: Readings::default(),
            snapshot: None,
            wake: Wake {
                is_wanted: Arc::default(),
                sender,
            },
            pace: Pace::Unset,
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
        if !self.storage.submitter.has_room() {
            self.storage.wake.is_wanted.store(true, Ordering::Release);
            if !self.storage.submitter.has_room() {
                return self.check_journal();
            }
        }
        crash_point!("frame.begun");
        self.note_changes(world);
        self.take_notes(world);
        self.send_letters(world);
        self.let_leave(world);
        let records = self.records(world)?;
        crash_point!("frame.captured");
        self.tell(world)?;
        crash_point!("frame.told");
        self.keep_awake(world);
        self.submit(world, records)?;
        crash_point!("frame.submitted");
        Ok(())
    }

    /// Returns an error if the journal has stopped, or has had no space for too long.
    fn check_journal(&self) -> Result {
        let stall = self.shard.stall();
        let stall = stall.filter(|stall| stall.since.elapsed() >= STALL_LIMIT);
        let stopped = self.storage.submitter.error();
        let Some(error) = stopped.or(stall.map(|stall| stall.error)) else {
            return Ok(());
        };
        Err(BevyError::error(error))
    }

    fn send_letters(&mut self, world: &mut World) {
        for from in self.dirty.clone() {
            let Some(owned) = self.owned.get_mut(&from) else {
                continue;
            };
            for batch in owned.outbox.take_ready(from) {
                self.route(world, Item::Letters(batch));
                crash_point!("letters.queued");
            }
        }
    }

    /// Returns what the journal has to know of this frame.
    fn records(&mut self, world: &mut World) -> Result<Vec<Record>> {
        let mut records = self.streams.records()?;
        records.extend(self.waiting.records(self.me.zone)?);
        records.append(&mut self.ended);
        let readings = self.storage.readings(world);
        records.extend(self.entity_records(world, readings)?);
        if !records.is_empty() || self.storage.stored.is_old(&readings) {
            self.storage.stored = readings;
            let body = encode(&readings)?;
            let zone = self.me.zone;
            records.push(Record::World { zone, body });
        }
        Ok(records)
    }

    fn entity_records(&mut self, world: &mut World, readings: Readings) -> Result<Vec<Record>> {
        let mut dirty = core::mem::take(&mut self.dirty);
        // They are stored again in the next frame, when their mail has been delivered.
        self.dirty = core::mem::take(&mut self.with_mail);
        let mut records = Vec::new();
        let here = dirty.iter().filter_map(|key| {
            let entity = self.owned.get(key)?.entity()?;
            Some((*key, entity))
        });
        let here: Vec<_> = here.collect();
        let entities: Vec<_> = here.iter().map(|&(_, entity)| entity).collect();
        for (&(key, _), copy) in here.iter().zip(world.copy_entities(&entities)) {
            let body = copy.map_err(BevyError::from).and_then(|moved| {
                let components = components::save(world, &self.declared, moved.entities())?;
                Ok(Body { moved, components })
            });
            match body {
                Ok(body) => records.push(self.entity_record(key, Some(body), readings)?),
                Err(error) => self.refuse(world, key, error)?,
            }
            dirty.remove(&key);
        }
        for key in dirty {
            records.extend(self.last_record(key)?);
        }
        Ok(records)
    }

    fn entity_record(
        &mut self,
        key: StableKey,
        body: Option<Body>,
        readings: Readings,
    ) -> Result<Record> {
        let (epoch, outbox) = match self.owned.get_mut(&key) {
            Some(owned) => {
                owned.is_stored = true;
                (owned.epoch, owned.outbox.clone())
            }
            None => (0, Outbox::default()),
        };
        let stored = Stored {
            body,
            outbox,
            readings,
        };
        Ok(Record::Entity {
            key,
            epoch,
            zone: self.me.zone,
            body: encode(&stored)?,
        })
    }

    /// Returns the record of an entity that is not in the world.
    fn last_record(&mut self, key: StableKey) -> Result<Option<Record>> {
        let Some(owned) = self.owned.get(&key) else {
            return Ok(None);
        };
        let epoch = owned.epoch;
        match &owned.state {
            State::Here(_) => Ok(None),
            State::Parked(parked) => {
                let (body, readings) = (**parked).clone();
                self.entity_record(key, Some(body), readings).map(Some)
            }
            State::Gone if owned.outbox.is_empty() => {
                self.owned.remove(&key);
                Ok(Some(self.gone(key, epoch)))
            }
            State::Gone => self.entity_record(key, None, Readings::default()).map(Some),
        }
    }

    /// Reports an entity that can't be stored. If the journal has it already, the world ends: it would come
    /// back as it was before.
    fn refuse(&mut self, world: &mut World, key: StableKey, error: BevyError) -> Result {
        let Some(owned) = self.owned.get(&key) else {
            return Ok(());
        };
        let is_stored = owned.is_stored;
        let error = NotStored {
            key,
            error,
            is_stored,
        };
        if is_stored {
            return Err(BevyError::error(error));
        }
        report(world, error);
        let entity = self.disown(world, key).and_then(|owned| owned.entity());
        self.refused.extend(entity);
        Ok(())
    }

    /// Gives the frame to the journal, with what others will see of it.
    fn submit(&mut self, world: &mut World, records: Vec<Record>) -> Result {
        let on_the_way = self.on_the_way();
        world.resource_mut::<Zone>().on_the_way = on_the_way;
        let mut effects = world.resource::<Held>().take();
        if records.is_empty() && effects.is_empty() {
            return Ok(());
        }
        let wake = self.storage.wake.clone();
        effects.push(Box::new(move || wake.call()));
        let Err(error) = self.storage.submitter.submit(Frame { records, effects }) else {
            return Ok(());
        };
        let error = match error {
            SubmitError::Stopped(_, Some(error)) => error,
            SubmitError::Stopped(_, None) | SubmitError::Busy(_) => JournalError::Closed,
        };
        Err(BevyError::error(error))
    }

    fn on_the_way(&self) -> usize {
        let outboxes = self.owned.values().filter(|it| !it.outbox.is_empty());
        self.streams.len() + self.waiting.len() + self.departures.len() + outboxes.count()
    }

    /// Lets a world that sleeps look after its zone in time.
    fn keep_awake(&mut self, world: &mut World) {
        let is_waiting = self.streams.len() + self.waiting.len() + self.departures.len() > 0;
        let pace = match is_waiting {
            true => Pace::Waiting,
            false => Pace::Idle,
        };
        if self.storage.pace == pace {
            return;
        }
        self.storage.pace = pace;
        let timer = match pace {
            Pace::Waiting => Timer::every(0.25),
            Pace::Idle | Pace::Unset => Timer::every(1.0),
        };
        if let Ok(mut endpoint) = world.get_entity_mut(self.endpoint) {
            endpoint.insert((OnClock(ClockId::Real), timer));
        }
    }
}

/// An entity can't be stored.
#[derive(Debug)]
struct NotStored {
    key: StableKey,
    error: BevyError,
    is_stored: bool,
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, error, .. } = self;
        write!(
            f,
            "the entity with the stable key {} can't be stored: {error}",
            key.0
        )?;
        match self.is_stored {
            true => f.write_str(". The world ends, because the journal has an earlier state of it"),
            false => f.write_str(". It will not survive a crash, and can't move"),
        }
    }
}

impl core::error::Error for NotStored {}
