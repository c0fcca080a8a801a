//! What the thread of a committer shares with the worlds, and what it does.

use core::{
    mem,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use std::{
    panic::catch_unwind,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::frame::Frame;
use crate::{
    crash_point::crash_point,
    error::JournalError,
    journal::{Journal, Record},
};

/// The disk has no space. The committer tries again, and no effect runs until it succeeds.
#[derive(Clone, Debug)]
pub struct Stall {
    /// When the first attempt failed.
    pub since: Instant,
    /// The error of the last attempt.
    pub error: JournalError,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Debug)]
pub(super) enum State {
    Running(Waiting),
    /// The frames that wait are the last ones.
    Closing(Waiting),
    Stopped(Option<JournalError>),
}

impl Default for State {
    fn default() -> Self {
        Self::Running(Waiting::default())
    }
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) frames: Vec<Submitted>,
    /// The frames before these are being written.
    pub(super) is_writing: bool,
    pub(super) stall: Option<Stall>,
}

#[derive(Debug)]
pub(super) struct Submitted {
    pub(super) frame: Frame,
    pub(super) committed: Arc<AtomicU64>,
}

const FIRST_RETRY: Duration = Duration::from_millis(10);
const LAST_RETRY: Duration = Duration::from_secs(1);

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn error(&self) -> Option<JournalError> {
        match &*self.state() {
            State::Stopped(error) => error.clone(),
            _ => None,
        }
    }

    pub(super) fn begin_close(&self) {
        let state = &mut *self.state();
        if let State::Running(waiting) = state {
            *state = State::Closing(mem::take(waiting));
        }
        self.changed.notify_all();
    }

    /// Commits until the committer is closed or fails.
    pub(super) fn run(&self, mut journal: Journal) -> Option<Journal> {
        let error = loop {
            let Some(frames) = self.take() else {
                break None;
            };
            if let Err(error) = self.commit(&mut journal, frames) {
                break Some(error);
            }
            self.end_writing();
        };
        let failed = error.is_some();
        // Frames that wait are dropped after the lock is free: effects own anything.
        let last = mem::replace(&mut *self.state(), State::Stopped(error));
        self.changed.notify_all();
        drop(last);
        (!failed).then_some(journal)
    }

    /// Waits until no frame waits. Returns the error that has stopped the committer.
    pub(super) fn wait(&self) -> Result<(), JournalError> {
        let mut state = self.state();
        loop {
            match &*state {
                State::Running(waiting) | State::Closing(waiting) => {
                    if waiting.frames.is_empty() && !waiting.is_writing {
                        return Ok(());
                    }
                }
                State::Stopped(error) => return error.clone().map_or(Ok(()), Err),
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end_writing(&self) {
        if let State::Running(waiting) | State::Closing(waiting) = &mut *self.state() {
            waiting.is_writing = false;
        }
        self.changed.notify_all();
    }

    /// Waits for frames. `None` if there will be no more.
    fn take(&self) -> Option<Vec<Submitted>> {
        let mut state = self.state();
        loop {
            match &mut *state {
                State::Running(waiting) if waiting.frames.is_empty() => {}
                State::Closing(waiting) if waiting.frames.is_empty() => return None,
                State::Running(waiting) | State::Closing(waiting) => {
                    waiting.is_writing = true;
                    return Some(mem::take(&mut waiting.frames));
                }
                State::Stopped(_) => return None,
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn commit(
        &self,
        journal: &mut Journal,
        mut frames: Vec<Submitted>,
    ) -> Result<(), JournalError> {
        let records = frames
            .iter_mut()
            .flat_map(|submitted| mem::take(&mut submitted.frame.records));
        self.append(journal, &records.collect::<Vec<_>>())?;
        let effects: usize = frames
            .iter()
            .map(|submitted| submitted.frame.effects.len())
            .sum();
        let mut ran = 0;
        for Submitted { frame, committed } in frames {
            for effect in frame.effects {
                if ran == effects / 2 {
                    crash_point!("effects.half_released");
                }
                catch_unwind(AssertUnwindSafe(effect)).map_err(|_| JournalError::EffectPanicked)?;
                ran += 1;
            }
            committed.fetch_add(1, Ordering::Release);
        }
        crash_point!("effects.released");
        Ok(())
    }

    /// Appends the batch, and tries again while the disk is full.
    fn append(&self, journal: &mut Journal, records: &[Record]) -> Result<(), JournalError> {
        let mut retry = FIRST_RETRY;
        loop {
            let error = match journal.append(records) {
                Err(error) if error.is_full() => error,
                result => {
                    self.set_stall(None);
                    return result;
                }
            };
            if !self.set_stall(Some(error.clone())) {
                return Err(error);
            }
            self.wait_unless_closed(retry);
            retry = LAST_RETRY.min(2 * retry);
        }
    }

    /// Reports a stall or its end. Returns whether the committer is still wanted.
    fn set_stall(&self, error: Option<JournalError>) -> bool {
        let mut state = self.state();
        let (State::Running(waiting) | State::Closing(waiting)) = &mut *state else {
            return false;
        };
        let since = waiting
            .stall
            .take()
            .map_or_else(Instant::now, |stall| stall.since);
        waiting.stall = error.map(|error| Stall { since, error });
        matches!(&*state, State::Running(_))
    }

    fn wait_unless_closed(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = self.state();
        // New frames wake it, too.
        while let (State::Running(_), Some(left)) =
            (&*state, end.checked_duration_since(Instant::now()))
        {
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
