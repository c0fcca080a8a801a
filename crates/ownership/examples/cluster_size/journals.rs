//! What the journals of a cluster have.

use allocation_counter::measure;
use bevy_due_ownership::{Journal, JournalOptions, Record};
use bevy_ecs::error::Result;

use crate::disk::CountingDisk;

/// The journals of a cluster.
#[derive(Default)]
pub(crate) struct Journals {
    pub(crate) streams: u64,
    pub(crate) stream_bytes: u64,
    /// The bytes of all indexes in memory.
    pub(crate) held: i64,
    pub(crate) records: u64,
}

pub(crate) fn options() -> JournalOptions {
    JournalOptions {
        segment_bytes: 256 << 10,
        ..JournalOptions::default()
    }
}

impl Journals {
    pub(crate) fn read(&mut self, disk: CountingDisk) -> Result {
        let mut journal = Err("not opened".into());
        let used = measure(|| {
            journal = Journal::open_on(Box::new(disk), options()).map_err(Into::into);
        });
        let mut journal: Journal = { journal as Result<Journal> }?;
        self.held += used.bytes_current;
        let mut streams = Vec::new();
        journal.visit_live(|record| {
            self.records += 1;
            if matches!(record, Record::Stream { .. }) {
                streams.push(record);
            }
        })?;
        self.streams += streams.len() as u64;
        for record in streams {
            self.stream_bytes += postcard::to_allocvec(&record)?.len() as u64;
        }
        Ok(())
    }
}
