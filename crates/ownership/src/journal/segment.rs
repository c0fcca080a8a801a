//! One file of a journal.
//!
//! ```text
//! sector 0   "DUEJ", version: u16, 0: u16, journal id: u128, number: u64, salt: u64,
//!            end of the segment before: u64, zeros, checksum of the sector: u32
//! sector 1.. batches, then zeros
//! ```
//!
//! All numbers are little-endian. A file gets its name when its header and its zeros are durable.

use std::io;

use super::JournalId;
use crate::{
    crash_point::crash_point,
    disk::{Disk, DiskFile},
    error::JournalError,
};

pub(super) const SECTOR: usize = 512;

/// The version of the format that this release writes.
pub(crate) const VERSION: u16 = 1;

const MAGIC: &[u8; 4] = b"DUEJ";
const SUM: usize = SECTOR - 4;
const SUFFIX: &str = ".due";
const UNFINISHED: &str = ".new";

/// The first sector of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) journal: JournalId,
    pub(super) number: u64,
    pub(super) salt: u64,
    /// Where the batches of the segment before end. A segment cannot lose its last batch unnoticed.
    pub(super) previous_end: u64,
}

/// A file of the journal.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) header: Header,
    /// The size of the file.
    pub(super) bytes: u64,
    /// Where its batches end.
    pub(super) end: u64,
}

pub(super) fn name(number: u64) -> String {
    format!("segment-{number:010}{SUFFIX}")
}

/// Returns the numbers of all segments in order, and the names of unfinished ones.
pub(super) fn list(names: &[String]) -> (Vec<u64>, Vec<&str>) {
    let number = |name: &String| {
        name.strip_prefix("segment-")?
            .strip_suffix(SUFFIX)?
            .parse::<u64>()
            .ok()
    };
    let mut numbers: Vec<_> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    let unfinished = names
        .iter()
        .map(String::as_str)
        .filter(|name| name.ends_with(UNFINISHED));
    (numbers, unfinished.collect())
}

impl Header {
    fn encode(&self) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        sector[..4].copy_from_slice(MAGIC);
        sector[4..6].copy_from_slice(&VERSION.to_le_bytes());
        sector[8..24].copy_from_slice(&self.journal.0.to_le_bytes());
        sector[24..32].copy_from_slice(&self.number.to_le_bytes());
        sector[32..40].copy_from_slice(&self.salt.to_le_bytes());
        sector[40..48].copy_from_slice(&self.previous_end.to_le_bytes());
        let sum = crc32fast::hash(&sector[..SUM]);
        sector[SUM..].copy_from_slice(&sum.to_le_bytes());
        sector
    }

    /// Reads the header of segment `number`. The checksum has its place in all versions.
    pub(super) fn decode(disk: &dyn Disk, number: u64, bytes: &[u8]) -> Result<Self, JournalError> {
        let path = || disk.path(&name(number));
        let damaged = |reason| JournalError::Damaged {
            file: path(),
            offset: 0,
            reason,
        };
        let Some(sector) = bytes.first_chunk::<SECTOR>() else {
            return Err(damaged("its header is cut off"));
        };
        let sum = crc32fast::hash(&sector[..SUM]).to_le_bytes();
        if sector[..4] != *MAGIC || sector[SUM..] != sum {
            return Err(damaged("its header is not valid"));
        }
        let version = u16::from_le_bytes([sector[4], sector[5]]);
        if version != VERSION {
            return Err(JournalError::Newer {
                file: path(),
                version,
            });
        }
        let u64_at = |at: usize| {
            let bytes = sector[at..at + 8]
                .try_into()
                .expect("the sector has 512 bytes");
            u64::from_le_bytes(bytes)
        };
        let header = Self {
            journal: JournalId(u128::from(u64_at(8)) | u128::from(u64_at(16)) << 64),
            number: u64_at(24),
            salt: u64_at(32),
            previous_end: u64_at(40),
        };
        if header.number != number {
            return Err(damaged("its name has another number than its header"));
        }
        Ok(header)
    }
}

impl Segment {
    /// Creates a segment of `bytes` zeros behind its header.
    pub(super) fn create(
        disk: &mut dyn Disk,
        header: Header,
        bytes: u64,
    ) -> Result<(Self, Box<dyn DiskFile>), JournalError> {
        let name = name(header.number);
        let unfinished = format!("{name}{UNFINISHED}");
        let file = fill(disk, &unfinished, &header, bytes)
            .and_then(|file| {
                disk.rename(&unfinished, &name)?;
                disk.sync_names()?;
                Ok(file)
            })
            .map_err(|error| {
                // Gives back the space. If this fails, too, the next start removes the file.
                _ = disk.remove(&unfinished);
                JournalError::no_space_or_io(disk.path(&name), "create", error)
            })?;
        Ok((
            Self {
                header,
                bytes,
                end: SECTOR as u64,
            },
            file,
        ))
    }
}

/// Writes and syncs a whole segment, under the name of an unfinished one.
fn fill(
    disk: &mut dyn Disk,
    unfinished: &str,
    header: &Header,
    bytes: u64,
) -> io::Result<Box<dyn DiskFile>> {
    let mut file = disk.create(unfinished)?;
    crash_point!("segment.created");
    // Later syncs then write data only: neither the size of the file nor its blocks change.
    let zeros = vec![0; bytes.min(1 << 20) as usize];
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(zeros.len() as u64);
        file.write_at(offset, &zeros[..length as usize])?;
        offset += length;
    }
    file.write_at(0, &header.encode())?;
    file.sync()?;
    crash_point!("segment.header_synced");
    Ok(file)
}
