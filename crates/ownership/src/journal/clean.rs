//! Copies live records out of the oldest segment, in small steps.

use super::{
    Journal, MAX_BATCH_BYTES, Record, batch,
    index::Location,
    segment::{self, SECTOR},
};
use crate::{crash_point::crash_point, disk::DiskFile, error::JournalError};

/// A step copies the 256th part of a segment: 64 KiB of 16 MiB. It is small beside the sync of a batch.
const COPIED_PART: u64 = 256;
/// A step reads the 16th part of a segment to find as much.
const READ_PART: u64 = 16;

/// How far the oldest segment has been read.
#[derive(Debug)]
pub(super) struct Cleaner {
    file: Box<dyn DiskFile>,
    /// The place of the next record.
    at: Location,
    /// The records of the current batch that are not read yet.
    records: Vec<u8>,
    read: usize,
    /// The offset of the next batch.
    next_batch: u64,
}

/// Records to be written again with the next batch.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) records: Vec<Record>,
    /// Nothing but these is live in the oldest segment.
    pub(super) are_last: bool,
}

impl Journal {
    /// Returns live records of the oldest segment.
    ///
    /// A step copies at least as many bytes as the frames write (`written`). So the files stay below
    /// about three times the live bytes, the `spare_bytes` and two segments.
    pub(super) fn copy_live(&mut self, written: u64) -> Result<Copies, JournalError> {
        let mut copies = Copies::default();
        if written > MAX_BATCH_BYTES / 4 {
            // With copies, the batch could be too large.
            return Ok(copies);
        }
        let Some(mut cleaner) = self.take_cleaner()? else {
            return Ok(copies);
        };
        let segment_bytes = self.options.segment_bytes();
        let copy = written.max(segment_bytes / COPIED_PART);
        let reach = (4 * written).max(segment_bytes / READ_PART);
        let (mut copied, mut read) = (0, 0);
        while copied < copy && read < reach {
            let mut rest = &cleaner.records[cleaner.read..];
            let Some(record) = batch::take_record(&mut rest) else {
                copies.are_last = cleaner.next_batch >= self.segments[0].end;
                if copies.are_last {
                    break;
                }
                read += self.read_batch(&mut cleaner)?;
                continue;
            };
            let (record, length) =
                record.map_err(|bad| self.bad_record(bad, cleaner.at.segment, cleaner.at.batch))?;
            if self.index.is_live(&record, cleaner.at) {
                copies.records.push(record);
                copied += length as u64;
            }
            cleaner.read += length;
            cleaner.at.place += 1;
        }
        if !copies.records.is_empty() {
            crash_point!("live.copied");
        }
        self.cleaner = Some(cleaner);
        Ok(copies)
    }

    /// Removes the oldest segment, of which no record is live.
    pub(super) fn remove_oldest(&mut self) -> Result<(), JournalError> {
        self.cleaner = None;
        let Some(oldest) = self.segments.pop_front() else {
            return Ok(());
        };
        let name = segment::name(oldest.header.number);
        // Synced before the next one is removed, so that the numbers have no gap.
        self.disk
            .remove(&name)
            .and_then(|()| self.disk.sync_names())
            .map_err(|error| JournalError::io(self.disk.path(&name), "remove", error))?;
        crash_point!("segment.deleted");
        Ok(())
    }

    fn take_cleaner(&mut self) -> Result<Option<Cleaner>, JournalError> {
        let limit = 2 * self.index.live_bytes() + self.options.spare_bytes;
        if self.cleaner.is_some() || self.file_bytes() <= limit || self.segments.len() < 2 {
            return Ok(self.cleaner.take());
        }
        let number = self.segments[0].header.number;
        let name = segment::name(number);
        let opened = self.disk.open(&name);
        let file =
            opened.map_err(|error| JournalError::io(self.disk.path(&name), "open", error))?;
        let at = Location {
            segment: number,
            batch: 0,
            place: 0,
        };
        Ok(Some(Cleaner {
            file,
            at,
            records: Vec::new(),
            read: 0,
            next_batch: SECTOR as u64,
        }))
    }

    /// Reads the next batch of the oldest segment. Returns its bytes.
    ///
    /// It checks the batch again: a damaged record must not get a new checksum.
    fn read_batch(&self, cleaner: &mut Cleaner) -> Result<u64, JournalError> {
        let oldest = &self.segments[0];
        let offset = cleaner.next_batch;
        let path = || self.disk.path(&segment::name(oldest.header.number));
        let failed = |error| JournalError::io(path(), "read", error);
        let damaged = || JournalError::Damaged {
            file: path(),
            offset,
            reason: "a batch has changed since the journal was opened",
        };
        let mut head = [0; SECTOR];
        cleaner.file.read_at(offset, &mut head).map_err(failed)?;
        let len = batch::claimed_len(&head);
        if offset + len > oldest.end {
            return Err(damaged());
        }
        let mut bytes = vec![0; len as usize];
        cleaner.file.read_at(offset, &mut bytes).map_err(failed)?;
        let found = batch::find(&bytes, oldest.header.salt, offset).ok_or_else(damaged)?;
        cleaner.records = bytes[found.records].to_vec();
        cleaner.read = 0;
        cleaner.at = Location {
            segment: oldest.header.number,
            batch: offset,
            place: 0,
        };
        cleaner.next_batch = offset + len;
        Ok(len)
    }
}
