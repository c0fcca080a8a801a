//! The bytes of a fuzzer, read as a script.

use bevy_ecs::prelude::*;

/// Bytes that are read from the front. Behind their end are zeros.
#[derive(Resource)]
pub(super) struct Bytes {
    bytes: Vec<u8>,
    at: usize,
}

impl Bytes {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        Self { bytes, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    /// Returns the next bytes, up to this many.
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        let from = self.at;
        self.at = self.bytes.len().min(from + bytes);
        &self.bytes[from..self.at]
    }
}
