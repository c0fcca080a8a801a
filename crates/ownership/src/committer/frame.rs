//! What a world hands over at the end of a frame.

use core::fmt;

use crate::journal::Record;

/// Something that others can see of a frame. It must not block.
pub type Effect = Box<dyn FnOnce() + Send>;

/// The end of a frame: what it changed, and what others may see of it.
#[derive(Default)]
pub struct Frame {
    /// The records of the frame. None if it has changed nothing.
    pub records: Vec<Record>,
    /// Runs when this frame and all frames before it are durable.
    pub effects: Vec<Effect>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effects = self.effects.len();
        f.debug_struct("Frame")
            .field("records", &self.records)
            .field("effects", &effects)
            .finish()
    }
}
