//! A thread that makes frames durable, and then runs their effects.

#[cfg(test)]
mod tests;

use core::{
    mem,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU64, Ordering::AcqRel},
    time::Duration,
};
use std::{
    io,
    panic::catch_unwind,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Instant,
};

use crate::{
    error::JournalError,
    journal::{Change, Journal},
};

/// Something that others can see of a frame. It must not block.
pub(crate) type Effect = Box<dyn FnOnce() + Send>;

/// The end of a frame: what it changed, and what others may see of it.
struct Frame {
    changes: Vec<Change>,
    /// Run when this frame and all frames before it are durable.
    effects: Vec<Effect>,
    /// The number of effects of its world that have panicked.
    panics: Arc<AtomicU64>,
}

/// The disk is behind. Nothing that the zones do is seen meanwhile.
#[derive(Clone, Debug)]
pub struct Stall {
    /// Since when the oldest frame waits.
    pub since: Instant,
    /// [`Full`](JournalError::Full) if the disk has no space. `None` if it has not answered.
    pub error: Option<JournalError>,
}

/// The frames of a world that may wait for the disk at once.
const FRAMES_IN_FLIGHT: usize = 2;

/// How long a write may take before it counts as a stall.
const SLOW: Duration = Duration::from_secs(1);

const FIRST_RETRY: Duration = Duration::from_millis(10);
const LAST_RETRY: Duration = Duration::from_secs(1);

/// The thread that writes a [`Journal`].
///
/// It takes all frames that wait, writes them together, and then runs their effects in the order in which the frames
/// were submitted. The first error stops it for good, except for a full disk.
///
/// Dropping it commits the frames that wait, and waits for them.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Submits the frames of one world.
pub(crate) struct Submitter {
    shared: Arc<Shared>,
    /// Each frame that is not durable shares it.
    panics: Arc<AtomicU64>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    phase: Phase,
    waiting: Vec<Frame>,
    /// Since when frames are being written.
    writing_since: Option<Instant>,
    /// The error of the last attempt to write them.
    full: Option<JournalError>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Running,
    /// The frames that wait are the last ones.
    Closing,
    /// With the error, if there was one.
    Stopped(Option<JournalError>),
}

