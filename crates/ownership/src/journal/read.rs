//! Reads the records of a journal.

use super::{
    Journal, Record,
    batch::{self, BadRecord},
    index::Location,
    segment::{self, Header, SECTOR, Segment},
};
use crate::error::JournalError;

impl Journal {
    /// Calls `visit` with each live record, in the order of the files.
    ///
    /// The order says nothing about time: a copy of an old record can follow a newer one.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or has changed since it was opened.
    ///
    /// # Time complexity
    ///
    /// Reads all files.
    pub fn visit_live(&mut self, mut visit: impl FnMut(Record)) -> Result<(), JournalError> {
        for place in 0..self.segments.len() {
            let header = self.segments[place].header;
            let bytes = self.read_segment(header.number)?;
            let end = self.segments[place].end;
            let mut read = Segment {
                header,
                bytes: bytes.len() as u64,
                end: SECTOR as u64,
            };
            while let Some((offset, records)) = read.next_batch(&bytes) {
                self.visit_batch(&header, offset, records, |record, at, _| {
                    if self.index.is_live(&record, at) {
                        visit(record);
                    }
                })?;
            }
            if read.end != end {
                return Err(self.damaged(header.number, read.end, "a batch is not valid"));
            }
        }
        Ok(())
    }

    /// Calls `visit` with each record of a batch, its location and its length.
    pub(super) fn visit_batch(
        &self,
        header: &Header,
        batch: u64,
        mut records: &[u8],
        mut visit: impl FnMut(Record, Location, usize),
    ) -> Result<(), JournalError> {
        let mut at = Location {
            segment: header.number,
            batch,
            place: 0,
        };
        while let Some(record) = batch::take_record(&mut records) {
            let (record, length) =
                record.map_err(|bad| self.bad_record(bad, header.number, batch))?;
            visit(record, at, length);
            at.place += 1;
        }
        Ok(())
    }

    pub(super) fn read_segment(&mut self, number: u64) -> Result<Vec<u8>, JournalError> {
        let name = segment::name(number);
        let bytes = self.disk.open(&name).and_then(|mut file| file.read());
        bytes.map_err(|error| JournalError::io(self.disk.path(&name), "read", error))
    }

    pub(super) fn damaged(&self, segment: u64, offset: u64, reason: &'static str) -> JournalError {
        JournalError::Damaged {
            file: self.disk.path(&segment::name(segment)),
            offset,
            reason,
        }
    }

    pub(super) fn bad_record(&self, bad: BadRecord, segment: u64, offset: u64) -> JournalError {
        match bad {
            BadRecord::Garbled => self.damaged(segment, offset, "a record cannot be read"),
            BadRecord::UnknownTag(tag) => {
                let file = self.disk.path(&segment::name(segment));
                JournalError::UnknownRecord { file, offset, tag }
            }
        }
    }
}

impl Segment {
    /// Returns the offset and the records of the batch at the end, and moves the end behind it.
    pub(super) fn next_batch<'a>(&mut self, bytes: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let offset = self.end;
        let from_here = bytes.get(offset as usize..)?;
        let found = batch::find(from_here, self.header.salt, offset)?;
        self.end += found.len as u64;
        Some((offset, &from_here[found.records]))
    }
}
