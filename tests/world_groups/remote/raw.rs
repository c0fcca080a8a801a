//! A process that sends what it likes.

use bevy_due::worlds::link::{BatchError, Peer};

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
const EMPTY: usize = 45;

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
        raw.send(&[vec![8]]).unwrap();
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

    /// Takes batches until a frame of this kind comes, which must be the last of its batch.
    pub(super) fn next_frame(&mut self, kind: u8) -> Vec<u8> {
        for _ in 0..1000 {
            let mut frames = self.next();
            self.send(&[]).unwrap();
            // The other process has told its worlds and keys.
            if frames.first() == Some(&8) {
                frames.remove(0);
            }
            if frames.first() == Some(&kind) {
                return frames;
            }
        }
        panic!("no frame of kind {kind} came");
    }

    /// Begins anew, as after a lost connection.
    pub(super) fn reset(&mut self) {
        (self.session, self.sent, self.received) = (self.session + 1, 0, 0);
    }

    /// Sends frames.
    pub(super) fn send(&mut self, frames: &[Vec<u8>]) -> Result<(), BatchError> {
        let mut batch = vec![1];
        for word in [PROCESS, self.session, self.theirs, self.received, self.sent] {
            batch.extend(word.to_le_bytes());
        }
        batch.extend((frames.len() as u32).to_le_bytes());
        batch.extend(frames.iter().flatten());
        self.sent += frames.len() as u64;
        self.peer.receive(&batch)
    }
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

pub(super) fn worlds(group: &str, worlds: u32) -> Vec<u8> {
    [&[3][..], &text(group), &worlds.to_le_bytes()].concat()
}

pub(super) fn bound(group: &str, key: u64, epoch: u64) -> Vec<u8> {
    [
        &[4][..],
        &text(group),
        &key.to_le_bytes(),
        &epoch.to_le_bytes(),
    ]
    .concat()
}

/// A parcel for a key, from this world of the process.
pub(super) fn parcel(group: &str, key: u64, world: u64, hops: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1];
    for word in [PROCESS, world, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.push(hops);
    bytes.extend(text(group));
    bytes.push(0);
    bytes.extend(key.to_le_bytes());
    bytes.push(0);
    bytes.extend(SAY.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// A refusal of a parcel, for a lack of room. The parcel is a frame that has come from the other process.
pub(super) fn refused(parcel: &[u8]) -> Vec<u8> {
    assert_eq!(parcel[0], 1, "it is a parcel");
    [&[2, 3][..], &parcel[1..]].concat()
}

/// Word of room for the world that has sent a parcel.
pub(super) fn room(group: &str, parcel: &[u8]) -> Vec<u8> {
    [&[6][..], &text(group), &parcel[1..33]].concat()
}
