//! The other processes of the cluster.

use core::panic::AssertUnwindSafe;
use std::{
    collections::HashMap,
    panic::catch_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use async_nats::{Client, PublishErrorKind, Subject};
use bevy_due::worlds::{
    GroupsHandle,
    link::{BatchError, Peer, PeerSettings},
};
use tokio::runtime::Handle;

use crate::subjects::Subjects;

/// The other processes of the cluster.
///
/// The thread of the client calls this, so no function here waits.
#[derive(Debug)]
pub(crate) struct Members {
    groups: GroupsHandle,
    settings: PeerSettings,
    pub(crate) subjects: Subjects,
    open: Mutex<Option<Open>>,
}

/// What is there until the link is closed. The key of the maps is the id of a process.
#[derive(Debug)]
struct Open {
    client: Client,
    handle: Handle,
    members: HashMap<String, Member>,
    /// The threads that send to processes which have gone.
    ending: HashMap<String, JoinHandle<()>>,
}

/// A process that listens.
#[derive(Debug)]
struct Member {
    peer: Arc<Peer>,
    sender: JoinHandle<()>,
    has_sent_garbage: bool,
}

impl Members {
    pub(crate) fn new(
        groups: GroupsHandle,
        settings: PeerSettings,
        subjects: Subjects,
        client: Client,
        handle: Handle,
    ) -> Self {
        let open = Open {
            client,
            handle,
            members: HashMap::new(),
            ending: HashMap::new(),
        };
        Self {
            groups,
            settings,
            subjects,
            open: Mutex::new(Some(open)),
        }
    }

    /// Notes that a process listens.
    pub(crate) fn came(&self, id: &str, name: &str) {
        let mut open = self.lock();
        let Some(open) = &mut *open else {
            return;
        };
        if open.members.contains_key(id) {
            return;
        }
        let peer = Arc::new(self.groups.connect(name, self.settings));
        let (client, handle) = (open.client.clone(), open.handle.clone());
        let way = [self.subjects.to(id), self.subjects.from(id)];
        let before = open.ending.remove(id);
        let sent = peer.clone();
        let send = move || {
            // Batches for the last connection must not come between those for this one.
            before.map(JoinHandle::join);
            send(&handle, &client, way, &sent);
        };
        match thread::Builder::new()
            .name("nats sender".into())
            .spawn(send)
        {
            Ok(sender) => {
                let member = Member {
                    peer,
                    sender,
                    has_sent_garbage: false,
                };
                open.members.insert(id.into(), member);
            }
            Err(error) => tracing::error!("can't start a thread that sends to {peer}: {error}"),
        }
    }

    /// Notes that a process no longer listens. Returns `true` if it did so far.
    pub(crate) fn went(&self, id: &str) -> bool {
        let member = self.lock().as_mut().and_then(|open| {
            let Member { peer, sender, .. } = open.members.remove(id)?;
            open.ending.retain(|_, sender| !sender.is_finished());
            open.ending.insert(id.into(), sender);
            Some(peer)
        });
        if let Some(peer) = &member {
            peer.disconnected();
            peer.close();
        }
        member.is_some()
    }

    /// Notes that the server can't be reached. What was on its way is lost.
    pub(crate) fn disconnected(&self) {
        let peers = self.lock().as_ref().map(|open| {
            let members = open.members.values();
            Vec::from_iter(members.map(|member| member.peer.clone()))
        });
        for peer in peers.unwrap_or_default() {
            peer.disconnected();
        }
    }

    /// Takes a batch from a process.
    pub(crate) fn receive(&self, id: &str, batch: &[u8]) {
        let peer = match &*self.lock() {
            Some(open) => open.members.get(id).map(|member| member.peer.clone()),
            None => None,
        };
        // A process that is not known yet sends again.
        let Some(peer) = peer else {
            return;
        };
        // The function of `permit` may panic. Then the peer begins anew, and the others go on.
        match catch_unwind(AssertUnwindSafe(|| peer.receive(batch))) {
            Ok(Ok(()) | Err(BatchError::Closed)) => {}
            Ok(Err(error)) => self.warn(id, error),
            Err(_) => tracing::error!("a panic ended the connection with {peer}"),
        }
    }

    /// Reports the first batch of a process that can't be read.
    fn warn(&self, id: &str, error: BatchError) {
        if let Some(open) = &mut *self.lock()
            && let Some(member) = open.members.get_mut(id)
            && !member.has_sent_garbage
        {
            member.has_sent_garbage = true;
            tracing::warn!("can't read what {} sends: {error}", member.peer);
        }
    }

    /// Returns `true` while something is left to send. After the groups are closed, this ends.
    pub(crate) fn is_sending(&self) -> bool {
        let open = self.lock();
        open.as_ref().is_some_and(|open| {
            let members = open.members.values().map(|member| &member.sender);
            let mut senders = members.chain(open.ending.values());
            senders.any(|sender| !sender.is_finished())
        })
    }

    /// Forgets all processes.
    pub(crate) fn close(&self) {
        let open = self.lock().take();
        drop(open);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the batches for a process, until it has gone or the link is closed.
///
/// A publish only waits while the client has thousands of batches to write. The windows of
/// [`PeerSettings`] make this rare, and the pings of the client end it if the server is silent. That a
/// publish succeeds proves nothing: the two ends of a [`Peer`] notice what is missing.
fn send(handle: &Handle, client: &Client, [to, from]: [Subject; 2], peer: &Peer) {
    while let Some(batch) = peer.next_batch() {
        // The server replies if the process does not listen.
        let publish = client.publish_with_reply(to.clone(), from.clone(), batch.into());
        match handle.block_on(publish) {
            Ok(()) => {}
            Err(error) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                tracing::error!(
                    "can't send a batch to {peer}: {error}: raise `max_payload` of the server, or use a \
                     shorter name for the group"
                );
                peer.disconnected();
            }
            Err(error) => {
                tracing::debug!("no longer sends to {peer}: {error}");
                return;
            }
        }
    }
}