impl Committer {
    pub(crate) fn start(journal: Journal) -> io::Result<Self> {
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

    pub(crate) fn submitter(&self) -> Submitter {
        Submitter {
            shared: self.shared.clone(),
            panics: Arc::default(),
        }
    }

    /// Returns since when the disk is behind, if it is.
    pub(crate) fn stall(&self) -> Option<Stall> {
        self.shared.state().stall()
    }

    /// Waits until the frames that were submitted are durable, and their effects have run.
    pub(crate) fn wait(&self) -> Result<(), JournalError> {
        let is_busy = |state: &mut State| {
            let is_busy = !state.waiting.is_empty() || state.writing_since.is_some();
            is_busy && !matches!(state.phase, Phase::Stopped(_))
        };
        let state = self.shared.changed.wait_while(self.shared.state(), is_busy);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.error().map_or(Ok(()), Err)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Phase::Running = state.phase {
            state.phase = Phase::Closing;
        }
        drop(state);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Submitter {
    /// Hands over a frame. Never waits.
    pub(crate) fn submit(
        &self,
        changes: Vec<Change>,
        effects: Vec<Effect>,
    ) -> Result<(), JournalError> {
        let mut state = self.shared.state();
        match &state.phase {
            Phase::Running => {}
            Phase::Closing | Phase::Stopped(None) => return Err(JournalError::Closed),
            Phase::Stopped(Some(error)) => return Err(error.clone()),
        }
        state.waiting.push(Frame {
            changes,
            effects,
            panics: self.panics.clone(),
        });
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Returns `true` if the next frame can be submitted. Otherwise, add it to the one after it.
    pub(crate) fn has_room(&self) -> bool {
        Arc::strong_count(&self.panics) <= FRAMES_IN_FLIGHT
    }

    /// Waits until there is room. Returns the stall if there is none after `limit`.
    pub(crate) fn wait_for_room(&self, limit: Duration) -> Result<Option<Stall>, JournalError> {
        let has_no_room = |state: &mut State| {
            let is_stopped = matches!(state.phase, Phase::Stopped(_));
            !is_stopped && !self.has_room()
        };
        let changed = &self.shared.changed;
        let waited = changed.wait_timeout_while(self.shared.state(), limit, has_no_room);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.error() {
            Some(error) => Err(error),
            None if self.has_room() => Ok(None),
            None => Ok(state.stall()),
        }
    }

    /// Returns the error that has stopped the committer, if one has.
    pub(crate) fn error(&self) -> Option<JournalError> {
        self.shared.state().error()
    }

    /// Returns the number of effects that have panicked since the last call.
    pub(crate) fn take_panics(&self) -> u64 {
        self.panics.swap(0, AcqRel)
    }
}

impl State {
    fn error(&self) -> Option<JournalError> {
        match &self.phase {
            Phase::Stopped(error) => error.clone(),
            Phase::Running | Phase::Closing => None,
        }
    }

    fn stall(&self) -> Option<Stall> {
        let since = self.writing_since?;
        let error = self.full.clone();
        let is_slow = error.is_some() || since.elapsed() >= SLOW;
        is_slow.then_some(Stall { since, error })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits until the committer is closed or fails.
    fn run(&self, mut journal: Journal) {
        while let Some(frames) = self.take() {
            let result = self.commit(&mut journal, frames);
            let mut state = self.state();
            (state.writing_since, state.full) = (None, None);
            if let Err(error) = result {
                state.phase = Phase::Stopped(Some(error));
            }
            drop(state);
            self.changed.notify_all();
        }
        let mut state = self.state();
        if let Phase::Closing = state.phase {
            state.phase = Phase::Stopped(None);
        }
        let lost = mem::take(&mut state.waiting);
        drop(state);
        // Effects own anything, so they are dropped without the lock.
        drop(lost);
    }

    /// Waits for frames. `None` if there will be no more.
    fn take(&self) -> Option<Vec<Frame>> {
        let is_idle =
            |state: &mut State| state.waiting.is_empty() && matches!(state.phase, Phase::Running);
        let state = self.changed.wait_while(self.state(), is_idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.waiting.is_empty() || matches!(state.phase, Phase::Stopped(_)) {
            return None;
        }
        state.writing_since = Some(Instant::now());
        Some(mem::take(&mut state.waiting))
    }

    fn commit(&self, journal: &mut Journal, mut frames: Vec<Frame>) -> Result<(), JournalError> {
        let changes = frames.iter_mut().flat_map(|it| mem::take(&mut it.changes));
        self.append(journal, &changes.collect::<Vec<_>>())?;
        for Frame {
            effects, panics, ..
        } in frames
        {
            for effect in effects {
                if catch_unwind(AssertUnwindSafe(effect)).is_err() {
                    panics.fetch_add(1, AcqRel);
                }
            }
        }
        Ok(())
    }

    /// Makes the changes, and tries again while the disk is full, unless the committer is closed.
    fn append(&self, journal: &mut Journal, changes: &[Change]) -> Result<(), JournalError> {
        let mut retry = FIRST_RETRY;
        loop {
            let error = match journal.append(changes) {
                Err(error) if error.is_full() => error,
                result => return result,
            };
            let mut state = self.state();
            state.full = Some(error.clone());
            let is_wanted = |state: &mut State| matches!(state.phase, Phase::Running);
            let waited = self.changed.wait_timeout_while(state, retry, is_wanted);
            let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            drop(state);
            if !waited.timed_out() {
                return Err(error);
            }
            retry = LAST_RETRY.min(2 * retry);
        }
    }
}
