//! The bytes of one batch: records that become durable together.
//!
//! ```text
//! length of the records: u32, checksum: u32, records, zeros up to the next sector
//! ```
//!
//! The checksum also covers the salt of the segment, the offset of the batch and the zeros, so that old
//! bytes never pass for new ones. A batch begins with a sector, so that no write touches an older batch.

use core::ops::Range;

use super::{Record, segment::SECTOR};

/// The largest batch, in bytes.
pub(crate) const MAX_BATCH_BYTES: u64 = 1 << 30;

const HEAD: usize = 8;

/// A batch to be written.
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
    records_end: usize,
}

impl Batch {
    pub(super) fn encode<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut bytes = vec![0; HEAD];
        let mut ends = Vec::new();
        for record in records {
            bytes = postcard::to_extend(record, bytes).expect("a record in memory can be encoded");
            ends.push(bytes.len());
        }
        let records_end = bytes.len();
        bytes.resize(records_end.next_multiple_of(SECTOR), 0);
        Self {
            bytes,
            ends,
            records_end,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns the length of each record.
    pub(super) fn record_lengths(&self) -> impl Iterator<Item = usize> {
        let starts = core::iter::once(HEAD).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| end - start)
    }

    /// Returns the bytes to be written at `offset` of the segment with `salt`.
    pub(super) fn seal(&mut self, salt: u64, offset: u64) -> &[u8] {
        // At most `MAX_BATCH_BYTES`.
        let length = ((self.records_end - HEAD) as u32).to_le_bytes();
        let sum = checksum(salt, offset, length, &self.bytes[HEAD..]);
        self.bytes[..4].copy_from_slice(&length);
        self.bytes[4..HEAD].copy_from_slice(&sum.to_le_bytes());
        &self.bytes
    }
}

/// A valid batch at the beginning of some bytes.
pub(super) struct Found {
    pub(super) records: Range<usize>,
    /// The length with the zeros: the next batch begins here.
    pub(super) len: usize,
}

/// Finds the batch at the beginning of `bytes`, which begin at `offset` of the segment with `salt`.
/// `None` if it is not valid.
pub(super) fn find(bytes: &[u8], salt: u64, offset: u64) -> Option<Found> {
    let length = *bytes.first_chunk::<4>()?;
    let sum = *bytes.get(4..)?.first_chunk::<4>()?;
    let records = HEAD..HEAD.checked_add(u32::from_le_bytes(length) as usize)?;
    let len = records.end.checked_next_multiple_of(SECTOR)?;
    let body = bytes.get(HEAD..len)?;
    let valid =
        !records.is_empty() && checksum(salt, offset, length, body) == u32::from_le_bytes(sum);
    valid.then_some(Found { records, len })
}

fn checksum(salt: u64, offset: u64, length: [u8; 4], body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&salt.to_le_bytes());
    sum.update(&offset.to_le_bytes());
    sum.update(&length);
    sum.update(body);
    sum.finalize()
}

/// Why the first record of some bytes cannot be read.
pub(super) enum BadRecord {
    UnknownTag(u8),
    Garbled,
}

/// Takes the first record from `bytes`, with its length. `None` at the end.
pub(super) fn take_record(bytes: &mut &[u8]) -> Option<Result<(Record, usize), BadRecord>> {
    let &tag = bytes.first()?;
    if tag >= Record::TAGS {
        return Some(Err(BadRecord::UnknownTag(tag)));
    }
    let Ok((record, rest)) = postcard::take_from_bytes(bytes) else {
        return Some(Err(BadRecord::Garbled));
    };
    let length = bytes.len() - rest.len();
    *bytes = rest;
    Some(Ok((record, length)))
}

/// Returns the length of the batch that begins with `sector`, if it is valid.
pub(super) fn claimed_len(sector: &[u8; SECTOR]) -> u64 {
    let length = u32::from_le_bytes([sector[0], sector[1], sector[2], sector[3]]);
    (u64::from(length) + HEAD as u64).next_multiple_of(SECTOR as u64)
}
