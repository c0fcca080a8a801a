//! The end of a committer that a world has.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};
use std::sync::Arc;

use super::{
    frame::Frame,
    shared::{Shared, State, Submitted},
};
use crate::error::JournalError;

/// Submits the frames of one world.
#[derive(Debug)]
pub struct Submitter {
    shared: Arc<Shared>,
    committed: Arc<AtomicU64>,
    submitted: u64,
    limit: u64,
}

/// Why a frame was not taken. It is handed back.
#[derive(Debug)]
pub enum SubmitError {
    /// Too many frames of this submitter are in flight. Add the next frame to this one, and try again.
    Busy(Frame),
    /// The committer has stopped for good.
    Stopped(Frame, Option<JournalError>),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(_) => f.write_str("too many frames are in flight: submit this one later"),
            Self::Stopped(_, Some(error)) => write!(f, "the committer has stopped: {error}"),
            Self::Stopped(_, None) => f.write_str("the committer was closed"),
        }
    }
}

impl core::error::Error for SubmitError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Stopped(_, Some(error)) => Some(error),
            _ => None,
        }
    }
}

impl Submitter {
    pub(super) fn new(shared: Arc<Shared>, limit: u64) -> Self {
        Self {
            shared,
            committed: Arc::default(),
            submitted: 0,
            limit: limit.max(1),
        }
    }

    /// Hands over a frame, and returns its number among those of this submitter, from 1 on. Never waits.
    ///
    /// # Errors
    ///
    /// Returns the frame if too many are in flight, or if the committer has stopped.
    pub fn submit(&mut self, frame: Frame) -> Result<u64, SubmitError> {
        if !self.has_room() {
            return match &*self.shared.state() {
                State::Stopped(error) => Err(SubmitError::Stopped(frame, error.clone())),
                _ => Err(SubmitError::Busy(frame)),
            };
        }
        match &mut *self.shared.state() {
            State::Running(waiting) => {
                let committed = self.committed.clone();
                waiting.frames.push(Submitted { frame, committed });
            }
            State::Closing(_) => return Err(SubmitError::Stopped(frame, None)),
            State::Stopped(error) => return Err(SubmitError::Stopped(frame, error.clone())),
        }
        self.shared.changed.notify_all();
        self.submitted += 1;
        Ok(self.submitted)
    }

    /// Returns the number of the last frame that is durable and whose effects have run. 0 if there is none.
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Returns the error that has stopped the committer, if one has.
    pub fn error(&self) -> Option<JournalError> {
        self.shared.error()
    }

    /// Returns whether [`submit`](Self::submit) takes a frame.
    pub fn has_room(&self) -> bool {
        self.submitted - self.committed() < self.limit
    }
}
