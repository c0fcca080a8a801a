//! A log of batches in plain files, which survives torn writes.

mod batch;
mod clean;
mod index;
mod open;
mod read;
mod record;
mod segment;

use core::mem;
use std::collections::VecDeque;

pub(crate) use batch::MAX_BATCH_BYTES;
pub use record::{JournalId, Place, Record};
pub(crate) use segment::VERSION;

use crate::{
    crash_point::crash_point,
    disk::{Disk, DiskFile},
    error::JournalError,
};
use batch::Batch;
use clean::Cleaner;
use index::{Index, Location};
use segment::{Header, SECTOR, Segment};

/// The settings of a [`Journal`].
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// When a batch is durable.
    pub sync: Sync,
    /// The size of a file, in bytes: 16 MiB by default, and at least 1 KiB. A larger batch gets a larger file.
    pub segment_bytes: u64,
    /// Old files are removed when all files have more bytes than this and twice the live records: 32 MiB by
    /// default.
    pub spare_bytes: u64,
}

/// When a batch counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// After the disk has confirmed it. Survives a loss of power.
    #[default]
    EachBatch,
    /// When the operating system has it. Survives the death of the process only, for tests.
    Never,
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self {
            sync: Sync::EachBatch,
            segment_bytes: 16 << 20,
            spare_bytes: 32 << 20,
        }
    }
}

impl JournalOptions {
    fn segment_bytes(&self) -> u64 {
        self.segment_bytes
            .max(2 * SECTOR as u64)
            .next_multiple_of(SECTOR as u64)
    }
}

/// A log of batches of records in a directory.
///
/// - [`append`](Journal::append) makes a batch durable, whole or not at all, before it returns.
/// - After a crash, the journal has all batches that were durable, and perhaps the one after them.
/// - A batch that was durable and cannot be read is an error, never a loss in silence.
/// - Old files are removed. Their live records are copied in small steps, with the batches.
///
/// ```
/// use bevy_due::worlds::StableKey;
/// use bevy_due_ownership::{Journal, JournalOptions, Record};
///
/// # let directory = std::env::temp_dir().join(format!("due_doc_{}", std::process::id()));
/// let gold = Record::Entity { key: StableKey(7), epoch: 1, zone: StableKey(1), body: b"3 gold".into() };
/// let mut journal = Journal::open(&directory, JournalOptions::default())?;
/// journal.append(&[gold.clone()])?;
/// drop(journal);
///
/// let mut journal = Journal::open(&directory, JournalOptions::default())?;
/// let mut live = Vec::new();
/// journal.visit_live(|record| live.push(record))?;
/// assert!(live.contains(&gold));
/// assert_eq!(journal.boot(), 2);
/// # drop(journal);
/// # std::fs::remove_dir_all(directory).unwrap();
/// # Ok::<_, bevy_due_ownership::JournalError>(())
/// ```
#[derive(Debug)]
pub struct Journal {
    disk: Box<dyn Disk>,
    options: JournalOptions,
    id: JournalId,
    boot: u64,
    /// The oldest first. The last one is written.
    segments: VecDeque<Segment>,
    /// The file of the last segment.
    file: Box<dyn DiskFile>,
    index: Index,
    cleaner: Option<Cleaner>,
    stopped: Option<JournalError>,
}

impl Journal {
    /// Writes `records` as one batch, and syncs it. Writes nothing if there are none.
    ///
    /// # Errors
    ///
    /// After [`Full`](JournalError::Full) nothing has changed: append the same records again later. After
    /// any other error the batch is durable or not, and each later call returns the same error.
    ///
    /// # Time complexity
    ///
    /// *O*(bytes). While old files are cleaned, it also copies as many bytes, or the 256th part of a segment.
    /// Once per segment, it also writes a file of zeros.
    pub fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        if records.is_empty() {
            return Ok(());
        }
        let result = self.try_append(records);
        if let Err(error) = &result {
            // The copies of this step are not written, so the cleaner begins again.
            self.cleaner = None;
            self.stopped = (!error.is_full()).then(|| error.clone());
        }
        result
    }

    /// Returns the random number that the journal got when it was created.
    pub fn id(&self) -> JournalId {
        self.id
    }

    /// Returns how often the journal has been opened, with this time.
    pub fn boot(&self) -> u64 {
        self.boot
    }

    /// Returns the size of all files, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Returns the size of all live records, in bytes.
    pub fn live_bytes(&self) -> u64 {
        self.index.live_bytes()
    }

    fn try_append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let own = Batch::encode(records);
        let copies = self.copy_live(own.len())?;
        // Copies come first: a record that ends or replaces one of them must follow it.
        let all = || copies.records.iter().chain(records);
        let mut batch = if copies.records.is_empty() {
            own
        } else {
            Batch::encode(all())
        };
        self.make_room(batch.len())?;
        let offset = self.write(&mut batch)?;
        let segment = self.last().header.number;
        for (place, (record, length)) in all().zip(batch.record_lengths()).enumerate() {
            let at = Location {
                segment,
                batch: offset,
                place: place as u32,
            };
            self.index.apply(record, at, length);
        }
        if copies.are_last {
            self.remove_oldest()?;
        }
        Ok(())
    }

    /// Begins a new segment if the last one has no room for `len` bytes.
    fn make_room(&mut self, len: u64) -> Result<(), JournalError> {
        if len > MAX_BATCH_BYTES {
            return Err(JournalError::TooLarge { bytes: len });
        }
        let last = self.last();
        if last.end + len <= last.bytes {
            return Ok(());
        }
        let header = Header {
            number: last.header.number + 1,
            previous_end: last.end,
            salt: self.disk.random(),
            ..self.last().header
        };
        let bytes = self.options.segment_bytes().max(SECTOR as u64 + len);
        let (segment, file) = Segment::create(&mut *self.disk, header, bytes)?;
        self.segments.push_back(segment);
        self.file = file;
        Ok(())
    }

    /// Writes and syncs a batch at the end of the last segment. Returns its offset.
    fn write(&mut self, batch: &mut Batch) -> Result<u64, JournalError> {
        let Header { number, salt, .. } = self.last().header;
        let path = || self.disk.path(&segment::name(number));
        let offset = self.last().end;
        let bytes = batch.seal(salt, offset);
        let half = if cfg!(feature = "crash-points") {
            bytes.len() / 2
        } else {
            0
        };
        let mut written = self.file.write_at(offset, &bytes[..half]);
        crash_point!("batch.half_written");
        if written.is_ok() {
            written = self.file.write_at(offset + half as u64, &bytes[half..]);
        }
        written.map_err(|error| JournalError::no_space_or_io(path(), "write", error))?;
        crash_point!("batch.written");
        if self.options.sync == Sync::EachBatch {
            self.file
                .sync()
                .map_err(|error| JournalError::io(path(), "sync", error))?;
        }
        crash_point!("batch.synced");
        let end = &mut self.last_mut().end;
        Ok(mem::replace(end, offset + batch.len()))
    }

    fn last(&self) -> &Segment {
        self.segments.back().expect("a journal has a segment")
    }

    fn last_mut(&mut self) -> &mut Segment {
        self.segments.back_mut().expect("a journal has a segment")
    }
}
