//! Another process, as a link sees it.

use alloc::{
    sync::{Arc, Weak},
    vec::Vec,
};
use core::fmt;

use super::{
    hub::Hub,
    remote::{BatchError, Next, PeerSettings, Remote},
};

/// Another process, as a [`Link`](crate::worlds::link::Link) sees it: batches of bytes to carry there, and those
/// that come from there.
///
/// [`GroupsHandle::connect`](crate::worlds::GroupsHandle::connect) returns it. Drop it when the process is gone
/// for good.
///
/// A link runs a thread that takes a batch from [`next_batch`](Self::next_batch) and sends it, again and
/// again, and passes what arrives to [`receive`](Self::receive). It carries the batches in order, and
/// each at most once. The two processes shake hands before they exchange anything else, and both notice if
/// a batch is missing. Then they begin anew: parcels that wait are refused, and open requests fail.
#[derive(Debug)]
pub struct Peer {
    hub: Weak<Hub>,
    remote: Arc<Remote>,
}

impl Peer {
    pub(super) fn new(hub: &Arc<Hub>, name: Arc<str>, settings: PeerSettings) -> Self {
        Self {
            hub: Arc::downgrade(hub),
            remote: hub.connect(name, settings),
        }
    }

    /// Returns the name of the process.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.remote.name
    }

    /// Waits for the next batch to send to the process. Returns `None` once the peer is
    /// [closed](Self::close) and nothing is left to send.
    ///
    /// At the latest after [`PeerSettings::heartbeat`], this returns a batch without frames, by which the
    /// process knows that this one is alive. The thread that calls this also notices that the process is
    /// silent. Call it from one thread, and do not block that thread for long: a write to a process that
    /// reads nothing needs a time limit, after which the link calls [`disconnected`](Self::disconnected).
    #[must_use]
    pub fn next_batch(&self) -> Option<Vec<u8>> {
        loop {
            let next = self.remote.next();
            let hub = self.hub.upgrade();
            match (next, hub) {
                (Next::Send(batch, refused), hub) => {
                    if let Some(hub) = hub {
                        hub.tell_room(refused);
                    }
                    return Some(batch);
                }
                (Next::Suspect, Some(hub)) => hub.announce_suspicion(&self.remote),
                (Next::Lost(lost), Some(hub)) => hub.forget(&self.remote, Some(lost)),
                (Next::Suspect | Next::Lost(_), None) => {}
                (Next::Closed, _) => return None,
            }
        }
    }

    /// Takes a batch from the process. Never waits for a world: one that is full refuses its parcels, and
    /// the sender learns of it.
    ///
    /// # Errors
    ///
    /// Returns [`BatchError`] if the bytes are not a batch of this version. Nothing has changed then.
    pub fn receive(&self, batch: &[u8]) -> Result<(), BatchError> {
        match self.hub.upgrade() {
            Some(hub) => hub.receive(&self.remote, batch),
            None => {
                // It may confirm frames, so that further ones have room.
                self.remote.hear(batch).ok();
                Err(BatchError::Closed)
            }
        }
    }

    /// Notes that the process can't be reached, for example because its connection broke. Its worlds and
    /// keys are gone until it answers again.
    ///
    /// A link that does not notice this can leave it to [`PeerSettings::down_after`].
    pub fn disconnected(&self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.forget(&self.remote, self.remote.disconnect());
        }
    }

    /// Says goodbye to the process, and lets [`next_batch`](Self::next_batch) return `None` after all that
    /// waits, at the latest after [`PeerSettings::down_after`]. Until then, pass what arrives to
    /// [`receive`](Self::receive): the process confirms what it has got.
    pub fn close(&self) {
        self.remote.close();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        match self.hub.upgrade() {
            Some(hub) => hub.disconnect(&self.remote),
            None => self.remote.close(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
