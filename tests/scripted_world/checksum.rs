//! The checksum of a game, and the recorder that everything in the game reports to.

use core::time::Duration;
use std::sync::{Arc, Mutex, MutexGuard};

use bevy_due::{CancelReason, ClockId, TimerCancelled, TimerFired};
use bevy_ecs::{entity::EntityHashMap, prelude::*};

/// The 64-bit FNV-1a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(pub u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn add_number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }

    fn add_text(&mut self, text: &str) {
        self.add_number(text.len() as u64);
        self.add(text.as_bytes());
    }

    fn add_duration(&mut self, duration: Duration) {
        self.add_number(duration.as_secs());
        self.add_number(duration.subsec_nanos().into());
    }
}

/// The checksum of a game, and how much happened in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    pub checksum: Checksum,
    pub firings: u64,
    pub cancellations: u64,
    pub calls: u64,
    pub deliveries: u64,
}

/// Writes down what happens in a game, in order.
///
/// Entities are numbered in the order in which the recorder hears of them, because their ids depend
/// on everything else in the world.
#[derive(Resource, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Recording>>);

#[derive(Default)]
struct Recording {
    record: Record,
    /// The number of each entity.
    entities: EntityHashMap<u64>,
}

/// The kinds of events. Their numbers are part of the checksum.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Armed,
    Fired,
    OwnedFired,
    Cancelled,
    OwnedCancelled,
    LifetimeOver,
    Call,
    Delivery,
    FiredMessage,
    CancelledMessage,
    Stats,
    Frame,
}

impl Recorder {
    pub(super) fn fired(&self, kind: Kind, fired: &TimerFired) {
        let mut recording = self.lock();
        recording.record.firings += u64::from(matches!(kind, Kind::Fired));
        recording.begin(kind, fired.entity());
        recording.add_entity(fired.owner());
        recording.add_clock(fired.clock());
        recording.add_key(fired.key().as_deref());
        recording.sum().add_duration(fired.deadline());
        recording.sum().add_duration(fired.lateness());
        for number in [fired.missed(), fired.count(), fired.is_last().into()] {
            recording.sum().add_number(number);
        }
    }

    pub(super) fn cancelled(&self, kind: Kind, cancelled: &TimerCancelled) {
        let mut recording = self.lock();
        recording.record.cancellations += u64::from(matches!(kind, Kind::Cancelled));
        recording.begin(kind, cancelled.entity());
        recording.add_entity(cancelled.owner());
        recording.add_clock(cancelled.clock());
        recording.add_key(cancelled.key().as_deref());
        recording.sum().add_number(number_of(cancelled.reason()));
    }

    /// Writes down a callback of an entity, with its times and values.
    pub(super) fn call<const N: usize>(
        &self,
        kind: Kind,
        entity: Entity,
        times: [Duration; N],
        values: &[u64],
    ) {
        let mut recording = self.lock();
        recording.record.calls += u64::from(matches!(kind, Kind::Call));
        recording.record.deliveries += u64::from(matches!(kind, Kind::Delivery));
        recording.begin(kind, entity);
        for time in times {
            recording.sum().add_duration(time);
        }
        for &value in values {
            recording.sum().add_number(value);
        }
    }

    /// Returns the number of an entity.
    pub(super) fn number(&self, entity: Entity) -> u64 {
        self.lock().number(entity)
    }

    pub(super) fn end_frame(&self) {
        self.lock().sum().add_number(Kind::Frame as u64);
    }

    pub(super) fn finish(&self) -> Record {
        self.lock().record
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.0.lock().expect("nothing panics in this game")
    }
}

impl Recording {
    fn sum(&mut self) -> &mut Checksum {
        &mut self.record.checksum
    }

    fn begin(&mut self, kind: Kind, entity: Entity) {
        self.sum().add_number(kind as u64);
        self.add_entity(entity);
    }

    fn number(&mut self, entity: Entity) -> u64 {
        let next = self.entities.len() as u64;
        *self.entities.entry(entity).or_insert(next)
    }

    fn add_entity(&mut self, entity: Entity) {
        let number = self.number(entity);
        self.sum().add_number(number);
    }

    fn add_clock(&mut self, clock: ClockId) {
        match clock {
            ClockId::Own(entity) => self.add_entity(entity),
            built_in => self.sum().add_text(&built_in.to_string()),
        }
    }

    /// Adds a key without its path, which depends on the name of the program.
    fn add_key(&mut self, key: Option<&str>) {
        let key = key.unwrap_or_default();
        let name = key.rsplit("::").next().unwrap_or_default();
        self.sum().add_text(name);
    }
}

fn number_of(reason: CancelReason) -> u64 {
    match reason {
        CancelReason::Cancelled => 0,
        CancelReason::Removed => 1,
        CancelReason::Replaced => 2,
        CancelReason::Despawned => 3,
        CancelReason::OwnerGone => 4,
        CancelReason::ClockGone => 5,
        other => panic!("a new reason, {other:?}, needs a number"),
    }
}
