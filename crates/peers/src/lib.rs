//! The other processes of a cluster, as a [link](bevy_due::worlds::link) knows them.
//!
//! [`Peers`] is what the links over different engines share. An engine reports which processes can be
//! reached and what they send, and brings the function that sends to one.

#![warn(clippy::unwrap_used)]

use core::{any::type_name, fmt, panic::AssertUnwindSafe};
use std::{
    collections::HashMap,
    panic::catch_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use bevy_due::worlds::{
    GroupsHandle,
    link::{BatchError, Peer, PeerSettings},
};

/// The other processes of the cluster. Each has an id, and a thread that sends to it.
///
/// `E` is what the threads need of the engine. An engine may call this from the threads that read its
/// connections, because no function here waits.
pub struct Peers<E> {
    groups: GroupsHandle,
    settings: PeerSettings,
    open: Mutex<Option<Open<E>>>,
}

/// What is there until the link is closed, by the ids of the processes.
struct Open<E> {
    engine: E,
    members: HashMap<String, Member>,
    /// The threads that send to processes which have gone.
    ending: HashMap<String, JoinHandle<()>>,
}

/// A process that can be reached.
struct Member {
    peer: Arc<Peer>,
    sender: JoinHandle<()>,
    /// How often it has come and not gone. An engine may report a new connection before the end of the
    /// last one.
    connections: usize,
    has_sent_garbage: bool,
}

impl<E: Clone + Send + 'static> Peers<E> {
    /// Returns a cluster in which no other process is known.
    pub fn new(groups: GroupsHandle, settings: PeerSettings, engine: E) -> Self {
        let open = Open {
            engine,
            members: HashMap::new(),
            ending: HashMap::new(),
        };
        Self {
            groups,
            settings,
            open: Mutex::new(Some(open)),
        }
    }

    /// Notes that a process can be reached, and runs `send` on a thread if it was not known.
    ///
    /// `send` passes on the [batches](Peer::next_batch) until there are no more.
    pub fn came(&self, id: &str, name: &str, send: impl FnOnce(E, &Peer) + Send + 'static) {
        let mut open = self.lock();
        let Some(open) = &mut *open else {
            return;
        };
        if let Some(member) = open.members.get_mut(id) {
            member.connections += 1;
            return;
        }
        let peer = Arc::new(self.groups.connect(name, self.settings));
        let (engine, sent) = (open.engine.clone(), peer.clone());
        let before = open.ending.remove(id);
        let send = move || {
            // Batches for the last connection must not come between those for this one.
            before.map(JoinHandle::join);
            send(engine, &sent);
        };
        match thread::Builder::new()
            .name("link sender".into())
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

    /// Notes that a connection with a process has ended. Returns `true` if it was the last one.
    pub fn went(&self, id: &str) -> bool {
        let mut open = self.lock();
        let Some(Open {
            members, ending, ..
        }) = &mut *open
        else {
            return false;
        };
        let Some(member) = members.get_mut(id) else {
            return false;
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
        is_gone
    }

    /// Takes a batch from a process.
    pub fn receive(&self, id: &str, batch: &[u8]) {
        // A process that is not known yet sends again.
        let Some(peer) = self.peer(id) else {
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

    /// Returns `true` if a process can be reached.
    pub fn knows(&self, id: &str) -> bool {
        self.peer(id).is_some()
    }

    fn peer(&self, id: &str) -> Option<Arc<Peer>> {
        let open = self.lock();
        open.as_ref()?
            .members
            .get(id)
            .map(|member| member.peer.clone())
    }

    /// Notes that what was on its way to and from all processes is lost.
    pub fn disconnected(&self) {
        let peers = self.lock().as_ref().map(|open| {
            let members = open.members.values();
            Vec::from_iter(members.map(|member| member.peer.clone()))
        });
        for peer in peers.unwrap_or_default() {
            peer.disconnected();
        }
    }

    /// Returns `true` while something is left to send. After the groups are closed, this ends.
    pub fn is_sending(&self) -> bool {
        let open = self.lock();
        open.as_ref().is_some_and(|open| {
            let members = open.members.values().map(|member| &member.sender);
            let mut senders = members.chain(open.ending.values());
            senders.any(|sender| !sender.is_finished())
        })
    }

    /// Forgets all processes, and the engine.
    pub fn close(&self) {
        let open = self.lock().take();
        drop(open);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open<E>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> fmt::Debug for Peers<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("Peers<{}>", type_name::<E>());
        f.debug_struct(&name).finish_non_exhaustive()
    }
}
