//! A thread that makes frames durable, and then runs their effects.

mod frame;
mod shared;
mod submitter;

use core::any::Any;
use std::{
    io,
    sync::Arc,
    thread::{self, JoinHandle},
};

pub use frame::{Effect, Frame};
pub use shared::Stall;
pub use submitter::{SubmitError, Submitter};

use crate::{error::JournalError, journal::Journal};
use shared::{Shared, State};

/// The thread that writes a [`Journal`].
///
/// It takes all frames that wait, writes them as one batch, and then runs their effects in the order in
/// which the frames were submitted. The first error stops it for good, except for a full disk.
///
/// Dropping it commits the frames that wait, and waits for them.
#[derive(Debug)]
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Option<Journal>>>,
}

impl Committer {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if it cannot create a thread.
    pub fn start(journal: Journal) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new().name("due committer".into()).spawn({
            let shared = shared.clone();
            move || shared.run(journal)
        })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Returns a submitter for a world, which can have `limit` frames in flight, and at least one.
    pub fn submitter(&self, limit: u64) -> Submitter {
        Submitter::new(self.shared.clone(), limit)
    }

    /// Returns since when the disk has no space, if it has none.
    pub fn stall(&self) -> Option<Stall> {
        match &*self.shared.state() {
            State::Running(waiting) | State::Closing(waiting) => waiting.stall.clone(),
            State::Stopped(_) => None,
        }
    }

    /// Waits until the frames that were submitted are durable, and their effects have run.
    ///
    /// # Errors
    ///
    /// Returns the error that has stopped the committer.
    pub fn wait(&self) -> Result<(), JournalError> {
        self.shared.wait()
    }

    /// Commits the frames that wait, and returns the journal.
    ///
    /// # Errors
    ///
    /// Returns the error that has stopped the committer. A full disk is such an error now.
    pub fn close(mut self) -> Result<Journal, JournalError> {
        match self.join() {
            Some(Ok(Some(journal))) => Ok(journal),
            _ => Err(self.shared.error().unwrap_or(JournalError::EffectPanicked)),
        }
    }

    fn join(&mut self) -> Option<Result<Option<Journal>, Box<dyn Any + Send>>> {
        self.shared.begin_close();
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.join();
    }
}
