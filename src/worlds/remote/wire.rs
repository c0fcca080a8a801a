//! Batches of frames as bytes, in little-endian order.

use alloc::{borrow::Cow, string::String, vec::Vec};

use thiserror::Error;

use super::{
    super::{
        address::{Address, StableKey},
        members::Epoch,
        parcel::{Parcel, Part, Refused},
    },
    session::Head,
};
use crate::message::{Delivery, Packet, RefusalReason, RemoteAsker};

/// The version of the format. All processes of a cluster must have the same.
const VERSION: u8 = 1;

/// The length of the head of a batch.
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

/// What one process tells another.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The kinds of frames. A number is never used again.
mod kind {
    pub(super) const PARCEL: u8 = 1;
    pub(super) const REFUSED: u8 = 2;
    pub(super) const WORLDS: u8 = 3;
    pub(super) const BOUND: u8 = 4;
    pub(super) const UNBOUND: u8 = 5;
    pub(super) const ROOM: u8 = 6;
    pub(super) const GOODBYE: u8 = 7;
    pub(super) const INTRODUCED: u8 = 8;
}

impl Frame {
    /// Appends the frame to bytes.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Parcel(parcel, source) => write_parcel(parcel, *source, bytes),
            Self::Refused(refused, source) => {
                bytes.push(kind::REFUSED);
                bytes.push(number_of(refused.reason));
                write_sent(&refused.parcel, *source, bytes);
            }
            Self::Worlds(group, worlds) => {
                bytes.push(kind::WORLDS);
                put_sized(group.as_bytes(), bytes);
                put_u32(*worlds, bytes);
            }
            Self::Bound(address, epoch) => {
                bytes.push(kind::BOUND);
                write_key(address, *epoch, bytes);
            }
            Self::Unbound(address, epoch) => {
                bytes.push(kind::UNBOUND);
                write_key(address, *epoch, bytes);
            }
            Self::Room(group, source) => {
                bytes.push(kind::ROOM);
                put_sized(group.as_bytes(), bytes);
                write_source(*source, bytes);
            }
            Self::Goodbye => bytes.push(kind::GOODBYE),
            Self::Introduced => bytes.push(kind::INTRODUCED),
        }
    }

    /// Reads the next frame.
    fn read(reader: &mut Reader) -> Result<Self, BatchError> {
        Ok(match reader.u8()? {
            kind::PARCEL => {
                let (parcel, source) = read_sent(reader)?;
                Self::Parcel(parcel, source)
            }
            kind::REFUSED => {
                let reason = reason_of(reader.u8()?)?;
                let (parcel, source) = read_sent(reader)?;
                Self::Refused(parcel.refused(reason), source)
            }
            kind::WORLDS => Self::Worlds(reader.text()?, reader.u32()?),
            kind::BOUND => Self::Bound(reader.address()?, reader.u64()?),
            kind::UNBOUND => Self::Unbound(reader.address()?, reader.u64()?),
            kind::ROOM => Self::Room(reader.text()?, read_source(reader)?),
            kind::GOODBYE => Self::Goodbye,
            kind::INTRODUCED => Self::Introduced,
            _ => return Err(BatchError::Malformed),
        })
    }
}

/// Appends a frame with a parcel to bytes.
pub(super) fn write_parcel(parcel: &Parcel, source: Source, bytes: &mut Vec<u8>) {
    bytes.push(kind::PARCEL);
    write_sent(parcel, source, bytes);
}

fn write_sent(parcel: &Parcel, source: Source, bytes: &mut Vec<u8>) {
    let Parcel {
        group,
        delivery,
        packet,
        part,
    } = parcel;
    write_source(source, bytes);
    bytes.push(source.hops);
    put_sized(group.as_bytes(), bytes);
    match delivery {
        Delivery::To(key) => {
            bytes.push(0);
            put_u64s([key.0], bytes);
        }
        Delivery::All => bytes.push(1),
        Delivery::InTurn => bytes.push(2),
    }
    match part {
        Part::Plain => bytes.push(0),
        Part::Request(asker) => {
            bytes.push(1);
            put_sized(asker.group.as_bytes(), bytes);
            put_u64s([asker.key, asker.token, asker.number], bytes);
        }
        Part::Reply { token, number } => {
            bytes.push(2);
            put_u64s([*token, *number], bytes);
        }
    }
    put_u32(packet.id(), bytes);
    put_sized(packet.payload(), bytes);
}

