//! Opens a journal: reads all segments, cuts a torn batch, and counts the start.

use core::mem;
use std::{collections::VecDeque, path::Path};

use super::{
    Journal, JournalId, JournalOptions, Record, batch,
    index::Index,
    segment::{self, Header, SECTOR, Segment},
};
use crate::{
    crash_point::crash_point,
    disk::{Directory, Disk},
    error::JournalError,
};

impl Journal {
    /// Opens the journal in `directory`, or creates it.
    ///
    /// It reads all files. At most one batch, the last one, can be torn: it was never synced, so it is cut
    /// off. Opening can be interrupted and repeated.
    ///
    /// # Errors
    ///
    /// Returns [`InUse`](JournalError::InUse) if the directory is open already, and
    /// [`Damaged`](JournalError::Damaged) if synced bytes have changed: nothing is ever skipped.
    pub fn open(
        directory: impl AsRef<Path>,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        let disk = Directory::open(directory.as_ref())?;
        Self::open_on(Box::new(disk), options)
    }

    /// Like [`open`](Self::open), on any disk.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open), except for [`InUse`](JournalError::InUse).
    pub fn open_on(mut disk: Box<dyn Disk>, options: JournalOptions) -> Result<Self, JournalError> {
        let numbers = list_segments(&mut *disk)?;
        let mut journal = match numbers.last() {
            None => Self::create(disk, options)?,
            Some(_) => Self::read(disk, options, &numbers)?,
        };
        journal.boot += 1;
        journal.append(&[Record::Boot {
            count: journal.boot,
        }])?;
        crash_point!("boot.synced");
        crash_point!("journal.opened");
        Ok(journal)
    }

    fn create(mut disk: Box<dyn Disk>, options: JournalOptions) -> Result<Self, JournalError> {
        let id = JournalId(u128::from(disk.random()) << 64 | u128::from(disk.random()));
        let header = Header {
            journal: id,
            number: 1,
            salt: disk.random(),
            previous_end: 0,
        };
        let (first, file) = Segment::create(&mut *disk, header, options.segment_bytes())?;
        Ok(Self {
            disk,
            options,
            id,
            boot: 0,
            segments: VecDeque::from([first]),
            file,
            index: Index::default(),
            cleaner: None,
            stopped: None,
        })
    }

    fn read(
        mut disk: Box<dyn Disk>,
        options: JournalOptions,
        numbers: &[u64],
    ) -> Result<Self, JournalError> {
        let last = numbers[numbers.len() - 1];
        let last_file = disk.open(&segment::name(last));
        let file = last_file
            .map_err(|error| JournalError::io(disk.path(&segment::name(last)), "open", error))?;
        let mut journal = Self {
            disk,
            options,
            id: JournalId(0),
            boot: 0,
            segments: VecDeque::new(),
            file,
            index: Index::default(),
            cleaner: None,
            stopped: None,
        };
        let mut last_scan = None;
        for &number in numbers {
            last_scan = Some(journal.scan(number)?);
        }
        if let Some(scan) = last_scan {
            journal.cut(&scan)?;
        }
        Ok(journal)
    }

    /// Reads a segment into the index, after those before it.
    fn scan(&mut self, number: u64) -> Result<Scan, JournalError> {
        let bytes = self.read_segment(number)?;
        let header = Header::decode(&*self.disk, number, &bytes)?;
        if let Some(before) = self.segments.back() {
            if before.header.journal != header.journal {
                return Err(self.damaged(number, 0, "it belongs to another journal"));
            }
            if before.end != header.previous_end {
                let number = before.header.number;
                return Err(self.damaged(number, before.end, "a batch is not valid"));
            }
        }
        self.id = header.journal;
        let mut segment = Segment {
            header,
            bytes: bytes.len() as u64,
            end: SECTOR as u64,
        };
        let mut last_batch = None;
        let mut index = mem::take(&mut self.index);
        let mut boot = self.boot;
        while let Some((offset, records)) = segment.next_batch(&bytes) {
            last_batch = Some(offset as usize);
            self.visit_batch(&header, offset, records, |record, at, length| {
                if let Record::Boot { count } = record {
                    boot = count;
                }
                index.apply(&record, at, length);
            })?;
        }
        (self.index, self.boot) = (index, boot);
        let end = segment.end as usize;
        let behind = (end..bytes.len()).step_by(SECTOR).skip(1);
        let is_valid = |&at: &usize| batch::find(&bytes[at..], header.salt, at as u64).is_some();
        if behind.into_iter().any(|at| is_valid(&at)) {
            return Err(self.damaged(number, segment.end, "a batch before the last is not valid"));
        }
        self.segments.push_back(segment);
        Ok(Scan { bytes, last_batch })
    }

    /// Makes the last segment durable as it was read.
    ///
    /// It writes the last batch again: if its sync failed in the process before, the batch can be read but is
    /// not durable, and another sync alone would not change that.
    fn cut(&mut self, scan: &Scan) -> Result<(), JournalError> {
        let end = self.last().end as usize;
        let failed = |operation| {
            let path = self.disk.path(&segment::name(self.last().header.number));
            move |error| JournalError::io(path.clone(), operation, error)
        };
        let (write_failed, sync_failed) = (failed("write"), failed("sync"));
        if let Some(batch) = scan.last_batch {
            self.file
                .write_at(batch as u64, &scan.bytes[batch..end])
                .map_err(&write_failed)?;
        }
        for (sector, bytes) in scan.bytes[end..].chunks(SECTOR).enumerate() {
            if bytes.iter().any(|&byte| byte != 0) {
                let offset = end + sector * SECTOR;
                let zeros = [0; SECTOR];
                self.file
                    .write_at(offset as u64, &zeros[..bytes.len()])
                    .map_err(&write_failed)?;
            }
        }
        self.file
            .sync()
            .and_then(|()| self.disk.sync_names())
            .map_err(sync_failed)?;
        crash_point!("tail.cut");
        Ok(())
    }
}

/// The bytes of a segment that was read.
struct Scan {
    bytes: Vec<u8>,
    /// The offset of the last batch.
    last_batch: Option<usize>,
}

/// Returns the numbers of the segments, which must follow each other, and removes unfinished files.
fn list_segments(disk: &mut dyn Disk) -> Result<Vec<u64>, JournalError> {
    let names = disk
        .names()
        .map_err(|error| JournalError::io(disk.path(""), "list", error))?;
    let (numbers, unfinished) = segment::list(&names);
    for name in unfinished {
        disk.remove(name)
            .map_err(|error| JournalError::io(disk.path(name), "remove", error))?;
    }
    for pair in numbers.windows(2) {
        if pair[0] + 1 != pair[1] {
            let file = disk.path(&segment::name(pair[0] + 1));
            return Err(JournalError::Damaged {
                file,
                offset: 0,
                reason: "the file is missing",
            });
        }
    }
    Ok(numbers)
}
