//! What two processes tell each other, one frame after the other.

use alloc::{borrow::Cow, vec::Vec};

use super::{
    super::{
        address::{Address, StableKey},
        claim::Epoch,
        parcel::{Parcel, Part, RequestId},
    },
    wire::{Malformed, Reader, Writer},
};
use crate::message::{Delivery, Packet, RefusalReason};

/// What one process tells another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Parcel(Sent),
    /// A parcel was refused after it had left its process.
    Refused(Sent, RefusalReason),
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

/// A parcel on its way from one process to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) parcel: Parcel,
    pub(crate) way: Way,
}

/// Where a parcel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) source: Source,
    /// The number of processes that have passed the parcel on.
    pub(crate) hops: u8,
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
            Self::Parcel(sent) => write_parcel(&sent.parcel, sent.way, bytes),
            Self::Refused(sent, reason) => {
                bytes.put_u8(kind::REFUSED);
                bytes.put_u8(number_of(*reason));
                write_sent(&sent.parcel, sent.way, bytes);
            }
            Self::Worlds(group, worlds) => {
                bytes.put_u8(kind::WORLDS);
                bytes.put_sized(group.as_bytes());
                bytes.put_u32(*worlds);
            }
            Self::Bound(address, epoch) => {
                bytes.put_u8(kind::BOUND);
                bytes.put_address(address);
                bytes.put_u64(*epoch);
            }
            Self::Unbound(address, epoch) => {
                bytes.put_u8(kind::UNBOUND);
                bytes.put_address(address);
                bytes.put_u64(*epoch);
            }
            Self::Room(group, source) => {
                bytes.put_u8(kind::ROOM);
                bytes.put_sized(group.as_bytes());
                write_source(*source, bytes);
            }
            Self::Goodbye => bytes.put_u8(kind::GOODBYE),
            Self::Introduced => bytes.put_u8(kind::INTRODUCED),
        }
    }

    /// Reads the next frame.
    pub(super) fn read(reader: &mut Reader) -> Result<Self, Malformed> {
        Ok(match reader.u8()? {
            kind::PARCEL => Self::Parcel(read_sent(reader)?),
            kind::REFUSED => {
                let reason = reason_of(reader.u8()?)?;
                Self::Refused(read_sent(reader)?, reason)
            }
            kind::WORLDS => Self::Worlds(reader.text()?, reader.u32()?),
            kind::BOUND => Self::Bound(reader.address()?, reader.u64()?),
            kind::UNBOUND => Self::Unbound(reader.address()?, reader.u64()?),
            kind::ROOM => Self::Room(reader.text()?, read_source(reader)?),
            kind::GOODBYE => Self::Goodbye,
            kind::INTRODUCED => Self::Introduced,
            _ => return Err(Malformed),
        })
    }
}

/// Appends a frame with a parcel to bytes.
pub(super) fn write_parcel(parcel: &Parcel, way: Way, bytes: &mut Vec<u8>) {
    bytes.put_u8(kind::PARCEL);
    write_sent(parcel, way, bytes);
}

fn write_sent(parcel: &Parcel, way: Way, bytes: &mut Vec<u8>) {
    let Parcel {
        group,
        delivery,
        packet,
        part,
    } = parcel;
    write_source(way.source, bytes);
    bytes.put_u8(way.hops);
    bytes.put_sized(group.as_bytes());
    match delivery {
        Delivery::To(key) => {
            bytes.put_u8(0);
            bytes.put_u64(key.0);
        }
        Delivery::All => bytes.put_u8(1),
        Delivery::InTurn => bytes.put_u8(2),
    }
    match part {
        Part::Plain => bytes.put_u8(0),
        Part::Request { reply_to, request } => {
            bytes.put_u8(1);
            bytes.put_address(reply_to);
            write_request(*request, bytes);
        }
        Part::Reply(request) => {
            bytes.put_u8(2);
            write_request(*request, bytes);
        }
    }
    bytes.put_u32(packet.id());
    bytes.put_sized(packet.payload());
}

fn read_sent(reader: &mut Reader) -> Result<Sent, Malformed> {
    let source = read_source(reader)?;
    let hops = reader.u8()?;
    let group = reader.text()?;
    let delivery = match reader.u8()? {
        0 => Delivery::To(StableKey(reader.u64()?)),
        1 => Delivery::All,
        2 => Delivery::InTurn,
        _ => return Err(Malformed),
    };
    let part = match reader.u8()? {
        0 => Part::Plain,
        1 => Part::Request {
            reply_to: reader.address()?,
            request: read_request(reader)?,
        },
        2 => Part::Reply(read_request(reader)?),
        _ => return Err(Malformed),
    };
    let id = reader.u32()?;
    let packet = Packet::new(id, reader.sized()?);
    let parcel = Parcel {
        group,
        delivery,
        packet,
        part,
    };
    let way = Way { source, hops };
    Ok(Sent { parcel, way })
}

fn write_source(source: Source, bytes: &mut Vec<u8>) {
    bytes.put_u64(source.process);
    bytes.put_u64(source.world);
    bytes.put_u64(source.sequence);
    bytes.put_u64(source.seal);
}

fn read_source(reader: &mut Reader) -> Result<Source, Malformed> {
    Ok(Source {
        process: reader.u64()?,
        world: reader.u64()?,
        sequence: reader.u64()?,
        seal: reader.u64()?,
    })
}

fn write_request(request: RequestId, bytes: &mut Vec<u8>) {
    bytes.put_u64(request.token);
    bytes.put_u64(request.number);
}

fn read_request(reader: &mut Reader) -> Result<RequestId, Malformed> {
    Ok(RequestId {
        token: reader.u64()?,
        number: reader.u64()?,
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

fn reason_of(number: u8) -> Result<RefusalReason, Malformed> {
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
        _ => return Err(Malformed),
    })
}
