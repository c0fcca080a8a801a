//! Batches of frames as bytes: a version, the head, and the frames, in the format of `postcard`.

use alloc::{borrow::Cow, vec::Vec};
use core::mem;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    super::{
        address::Address,
        members::Epoch,
        parcel::{Parcel, Refused},
    },
    session::Head,
};

/// The version of the format. All processes of a cluster must have the same.
const VERSION: u8 = 1;

/// The length of the version and the head of a batch.
pub(super) const HEAD: usize = 1 + 5 * 8 + 4;

/// A batch that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes are not a batch. No part of it was taken.
    #[error("the bytes are not a batch of frames")]
    Malformed,
    /// The batch has this version, which this release does not know.
    #[error(
        "the other process sends batches of version {0}, and this one knows version {VERSION}: run \
         the same release in all processes"
    )]
    Version(u8),
    /// The groups of this process have been dropped.
    #[error("the groups of worlds have been dropped")]
    Closed,
}

/// What one process tells another. The format counts the variants, so new ones are the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// A parcel, and where it comes from.
    Parcel(Parcel, Source),
    /// A parcel was refused after it had left its process.
    Refused(Refused, Source),
    /// The process runs this many worlds of a group.
    Worlds(Cow<'static, str>, u32),
    /// An entity of the process has this address.
    Bound(Address, Epoch),
    /// It no longer has it.
    Unbound(Address, Epoch),
    /// A group that has refused a parcel of a world takes parcels again.
    Room(Cow<'static, str>, Source),
    /// The process leaves.
    Goodbye,
    /// The process has told all worlds and keys that it had at the begin of the connection.
    Introduced,
}

/// The world that has sent a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Source {
    /// The random id of its process.
    pub(crate) process: u64,
    /// The number of the world in that process. Zero stands for the code outside all worlds.
    pub(crate) world: u64,
    /// Rises by one with each parcel of that world.
    pub(crate) sequence: u64,
    /// By this number, the process knows the parcel again if it is refused. No other process can make it.
    pub(crate) seal: u64,
    /// The number of processes that the parcel has come from, so far.
    pub(crate) hops: u8,
}

impl Frame {
    /// Appends the frame to bytes.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        *bytes = postcard::to_extend(self, mem::take(bytes)).expect("every length is known");
    }
}

/// Reads the frames after the head of a batch of this process.
pub(super) fn frames_of(batch: &[u8], frames: u32) -> impl Iterator<Item = Frame> {
    let mut rest = &batch[HEAD..];
    (0..frames).map_while(move |_| take(&mut rest).ok())
}

/// Writes the head of a batch over its first bytes, which a [`Chunk`](super::queue::Chunk) keeps free.
pub(super) fn write_head(head: &Head, bytes: &mut [u8]) {
    bytes[0] = VERSION;
    postcard::to_slice(head, &mut bytes[1..HEAD]).expect("its length is fixed");
}

/// Reads a batch.
pub(crate) fn read_batch(bytes: &[u8]) -> Result<(Head, Vec<Frame>), BatchError> {
    let mut rest = match bytes {
        [VERSION, rest @ ..] => rest,
        [version, ..] => return Err(BatchError::Version(*version)),
        [] => return Err(BatchError::Malformed),
    };
    let head: Head = take(&mut rest)?;
    let frames = (0..head.frames).map(|_| take(&mut rest));
    let frames: Vec<_> = frames.collect::<Result<_, _>>()?;
    match rest {
        [] => Ok((head, frames)),
        _ => Err(BatchError::Malformed),
    }
}

/// Takes a value from the beginning of bytes.
fn take<'a, T: Deserialize<'a>>(bytes: &mut &'a [u8]) -> Result<T, BatchError> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|_| BatchError::Malformed)?;
    *bytes = rest;
    Ok(value)
}
