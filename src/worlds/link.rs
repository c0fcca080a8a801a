//! Worlds in other processes. (feature `worlds`)
//!
//! A [`Link`] joins the [groups](crate::worlds::WorldGroups) of several processes. The worlds of other processes
//! are then members like those here: [`post`](crate::worlds::ParcelCommandsExt::post) and
//! [`ask_world`](crate::worlds::ParcelEntityCommandsExt::ask_world) reach them.
//!
//! A link is an adapter for a messaging engine. It finds the other processes, and carries bytes between
//! them. This crate does the rest: the queues and their bounds, the encoding, the handshake, and the
//! liveness of each process.
//!
//! # Guarantees
//!
//! - **Order per sender.** The parcels of a world to one process arrive in the order in which they were
//!   sent. So do parcels to one key, unless the key moves to another process in between. Parcels of different
//!   worlds have no order.
//! - **At most once.** A parcel may be lost with the connection, but is never delivered twice. Only a reply
//!   proves that it arrived.
//! - **A request ends.** It gets its reply, or [`NoAnswer`](crate::message::NoAnswer): after its
//!   time-out, when a world refuses it, or at once when its process goes. After
//!   [`PeerLost`](crate::message::RefusalReason::PeerLost), the process may have acted on the request. A
//!   request that several members have taken stays open for a reply of any of them, until its time-out.
//! - **Refusals come back.** A world learns of each parcel that another process refuses, with the same
//!   [`Refused`](crate::worlds::Refused) and `NoAnswer` as in one process. [`HasRoom`] tells when a full group has
//!   room again.
//! - **No world waits for a link.** A world never waits for the code of a link, and no lock is held while that
//!   code runs. While the keys of a process that has gone are looked up, all sends of this process wait: with
//!   ten million keys, for up to a fifth of a second.
//!
//! The package `bevy_due_ownership` adds entities that survive a crash and move between processes exactly
//! once. `docs/across_processes.md` in the repository has all promises across processes in one table.
//!
//! # Liveness
//!
//! A process that answers is [`Up`](Liveness::Up). One that is silent is [`Suspect`](Liveness::Suspect)
//! after two seconds, and [`Down`](Liveness::Down) after ten, or as soon as the link knows: see
//! [`PeerSettings`]. Each world gets [`PeerChanged`]. A suspect process keeps its keys and its requests,
//! and may come back. A process that is down has none. If it returns, both sides start a new connection.
//!
//! # Size
//!
//! Each process has a connection to each other, and knows the keys that all others announce. With a million of
//! them, a process holds 50 to 100 bytes for each, and takes milliseconds for each process that goes.
//! A world with many entities can [announce one key only](crate::worlds::WorldLink::announce_only).
//! `docs/thousand_shards.md` in the repository has figures.
//!
//! # Security
//!
//! A link decides who can connect, and whether the bytes are encrypted. [`permit`] limits what a process
//! may send, and which keys and groups it may claim. A reply needs the token of its request, which only
//! the worlds that were asked know.
//!
//! # Examples
//!
//! A link writes batches of bytes to its peer, and hands over the ones that it reads. This one uses two
//! channels in place of a network:
//!
//! ```
//! use std::{sync::{Arc, mpsc::{self, Receiver, Sender}}, thread::{self, JoinHandle}};
//! use bevy_due::{
//!     message::{Delivery, Packet},
//!     prelude::*,
//!     worlds::{
//!         GroupsHandle, Parcel, WorldGroups,
//!         link::{Link, Peer, PeerSettings},
//!     },
//! };
//! use bevy_ecs::prelude::*;
//!
//! struct ChannelLink {
//!     name: &'static str,
//!     ends: Option<(Sender<Vec<u8>>, Receiver<Vec<u8>>)>,
//!     sending: Option<JoinHandle<()>>,
//! }
//!
//! impl Link for ChannelLink {
//!     fn open(&mut self, groups: GroupsHandle) -> Result {
//!         let (to, from) = self.ends.take().ok_or("the link was opened before")?;
//!         let peer = Arc::new(groups.connect(self.name, PeerSettings::default()));
//!         let sender = peer.clone();
//!         self.sending = Some(thread::spawn(move || {
//!             while let Some(batch) = sender.next_batch() {
//!                 if to.send(batch).is_err() {
//!                     sender.disconnected();
//!                     return;
//!                 }
//!             }
//!         }));
//!         thread::spawn(move || {
//!             for batch in from {
//!                 // A batch that can't be read is no reason to stop.
//!                 if let Err(error) = peer.receive(&batch) {
//!                     eprintln!("{peer}: {error}");
//!                 }
//!             }
//!             peer.disconnected();
//!             peer.close();
//!         });
//!         Ok(())
//!     }
//!
//!     fn close(&mut self) {
//!         if let Some(sending) = self.sending.take() {
//!             sending.join().ok();
//!         }
//!     }
//! }
//!
//! const SAY: u32 = 1;
//!
//! # fn main() -> Result {
//! let ((to_game, from_chat), (to_chat, from_game)) = (mpsc::channel(), mpsc::channel());
//! let link = |name, ends| ChannelLink { name, ends: Some(ends), sending: None };
//!
//! // One process runs the chat.
//! let (hear, heard) = mpsc::channel();
//! let mut chat = WorldGroups::new();
//! chat.start("chat", 1, move |app| {
//!     app.add_plugins(DuePlugin::default());
//!     let hear = hear.clone();
//!     app.world_mut().spawn(MessageComponent::new().on_packet(SAY, move |_, said: &Packet| {
//!         hear.send(said.payload().to_vec()).ok();
//!     }));
//! })?;
//! chat.join(link("game", (to_game, from_game)))?;
//!
//! // Another runs the game.
//! let mut game = WorldGroups::new();
//! game.join(link("chat", (to_chat, from_chat)))?;
//! while game.running("chat") == 0 {
//!     thread::yield_now();
//! }
//! game.post(Parcel::new("chat", Delivery::InTurn, Packet::new(SAY, *b"hello")))?;
//! assert_eq!(heard.recv()?, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! [`permit`]: crate::worlds::WorldGroups::permit

