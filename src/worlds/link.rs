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
//! - **Nothing waits.** A world that sends never waits for a link, and no lock is held while code of a link
//!   runs.
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
//! Each process has a connection to each other, and knows the keys of all. With a million keys in all
//! processes, a process holds 50 to 100 bytes for each, and takes milliseconds for each process that comes
//! or goes. [`permit`] can refuse keys that are never used. The figures are in `docs/thousand_shards.md` in
//! the repository.
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

use bevy_ecs::error::Result;

use super::handle::GroupsHandle;
pub use super::{
    effect::Effect,
    filter::FromPeer,
    news::{HasRoom, Liveness, PeerChanged},
    peer::Peer,
    remote::{BatchError, PeerSettings},
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
