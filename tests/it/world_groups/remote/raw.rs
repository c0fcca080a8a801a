//! A process that sends what it likes.

use bevy_due::worlds::{
    Address,
    link::{BatchError, Peer},
};
use serde::{Deserialize, Serialize};

use super::*;

/// A process whose batches a test writes by hand.
pub(super) struct Raw {
    pub(super) peer: Peer,
    session: u64,
    /// The session of the groups under test.
    theirs: u64,
    sent: u64,
    received: u64,
}

/// The length of a batch without frames.
pub(super) const EMPTY: usize = 45;

const PROCESS: u64 = 77;

impl Raw {
    /// Connects to groups, and shakes hands.
    pub(super) fn connect(groups: &WorldGroups, settings: PeerSettings) -> Self {
        let peer = groups.handle().connect("raw", settings);
        let mut raw = Self {
            peer,
            session: 88,
            theirs: 0,
            sent: 0,
            received: 0,
        };
        raw.next();
        raw.send(&[]).unwrap();
        // It has told all worlds and keys: none.
        raw.send(&[Frame::Introduced]).unwrap();
        raw
    }

    /// Takes the next batch, and returns its frames. They are confirmed by the next call of `send`.
    pub(super) fn next(&mut self) -> Vec<u8> {
        let batch = self.peer.next_batch().unwrap();
        let word = |at: usize| u64::from_le_bytes(batch[at..at + 8].try_into().unwrap());
        self.theirs = word(9);
        let frames = u32::from_le_bytes(batch[41..EMPTY].try_into().unwrap());
        self.received = word(33) + u64::from(frames);
        batch[EMPTY..].to_vec()
    }

    /// Takes batches until a wanted frame comes.
    pub(super) fn next_frame<T>(&mut self, wanted: impl Fn(Frame) -> Option<T>) -> T {
        for _ in 0..1000 {
            let frames = frames_of(&self.next());
            self.send(&[]).unwrap();
            if let Some(frame) = frames.into_iter().find_map(&wanted) {
                return frame;
            }
        }
        panic!("no such frame came");
    }

    /// Begins anew, as after a lost connection.
    pub(super) fn reset(&mut self) {
        (self.session, self.sent, self.received) = (self.session + 1, 0, 0);
    }

    /// Sends frames.
    pub(super) fn send(&mut self, frames: &[Frame]) -> Result<(), BatchError> {
        let mut batch = vec![1];
        for word in [PROCESS, self.session, self.theirs, self.received, self.sent] {
            batch.extend(word.to_le_bytes());
        }
        batch.extend((frames.len() as u32).to_le_bytes());
        for frame in frames {
            batch = postcard::to_extend(frame, batch).unwrap();
        }
        self.sent += frames.len() as u64;
        self.peer.receive(&batch)
    }
}

/// What the processes tell each other, as the crate sends it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Frame {
    Parcel(Parcel, Source),
    Refused(Refused, Source),
    Worlds(String, u32),
    Bound(Address, u64),
    Unbound(Address, u64),
    Room(String, Source),
    Goodbye,
    Introduced,
}

impl Frame {
    /// Returns the key that a frame binds, if it binds one.
    pub(super) fn bound_key(&self) -> Option<u64> {
        match self {
            Self::Bound(address, _) => Some(address.key.0),
            _ => None,
        }
    }
}

/// The world that has sent a parcel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Source {
    process: u64,
    world: u64,
    sequence: u64,
    seal: u64,
    hops: u8,
}

/// Reads frames.
pub(super) fn frames_of(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, rest) = postcard::take_from_bytes(bytes).unwrap();
        frames.push(frame);
        bytes = rest;
    }
    frames
}

pub(super) fn worlds(group: &str, worlds: u32) -> Frame {
    Frame::Worlds(group.into(), worlds)
}

pub(super) fn bound(group: &'static str, key: u64, epoch: u64) -> Frame {
    let (group, key) = (group.into(), StableKey(key));
    Frame::Bound(Address { group, key }, epoch)
}

/// A parcel for a key, from this world of the process.
pub(super) fn parcel(group: &'static str, key: u64, world: u64, hops: u8, payload: &[u8]) -> Frame {
    let source = Source {
        process: PROCESS,
        world,
        sequence: 0,
        seal: 0,
        hops,
    };
    let packet = Packet::new(SAY, payload);
    Frame::Parcel(Parcel::new(group, StableKey(key), packet), source)
}

/// A refusal of a parcel that has come from the other process, for a lack of room.
pub(super) fn refused(&(ref parcel, source): &(Parcel, Source)) -> Frame {
    let refused = Refused {
        parcel: parcel.clone(),
        reason: RefusalReason::Full,
    };
    Frame::Refused(refused, source)
}

/// Word of room for the world that has sent a parcel.
pub(super) fn room(group: &str, &(_, source): &(Parcel, Source)) -> Frame {
    Frame::Room(group.into(), source)
}
