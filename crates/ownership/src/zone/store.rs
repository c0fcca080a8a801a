//! The end of a frame: what has changed goes to the journal.

use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{sync::Arc, time::Instant};

use bevy_due::{
    ClockId, OnClock, Timer, message::MessageSender, moving::MoveWorldExt, rollback::TimerSnapshot,
    worlds::StableKey,
};
use bevy_ecs::prelude::*;

use super::{State, Zone, ZoneState, report};
use crate::{
    committer::{Frame, Stall, Submitter},
    components,
    error::JournalError,
    item::{Item, encode},
    journal::Record,
    noted::Outgoing,
    outbox::Outbox,
    readings::Readings,
    shard::Shard,
    stored::{Body, Stored},
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
            behind_since: None,
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
        self.send_letters(world);
        self.let_leave(world);
        let records = self.records(world)?;
        self.tell(world)?;
        self.keep_awake(world);
        self.submit(world, records)?;
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
        report(world, Behind(self.shard.stall()));
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
            report(world, EffectPanicked);
        }
    }

    fn send_letters(&mut self, world: &mut World) {
        for from in self.dirty.clone() {
            let Some(owned) = self.owned.get_mut(&from) else {
                continue;
            };
            for batch in owned.outbox.take_ready(from) {
                self.route(world, Item::Letters(batch));
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
                for letter in moved.left_out() {
                    report(world, letter.clone());
                }
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
        let mut effects = world.resource::<Outgoing>().take();
        if records.is_empty() && effects.is_empty() {
            return Ok(());
        }
        let wake = self.storage.wake.clone();
        effects.push(Box::new(move || wake.call()));
        let submitted = self.storage.submitter.submit(Frame { records, effects });
        submitted.map_err(BevyError::error)
    }

    fn on_the_way(&self) -> usize {
        let outboxes = self.owned.values().filter(|it| !it.outbox.is_empty());
        let on_the_way = self.streams.len() + self.waiting.len() + self.departures.len();
        on_the_way + self.failures.len() + outboxes.count()
    }

    /// Lets a world that sleeps look after its zone in time.
    fn keep_awake(&mut self, world: &mut World) {
        let on_the_way = self.streams.len() + self.waiting.len() + self.departures.len();
        let is_waiting = on_the_way + self.failures.len() > 0;
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

/// The disk is behind, and the world waits for it.
#[derive(Debug)]
struct Behind(Option<Stall>);

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is too slow for what this zone does: the zone waits, and ends after ten seconds")?;
        match &self.0 {
            Some(Stall {
                error: Some(error), ..
            }) => write!(f, ". {error}"),
            _ => Ok(()),
        }
    }
}

impl core::error::Error for Behind {}

/// A call after a commit has panicked.
#[derive(Debug)]
struct EffectPanicked;

impl fmt::Display for EffectPanicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a call of `after_commit` panicked: see the message of the panic. All others were made",
        )
    }
}

impl core::error::Error for EffectPanicked {}

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
