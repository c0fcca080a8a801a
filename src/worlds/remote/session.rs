//! The handshake between two processes, and the numbers of the frames that they exchange.
//!
//! Each side names its end of the connection with a random number, and each batch of frames carries both
//! numbers. A side sends frames only after the other has repeated its number, so no frame is lost before
//! the other side listens. If a side misses a frame, or knows that it was thought dead, it chooses a new
//! number. The other side then does the same. So both always agree on where their connection began.

use alloc::collections::VecDeque;
use core::hash::BuildHasher;
use std::hash::RandomState;

use postcard::fixint;
use serde::{Deserialize, Serialize};

use super::queue::Chunk;

/// The state of one end of a connection.
pub(super) struct Session {
    /// The number of this end.
    mine: SessionId,
    /// The number of the other end, or zero while it is not known.
    theirs: SessionId,
    /// Whether the other side knows the number of this end.
    is_up: bool,
    /// The numbers of frames that were sent and received.
    sent: u64,
    received: u64,
    /// The batches that the other side has yet to confirm: the number of frames that were sent with each
    /// batch and before, and the length of the batch.
    in_flight: VecDeque<(u64, usize)>,
    bytes_in_flight: usize,
}

/// A random number above zero.
pub(crate) type SessionId = u64;

/// The head of a batch. Its length is the same for all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The random id of the sending process.
    #[serde(with = "fixint::le")]
    pub(crate) process: u64,
    #[serde(with = "fixint::le")]
    pub(crate) session: SessionId,
    /// The number of the receiving end, as far as the sending end knows it, or zero.
    #[serde(with = "fixint::le")]
    pub(crate) seen: SessionId,
    /// The number of frames that were received.
    #[serde(with = "fixint::le")]
    pub(crate) received: u64,
    /// The number of frames that were sent before.
    #[serde(with = "fixint::le")]
    pub(crate) first: u64,
    /// The number of frames in the batch.
    #[serde(with = "fixint::le")]
    pub(crate) frames: u32,
}

/// The meaning of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The connection that this batch has ended.
    pub(crate) lost: Option<SessionId>,
    /// The connection that this batch has begun.
    pub(crate) begun: Option<SessionId>,
    /// The frames of the batch that are new, as the number of those to skip, and their connection.
    pub(crate) frames: Option<(u32, SessionId)>,
    /// Whether the other side needs a batch, even an empty one.
    pub(crate) owes_hello: bool,
}

impl Session {
    pub(super) fn new() -> Self {
        Self {
            mine: random_id(),
            theirs: 0,
            is_up: false,
            sent: 0,
            received: 0,
            in_flight: VecDeque::new(),
            bytes_in_flight: 0,
        }
    }

    /// Returns the number of this end, if frames can be sent.
    pub(super) fn up(&self) -> Option<SessionId> {
        self.is_up.then_some(self.mine)
    }

    /// Returns `true` if there is room for another batch. It may be longer than the room: the other process
    /// confirms soon only what is a good part of the bound.
    pub(super) fn has_room(&self, bound: usize) -> bool {
        self.bytes_in_flight == 0 || self.bytes_in_flight < bound
    }

    /// Returns the head of the next batch.
    pub(super) fn head(&mut self, process: u64, chunk: &Chunk) -> Head {
        let first = self.sent;
        if chunk.frames > 0 {
            self.sent += u64::from(chunk.frames);
            self.in_flight.push_back((self.sent, chunk.bytes.len()));
            self.bytes_in_flight += chunk.bytes.len();
        }
        Head {
            process,
            session: self.mine,
            seen: self.theirs,
            received: self.received,
            first,
            frames: chunk.frames,
        }
    }

    /// Ends the connection, and begins the next handshake. Returns the connection that has ended.
    pub(super) fn restart(&mut self) -> Option<SessionId> {
        let lost = self.up();
        *self = Self::new();
        lost
    }

    /// Takes note of a batch.
    pub(super) fn hear(&mut self, head: &Head) -> Heard {
        let mut heard = Heard {
            lost: None,
            begun: None,
            frames: None,
            owes_hello: false,
        };
        if head.session != self.theirs {
            // An end that is not up has told its number to no one, or waits for the answer.
            if self.is_up {
                heard.lost = self.restart();
            }
            (self.theirs, self.received) = (head.session, 0);
            heard.owes_hello = true;
        }
        if head.seen != self.mine {
            // The other side has yet to learn of this end, or thinks of an earlier one.
            heard.owes_hello = true;
            return heard;
        }
        if !self.is_up {
            self.is_up = true;
            heard.begun = Some(self.mine);
            heard.owes_hello = true;
        }
        self.land(head.received);
        if head.first > self.received {
            // A frame is missing. A connection that would have begun now was never one.
            let lost = self.restart();
            if heard.begun.take().is_none() {
                heard.lost = lost;
            }
            heard.owes_hello = true;
            return heard;
        }
        let after = head.first.saturating_add(u64::from(head.frames));
        if after > self.received {
            // No more than `frames`.
            let skip = (self.received - head.first) as u32;
            self.received = after;
            heard.frames = Some((skip, self.mine));
        }
        heard
    }

    /// Notes that the other side has received this number of frames.
    fn land(&mut self, received: u64) {
        let landed = |(sent, _): &mut (u64, usize)| *sent <= received;
        while let Some((_, bytes)) = self.in_flight.pop_front_if(landed) {
            self.bytes_in_flight -= bytes;
        }
    }
}

fn random_id() -> SessionId {
    RandomState::new().hash_one("session").max(1)
}

/// Returns a random id for a process.
pub(crate) fn random_process_id() -> u64 {
    RandomState::new().hash_one("process")
}
