//! Frames that travel together, with a head.

use alloc::vec::Vec;
use core::fmt;

use super::{
    frame::Frame,
    queue::HEAD,
    session::Head,
    wire::{Malformed, Reader, Writer},
};

/// The version of the format. All processes of a cluster must have the same.
const VERSION: u8 = 1;

/// A batch that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes are not a batch. No part of it was taken.
    Malformed,
    /// The batch has this version, which this release does not know.
    Version(u8),
    /// The groups of this process have been dropped.
    Closed,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the bytes are not a batch of frames"),
            Self::Version(theirs) => write!(
                f,
                "the other process sends batches of version {theirs}, and this one knows version \
                 {VERSION}: run the same release in all processes"
            ),
            Self::Closed => f.write_str("the groups of worlds have been dropped"),
        }
    }
}

impl core::error::Error for BatchError {}

impl From<Malformed> for BatchError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Writes the head of a batch over its first bytes, or appends it to no bytes.
pub(super) fn write_head(head: &Head, bytes: &mut Vec<u8>) {
    let mut written = Vec::with_capacity(HEAD);
    written.put_u8(VERSION);
    written.put_u64(head.process);
    written.put_u64(head.session);
    written.put_u64(head.seen);
    written.put_u64(head.received);
    written.put_u64(head.first);
    written.put_u32(head.frames);
    match bytes.get_mut(..HEAD) {
        Some(place) => place.copy_from_slice(&written),
        None => *bytes = written,
    }
}

/// Reads a batch.
pub(super) fn read(bytes: &[u8]) -> Result<(Head, Vec<Frame>), BatchError> {
    let mut reader = Reader(bytes);
    match reader.u8()? {
        VERSION => {}
        version => return Err(BatchError::Version(version)),
    }
    let head = Head {
        process: reader.u64()?,
        session: reader.u64()?,
        seen: reader.u64()?,
        received: reader.u64()?,
        first: reader.u64()?,
        frames: reader.u32()?,
    };
    let frames = (0..head.frames).map(|_| Frame::read(&mut reader));
    let frames = frames.collect::<Result<_, _>>()?;
    reader.end()?;
    Ok((head, frames))
}
