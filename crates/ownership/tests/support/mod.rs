//! What the tests of journals share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod random;

use bevy_due::worlds::StableKey;
use bevy_due_ownership::{
    Journal, JournalError, JournalId, JournalOptions, Place, Record, SimulatedDisk, Sync,
};

/// Small files, so that a few batches fill them.
pub(crate) fn small(segment_bytes: u64) -> JournalOptions {
    JournalOptions {
        sync: Sync::EachBatch,
        segment_bytes,
        spare_bytes: 2 * segment_bytes,
    }
}

pub(crate) fn open(
    disk: &SimulatedDisk,
    options: &JournalOptions,
) -> Result<Journal, JournalError> {
    Journal::open_on(Box::new(disk.clone()), options.clone())
}

/// All live records but `Boot`, in a fixed order.
pub(crate) fn live(journal: &mut Journal) -> Result<Vec<Record>, JournalError> {
    let mut live = Vec::new();
    journal.visit_live(|record| live.push(record))?;
    live.retain(|record| !matches!(record, Record::Boot { .. }));
    live.sort();
    Ok(live)
}

/// Opens a copy of the disk, and returns its live records.
pub(crate) fn recover(
    disk: &SimulatedDisk,
    options: &JournalOptions,
) -> Result<Vec<Record>, JournalError> {
    live(&mut open(&disk.after_kill(), options)?)
}

/// Returns `true` if a sync has failed.
pub(crate) fn is_of_sync(error: &JournalError) -> bool {
    matches!(
        error,
        JournalError::Io {
            operation: "sync",
            ..
        }
    )
}

pub(crate) fn entity(key: u64, body: &[u8]) -> Record {
    Record::Entity {
        key: StableKey(key),
        epoch: 1,
        zone: StableKey(1),
        body: body.to_vec(),
    }
}

pub(crate) fn place(zone: u64) -> Place {
    Place {
        journal: JournalId(7),
        zone: StableKey(zone),
    }
}