fn read_sent(reader: &mut Reader) -> Result<(Parcel, Source), BatchError> {
    let mut source = read_source(reader)?;
    source.hops = reader.u8()?;
    let group = reader.text()?;
    let delivery = match reader.u8()? {
        0 => Delivery::To(StableKey(reader.u64()?)),
        1 => Delivery::All,
        2 => Delivery::InTurn,
        _ => return Err(BatchError::Malformed),
    };
    let part = match reader.u8()? {
        0 => Part::Plain,
        1 => Part::Request(RemoteAsker {
            group: reader.text()?,
            key: reader.u64()?,
            token: reader.u64()?,
            number: reader.u64()?,
        }),
        2 => Part::Reply {
            token: reader.u64()?,
            number: reader.u64()?,
        },
        _ => return Err(BatchError::Malformed),
    };
    let id = reader.u32()?;
    let packet = Packet::new(id, reader.sized()?);
    let parcel = Parcel {
        group,
        delivery,
        packet,
        part,
    };
    Ok((parcel, source))
}

fn write_source(source: Source, bytes: &mut Vec<u8>) {
    let Source {
        process,
        world,
        sequence,
        seal,
        hops: _,
    } = source;
    put_u64s([process, world, sequence, seal], bytes);
}

fn read_source(reader: &mut Reader) -> Result<Source, BatchError> {
    Ok(Source {
        process: reader.u64()?,
        world: reader.u64()?,
        sequence: reader.u64()?,
        seal: reader.u64()?,
        hops: 0,
    })
}

fn number_of(reason: RefusalReason) -> u8 {
    match reason {
        RefusalReason::NoLink => 0,
        RefusalReason::UnknownGroup => 1,
        RefusalReason::UnknownKey => 2,
        RefusalReason::Full => 3,
        RefusalReason::InPart => 4,
        RefusalReason::NoKey => 5,
        RefusalReason::TooLarge => 6,
        RefusalReason::PeerLost => 7,
        RefusalReason::Forbidden => 8,
    }
}

fn reason_of(number: u8) -> Result<RefusalReason, BatchError> {
    Ok(match number {
        0 => RefusalReason::NoLink,
        1 => RefusalReason::UnknownGroup,
        2 => RefusalReason::UnknownKey,
        3 => RefusalReason::Full,
        4 => RefusalReason::InPart,
        5 => RefusalReason::NoKey,
        6 => RefusalReason::TooLarge,
        7 => RefusalReason::PeerLost,
        8 => RefusalReason::Forbidden,
        _ => return Err(BatchError::Malformed),
    })
}

/// Reads values from bytes. Never reads past the end, and allocates no more than there are bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], BatchError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(BatchError::Malformed)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u8(&mut self) -> Result<u8, BatchError> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, BatchError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BatchError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads bytes that follow their length.
    fn sized(&mut self) -> Result<&'a [u8], BatchError> {
        let len = usize::try_from(self.u32()?).map_err(|_| BatchError::Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(BatchError::Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<Cow<'static, str>, BatchError> {
        let text = str::from_utf8(self.sized()?).map_err(|_| BatchError::Malformed)?;
        Ok(String::from(text).into())
    }

    fn address(&mut self) -> Result<Address, BatchError> {
        let group = self.text()?;
        let key = StableKey(self.u64()?);
        Ok(Address { group, key })
    }
}

fn write_key(address: &Address, epoch: Epoch, bytes: &mut Vec<u8>) {
    put_sized(address.group.as_bytes(), bytes);
    put_u64s([address.key.0, epoch], bytes);
}

fn put_u32(value: u32, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

fn put_u64s<const N: usize>(values: [u64; N], bytes: &mut Vec<u8>) {
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
}

/// Writes the length of the value, and the value. It is shorter than 4 GiB, because no frame is longer.
fn put_sized(value: &[u8], bytes: &mut Vec<u8>) {
    put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX), bytes);
    bytes.extend_from_slice(value);
}

/// Reads the frames after the head of a batch of this process.
pub(super) fn frames_of(batch: &[u8], frames: u32) -> impl Iterator<Item = Frame> {
    let mut reader = Reader(&batch[HEAD..]);
    (0..frames).map_while(move |_| Frame::read(&mut reader).ok())
}

/// Writes the head of a batch over its first bytes, which a [`Chunk`](super::queue::Chunk) keeps free.
pub(super) fn write_head(head: &Head, bytes: &mut [u8]) {
    let &Head {
        process,
        session,
        seen,
        received,
        first,
        frames,
    } = head;
    let mut written = Vec::with_capacity(HEAD);
    written.push(VERSION);
    put_u64s([process, session, seen, received, first], &mut written);
    put_u32(frames, &mut written);
    bytes[..HEAD].copy_from_slice(&written);
}

/// Reads a batch.
pub(crate) fn read_batch(bytes: &[u8]) -> Result<(Head, Vec<Frame>), BatchError> {
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
    let frames: Vec<_> = frames.collect::<Result<_, _>>()?;
    match reader.0 {
        [] => Ok((head, frames)),
        _ => Err(BatchError::Malformed),
    }
}
