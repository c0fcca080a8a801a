//! The frames that wait for the thread that sends them.

use alloc::{borrow::Cow, collections::VecDeque, vec::Vec};

use bevy_platform::collections::{HashMap, HashSet};

use super::{
    super::{address::Address, members::Epoch},
    wire::{Frame, HEAD, Source, frames_of},
};

/// The frames that wait for the thread that sends them, as bytes.
#[derive(Default)]
pub(crate) struct Queue {
    /// The parcels and their refusals, in order.
    chunks: VecDeque<Chunk>,
    /// The length of all chunks.
    bytes: usize,
    worlds: HashMap<Cow<'static, str>, u32>,
    keys: HashMap<Address, KeyChange>,
    /// The worlds whose parcels found no room, with the groups of those parcels.
    refused: HashSet<(Source, Cow<'static, str>)>,
}

/// Frames that go out in one batch.
pub(super) struct Chunk {
    /// The head of the batch goes to the beginning.
    pub(super) bytes: Vec<u8>,
    pub(super) frames: u32,
}

/// A change of a key that the other process has yet to learn.
struct KeyChange {
    /// Whether the other process thinks that the key is bound.
    was_bound: bool,
    is_bound: bool,
    epoch: Epoch,
}

impl Chunk {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; HEAD].into(),
            frames: 0,
        }
    }

    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.frames += 1;
    }
}

impl Queue {
    /// Adds a frame after all others. It goes out with those before it, unless they are many.
    pub(super) fn push(&mut self, batch_bytes: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let is_full = |last: &Chunk| last.bytes.len() >= batch_bytes;
        if self.chunks.back().is_none_or(is_full) {
            self.chunks.push_back(Chunk::new());
        }
        if let Some(last) = self.chunks.back_mut() {
            let before = last.bytes.len();
            last.push(write);
            self.bytes += last.bytes.len() - before;
        }
    }

    /// Returns the length of the frames that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn set_worlds(&mut self, group: Cow<'static, str>, worlds: u32) {
        self.worlds.insert(group, worlds);
    }

    /// Notes whether a key was bound before, and whether it is now. A key that comes and goes before the
    /// other process learns of it takes no room.
    pub(super) fn set_key(
        &mut self,
        address: &Address,
        [was_bound, is_bound]: [bool; 2],
        epoch: Epoch,
    ) {
        let Some(change) = self.keys.get_mut(address) else {
            let change = KeyChange {
                was_bound,
                is_bound,
                epoch,
            };
            self.keys.insert(address.clone(), change);
            return;
        };
        (change.is_bound, change.epoch) = (is_bound, epoch);
        if !change.was_bound && !is_bound {
            self.keys.remove(address);
        }
    }

    /// Notes that a parcel of a world found no room.
    pub(super) fn note_refusal(&mut self, source: Source, group: Cow<'static, str>) {
        // Once for all parcels of the world.
        let source = Source {
            sequence: 0,
            seal: 0,
            hops: 0,
            ..source
        };
        self.refused.insert((source, group));
    }

    /// Returns the worlds to which there is room again.
    pub(crate) fn take_refused(&mut self) -> Vec<(Source, Cow<'static, str>)> {
        self.refused.drain().collect()
    }

    /// Takes the frames of the next batch. Changes of worlds and keys come first, so that no parcel comes
    /// before the key of its sender.
    pub(super) fn pop(&mut self, batch_bytes: usize) -> Option<Chunk> {
        if !self.worlds.is_empty() || !self.keys.is_empty() {
            return Some(self.pop_changes(batch_bytes));
        }
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.bytes.len() - HEAD;
        Some(chunk)
    }

    fn pop_changes(&mut self, batch_bytes: usize) -> Chunk {
        let worlds = self.worlds.extract_if(|_, _| true);
        let worlds = worlds.map(|(group, worlds)| Frame::Worlds(group, worlds));
        let keys = self.keys.extract_if(|_, _| true);
        let keys = keys.map(|(address, change)| match change.is_bound {
            true => Frame::Bound(address, change.epoch),
            false => Frame::Unbound(address, change.epoch),
        });
        let mut chunk = Chunk::new();
        for frame in worlds.chain(keys) {
            chunk.push(|bytes| frame.write(bytes));
            // The rest comes with the next batch.
            if chunk.bytes.len() >= batch_bytes {
                break;
            }
        }
        chunk
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.worlds.is_empty() && self.keys.is_empty()
    }

    /// Iterates over the parcels and the refusals, in order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = Frame> {
        let chunks = self.chunks.iter();
        chunks.flat_map(|chunk| frames_of(&chunk.bytes, chunk.frames))
    }
}
