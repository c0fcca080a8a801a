//! The other processes of the cluster.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use bevy_due::worlds::{
    GroupsHandle,
    link::{BatchError, Peer, PeerSettings},
};
use zenoh::{Session, Wait, qos::CongestionControl};

use crate::keys::Keys;

/// The other processes of the cluster.
///
/// The engine calls this from the threads that read its connections, so no function here waits.
#[derive(Debug)]
pub(crate) struct Members {
    groups: GroupsHandle,
    settings: PeerSettings,
    pub(crate) keys: Keys,
    open: Mutex<Option<Open>>,
}

/// What is there until the link is closed. The ids of processes are those of the engine.
#[derive(Debug)]
struct Open {
    session: Session,
    members: HashMap<String, Member>,
    /// The threads that send to processes which have gone.
    ending: HashMap<String, JoinHandle<()>>,
}

/// A process that can be reached.
#[derive(Debug)]
struct Member {
    peer: Arc<Peer>,
    sender: JoinHandle<()>,
    /// How often it has come and not gone. The engine may report a new connection before the end of the
    /// last one.
    connections: usize,
    has_sent_garbage: bool,
}

impl Members {
    pub(crate) fn new(
        groups: GroupsHandle,
        settings: PeerSettings,
        keys: Keys,
        session: Session,
    ) -> Self {
        let open = Open {
            session,
            members: HashMap::new(),
            ending: HashMap::new(),
        };
        Self {
            groups,
            settings,
            keys,
            open: Mutex::new(Some(open)),
        }
    }

    /// Notes that a process can be reached.
    pub(crate) fn came(&self, id: &str, name: &str) {
        let mut open = self.lock();
        let Some(open) = &mut *open else {
            return;
        };
        if let Some(member) = open.members.get_mut(id) {
            member.connections += 1;
            return;
        }
        let peer = Arc::new(self.groups.connect(name, self.settings));
        let (session, key) = (open.session.clone(), self.keys.to(id));
        let before = open.ending.remove(id);
        let sent = peer.clone();
        let send = move || {
            // Batches for the last connection must not come between those for this one.
            before.map(JoinHandle::join);
            if let Err(error) = send(session, key, &sent) {
                tracing::debug!("no longer sends to {sent}: {error}");
            }
        };
        match thread::Builder::new()
            .name("zenoh sender".into())
            .spawn(send)
        {
            Ok(sender) => {
                let member = Member {
                    peer,
                    sender,
                    connections: 1,
                    has_sent_garbage: false,
                };
                open.members.insert(id.into(), member);
            }
            Err(error) => tracing::error!("can't start a thread that sends to {peer}: {error}"),
        }
    }

    /// Notes that a process has died, or can't be reached.
    pub(crate) fn went(&self, id: &str) {
        let mut open = self.lock();
        let Some(Open {
            members, ending, ..
        }) = &mut *open
        else {
            return;
        };
        let Some(member) = members.get_mut(id) else {
            return;
        };
        let peer = member.peer.clone();
        member.connections -= 1;
        let is_gone = member.connections == 0;
        if is_gone && let Some(member) = members.remove(id) {
            ending.retain(|_, sender| !sender.is_finished());
            ending.insert(id.into(), member.sender);
        }
        drop(open);
        // What was on its way is lost even if there is another connection.
        peer.disconnected();
        if is_gone {
            peer.close();
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
        match peer.receive(batch) {
            Ok(()) | Err(BatchError::Closed) => {}
            Err(error) => self.warn(id, error),
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
/// A put waits while the connection is congested, at most for the lease. The window of
/// [`PeerSettings`] keeps so little on its way that this is rare, and this thread serves no other process.
/// That a put succeeds proves nothing: the two ends of a [`Peer`] notice what is missing.
fn send(session: Session, key: String, peer: &Peer) -> zenoh::Result<()> {
    // A batch is as long as it should be, so the engine need not wait for more.
    let publisher = session
        .declare_publisher(key)
        .congestion_control(CongestionControl::Block)
        .express(true)
        .wait()?;
    drop(session);
    while let Some(batch) = peer.next_batch() {
        publisher.put(batch).wait()?;
    }
    Ok(())
}
