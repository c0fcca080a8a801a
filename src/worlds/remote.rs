//! Another process, as the hub sees it: a queue of frames to send, and the handshake.

mod queue;
mod session;
mod wire;

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
use core::{
    fmt, mem,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::time::Instant;

use queue::{Chunk, Queue};
use session::Session;
pub(crate) use session::{Head, Heard, SessionId, random_process_id};
pub use wire::BatchError;
pub(crate) use wire::{Frame, Source, read_batch};

use super::{
    address::Address,
    link::PeerSettings,
    members::{Epoch, MemberId},
    news::Liveness,
    parcel::Parcel,
};
use crate::{
    message::RefusalReason,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// Another process.
pub(crate) struct Remote {
    pub(crate) id: MemberId,
    pub(crate) name: Arc<str>,
    /// The id of this process.
    process: u64,
    settings: PeerSettings,
    is_suspect: AtomicBool,
    state: Mutex<State>,
    /// Notified when there is a batch to send, and when the connection is closed.
    changed: Condvar,
    /// Held while the frames of a batch are handled.
    receiving: Mutex<()>,
}

struct State {
    session: Session,
    queue: Queue,
    /// The bytes that have arrived since the last batch was sent.
    unconfirmed: usize,
    /// The number of parcels that were sent and not refused, and of refusals for a lack of room without
    /// word of room since.
    accepted: u64,
    full: u64,
    /// Whether the hub has announced its worlds and keys.
    has_begun: bool,
    /// When this process said goodbye.
    closed: Option<Instant>,
    owes_hello: bool,
    /// When the last batch was sent, and when the last one arrived.
    sent: Instant,
    heard: Instant,
}

/// A connection has ended.
pub(crate) struct Lost {
    pub(crate) session: SessionId,
    /// The frames that were not sent.
    pub(crate) waiting: Queue,
}

/// The next step of the sending thread.
pub(crate) enum Next {
    /// Send this batch. There is room for parcels of these worlds again.
    Send(Vec<u8>, Vec<(Source, Cow<'static, str>)>),
    /// Report that nothing has been heard for a while.
    Suspect,
    /// Report that nothing has been heard for too long.
    Lost(Lost),
    /// End.
    Closed,
}

impl Remote {
    pub(crate) fn new(id: MemberId, name: Arc<str>, process: u64, settings: PeerSettings) -> Self {
        let now = Instant::now();
        // A shorter one would only keep a thread busy.
        let heartbeat = settings.heartbeat.max(Duration::from_millis(1));
        let settings = PeerSettings {
            heartbeat,
            ..settings
        };
        let state = State {
            session: Session::new(),
            queue: Queue::default(),
            unconfirmed: 0,
            accepted: 0,
            full: 0,
            has_begun: false,
            closed: None,
            owes_hello: true,
            sent: now,
            heard: now,
        };
        Self {
            id,
            name,
            process,
            settings,
            is_suspect: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
            receiving: Mutex::new(()),
        }
    }

    /// Returns `true` if nothing has been heard of the process for a while.
    pub(crate) fn is_suspect(&self) -> bool {
        self.is_suspect.load(Ordering::Relaxed)
    }

    /// Returns how the process is, if it is connected.
    pub(crate) fn liveness(&self) -> Liveness {
        match self.is_suspect() {
            true => Liveness::Suspect,
            false => Liveness::Up,
        }
    }

    /// Puts a parcel into the queue, and returns the connection.
    pub(crate) fn send(&self, parcel: &Parcel, source: Source) -> Result<SessionId, RefusalReason> {
        if self.is_too_large(parcel) {
            return Err(RefusalReason::TooLarge);
        }
        let bytes = parcel.packet.payload().len();
        let mut state = self.lock();
        let session = state.session.up().filter(|_| state.has_begun);
        let Some(session) = session.filter(|_| state.closed.is_none()) else {
            return Err(RefusalReason::UnknownGroup);
        };
        // A parcel that is larger than the whole queue can wait alone.
        let waiting = state.queue.bytes();
        if waiting > 0 && waiting + bytes > self.settings.queue_bytes {
            state.queue.note_refusal(source, parcel.group.clone());
            return Err(RefusalReason::Full);
        }
        state.accepted += 1;
        self.add(state, |bytes| {
            Frame::Parcel(parcel.clone(), source).write(bytes);
        });
        Ok(session)
    }

    /// Returns `true` if a parcel is too large for the connection.
    pub(crate) fn is_too_large(&self, parcel: &Parcel) -> bool {
        parcel.packet.payload().len() > self.settings.parcel_bytes.min(1 << 30)
    }

    fn add(&self, mut state: MutexGuard<State>, write: impl FnOnce(&mut Vec<u8>)) {
        let is_first = state.queue.is_empty();
        state.queue.push(self.settings.batch_bytes, write);
        drop(state);
        if is_first {
            self.changed.notify_all();
        }
    }

    /// Notes a refusal by the process. Returns `false` if it has refused more than it got.
    pub(crate) fn may_refuse(&self, reason: RefusalReason) -> bool {
        let mut state = self.lock();
        let Some(left) = state.accepted.checked_sub(1) else {
            return false;
        };
        state.accepted = left;
        state.full += u64::from(reason == RefusalReason::Full);
        true
    }

    /// Notes that the process has room. Returns `false` if it had already.
    pub(crate) fn may_have_room(&self) -> bool {
        let mut state = self.lock();
        let left = state.full.checked_sub(1);
        state.full = left.unwrap_or_default();
        left.is_some()
    }

    /// Tells the process what became of its parcel. A process that sends and does not read is cut off.
    pub(crate) fn answer(&self, frame: &Frame) -> Option<Lost> {
        let mut state = self.lock();
        if !state.has_begun {
            return None;
        }
        if state.queue.bytes() / 2 > self.settings.queue_bytes {
            return self.cut(&mut state);
        }
        self.add(state, |bytes| frame.write(bytes));
        None
    }

    /// Notes the number of worlds of a group here. The process learns of it before all parcels.
    pub(crate) fn set_worlds(&self, group: Cow<'static, str>, worlds: usize) {
        let worlds = u32::try_from(worlds).unwrap_or(u32::MAX);
        self.note(|queue| queue.set_worlds(group, worlds));
    }

    /// Notes whether a key was bound here, and whether it is now. The process learns of it before all
    /// parcels.
    pub(crate) fn set_key(&self, address: &Address, bound: [bool; 2], epoch: Epoch) {
        self.note(|queue| queue.set_key(address, bound, epoch));
    }

    fn note(&self, note: impl FnOnce(&mut Queue)) {
        let mut state = self.lock();
        if state.has_begun {
            note(&mut state.queue);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Begins to take parcels and changes of keys, unless this connection has been lost. Until then, the
    /// hub may change a key that it has yet to announce.
    pub(crate) fn begin(&self, session: SessionId) -> bool {
        let mut state = self.lock();
        let is_up = state.session.up() == Some(session);
        state.has_begun |= is_up;
        is_up
    }

    /// Waits for something to do, at most until the next heartbeat.
    pub(crate) fn next(&self) -> Next {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let silence = now.saturating_duration_since(state.heard);
            if self.is_done(&state, now) {
                return Next::Closed;
            }
            if state.session.up().is_some() {
                if silence >= self.settings.down_after
                    && let Some(lost) = self.cut(&mut state)
                {
                    return Next::Lost(lost);
                }
                if silence >= self.settings.suspect_after
                    && !self.is_suspect.swap(true, Ordering::Relaxed)
                {
                    return Next::Suspect;
                }
            }
            let quiet = now.saturating_duration_since(state.sent);
            let waits = self.settings.heartbeat.saturating_sub(quiet);
            if let Some(batch) = self.pop(&mut state, waits.is_zero()) {
                state.sent = now;
                state.unconfirmed = 0;
                state.owes_hello = false;
                let has_room = state.queue.bytes() <= self.settings.queue_bytes / 2;
                let refused = match has_room {
                    true => state.queue.take_refused(),
                    false => Vec::new(),
                };
                return Next::Send(batch, refused);
            }
            let limit = waits.min(self.patience(&state, silence));
            state = self.wait(state, limit);
        }
    }

    /// Returns `true` if the connection is closed, and all that waited was sent or finds no taker.
    fn is_done(&self, state: &State, now: Instant) -> bool {
        state.closed.is_some_and(|closed| {
            state.queue.is_empty()
                || state.session.up().is_none()
                || now.saturating_duration_since(closed) >= self.settings.down_after
        })
    }

    /// Returns the time until the silence of the process, or the wait for it after the goodbye, is too long.
    fn patience(&self, state: &State, silence: Duration) -> Duration {
        let PeerSettings {
            suspect_after,
            down_after,
            ..
        } = self.settings;
        let heard = match state.session.up() {
            Some(_) if self.is_suspect() => down_after.saturating_sub(silence),
            Some(_) => down_after.min(suspect_after).saturating_sub(silence),
            None => Duration::MAX,
        };
        let closed = state
            .closed
            .map(|closed| down_after.saturating_sub(closed.elapsed()));
        heard.min(closed.unwrap_or(Duration::MAX))
    }

    /// Returns the next batch, if one has to go out.
    fn pop(&self, state: &mut State, is_due: bool) -> Option<Vec<u8>> {
        let chunk = match state.session.up() {
            Some(_) if state.session.has_room(self.settings.window_bytes) => {
                state.queue.pop(self.settings.batch_bytes)
            }
            _ => None,
        };
        if chunk.is_none() && !is_due && !state.owes_hello {
            return None;
        }
        let mut chunk = chunk.unwrap_or_else(Chunk::new);
        let head = state.session.head(self.process, &chunk);
        wire::write_head(&head, &mut chunk.bytes);
        Some(chunk.bytes)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until the frames of other batches are handled, so that they stay in order.
    pub(crate) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.receiving
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a batch of this many bytes that has arrived, and returns the connection that it has
    /// ended.
    pub(crate) fn hear(&self, head: &Head, bytes: usize) -> (Heard, Option<Lost>) {
        let mut state = self.lock();
        state.heard = Instant::now();
        let heard = state.session.hear(head);
        let lost = heard.lost.map(|session| state.lose(session));
        // A batch without frames is not confirmed, or two idle processes would confirm without end.
        if head.frames > 0 {
            state.unconfirmed += bytes;
        }
        state.owes_hello |= heard.owes_hello || state.unconfirmed > self.settings.window_bytes / 4;
        // Otherwise the sending thread has nothing new to do.
        let has_work = state.owes_hello || !state.queue.is_empty();
        drop(state);
        if has_work {
            self.changed.notify_all();
        }
        (heard, lost)
    }

    /// Notes that the process lives. Returns `true` if it was suspected.
    pub(crate) fn revive(&self) -> bool {
        self.is_suspect.swap(false, Ordering::Relaxed)
    }

    /// Ends the connection, if there is one. The next handshake begins at once.
    pub(crate) fn disconnect(&self) -> Option<Lost> {
        self.cut(&mut self.lock())
    }

    fn cut(&self, state: &mut State) -> Option<Lost> {
        let session = state.session.restart();
        state.owes_hello = true;
        self.changed.notify_all();
        self.is_suspect.store(false, Ordering::Relaxed);
        session.map(|session| state.lose(session))
    }

    /// Says goodbye to the process. Waiting parcels are still sent.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if state.closed.is_some() {
            return;
        }
        if state.session.up().is_some() {
            let goodbye = |bytes: &mut Vec<u8>| Frame::Goodbye.write(bytes);
            state.queue.push(self.settings.batch_bytes, goodbye);
        }
        state.closed = Some(Instant::now());
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends a connection, and takes its waiting parcels.
    fn lose(&mut self, session: SessionId) -> Lost {
        self.has_begun = false;
        (self.accepted, self.full) = (0, 0);
        Lost {
            session,
            waiting: mem::take(&mut self.queue),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