use alloc::{
    sync::{Arc, Weak},
    vec::Vec,
};
use core::{fmt, time::Duration};

use bevy_ecs::error::Result;

use super::{
    address::Address,
    handle::GroupsHandle,
    hub::Hub,
    parcel::Parcel,
    remote::{Next, Remote, read_batch},
};
pub use super::{
    news::{HasRoom, Liveness, PeerChanged},
    remote::BatchError,
    world_link::Effect,
};

/// Connects the groups of several processes, over a messaging engine of your choice.
///
/// A link finds the other processes, and carries batches of bytes to and from each of them: see
/// [`Peer`]. [`WorldGroups::join`](crate::worlds::WorldGroups::join) opens it, and the end of
/// the groups closes it. Worlds never call a link, and no lock is held during a call.
pub trait Link: Send + 'static {
    /// Starts the engine and the threads that serve it. They [connect](GroupsHandle::connect) each process
    /// that they find.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine does not start.
    fn open(&mut self, groups: GroupsHandle) -> Result;

    /// Ends the engine. The peers are closed by now: send what
    /// [`next_batch`](crate::worlds::link::Peer::next_batch) returns until it is `None`.
    ///
    /// This may wait, but no longer than a user waits for the end of a program. If it panics, the other
    /// links are closed before the panic continues.
    fn close(&mut self);
}

/// Another process, as a [`Link`] sees it: batches of bytes to carry there, and those
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
        let Some(hub) = self.hub.upgrade() else {
            if let Ok((head, _)) = read_batch(batch) {
                // It may confirm frames, so that further ones have room.
                self.remote.hear(&head, batch.len());
            }
            return Err(BatchError::Closed);
        };
        hub.receive(&self.remote, batch)
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

/// What another process sends, for the function that
/// [`WorldGroups::permit`](crate::worlds::WorldGroups::permit) sets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FromPeer<'a> {
    /// A parcel for worlds of this process. If it is not permitted, the sender learns that it is
    /// [`Forbidden`](crate::message::RefusalReason::Forbidden).
    Parcel(&'a Parcel),
    /// The process says that it has the entity with this address. If that is not permitted, parcels for
    /// the address do not go there.
    Key(&'a Address),
    /// The process says that it runs worlds of this group. If that is not permitted, parcels for the
    /// group do not go there.
    Worlds(&'a str),
}

/// The bounds of the connection with another process.
///
/// # Examples
///
/// ```
/// use bevy_due::worlds::link::PeerSettings;
///
/// let settings = PeerSettings {
///     parcel_bytes: 4 << 20,
///     ..PeerSettings::default()
/// };
/// assert!(settings.parcel_bytes < settings.queue_bytes);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// The number of bytes that can wait to be sent. A parcel that does not fit is refused with
    /// [`Full`](crate::message::RefusalReason::Full). The default is 16 MiB.
    pub queue_bytes: usize,
    /// The length of the largest payload in bytes, in both directions. A parcel with a longer one is refused
    /// with
    /// [`TooLarge`](crate::message::RefusalReason::TooLarge). The default is 1 MiB, and the limit is 1 GiB.
    pub parcel_bytes: usize,
    /// The number of bytes on their way from which on nothing more is sent until the other process confirms
    /// some. The rest stays in the queue, so that no engine has to hold it. Both processes should have
    /// the same number. The default is 1 MiB.
    pub window_bytes: usize,
    /// The number of bytes from which on a batch takes no further frames. A batch is at most this and one
    /// parcel long. The default is 32 KiB.
    pub batch_bytes: usize,
    /// The time without other frames after which an empty batch is sent. The default is half a
    /// second, and the least is a millisecond. The other process must suspect this one only after several
    /// heartbeats.
    pub heartbeat: Duration,
    /// The time without a batch after which the process is suspected to be dead. The default is two
    /// seconds.
    pub suspect_after: Duration,
    /// The time without a batch after which the process counts as dead. It must be longer than the largest
    /// batch takes. After a [`close`](Peer::close), waiting parcels have this long to be sent. The
    /// default is ten seconds.
    pub down_after: Duration,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            queue_bytes: 16 << 20,
            parcel_bytes: 1 << 20,
            window_bytes: 1 << 20,
            batch_bytes: 32 << 10,
            heartbeat: Duration::from_millis(500),
            suspect_after: Duration::from_secs(2),
            down_after: Duration::from_secs(10),
        }
    }
}
