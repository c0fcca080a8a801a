//! Other processes: what the hub tells them, and what they tell the hub.

use alloc::{borrow::Cow, sync::Arc};
use core::{mem, panic::AssertUnwindSafe, sync::atomic::Ordering};
use std::panic::{catch_unwind, resume_unwind};

use super::{
    super::{
        address::Address,
        link::{FromPeer, PeerSettings},
        members::{Claim, Epoch, Member},
        news::{HasRoom, Liveness, report_refusal, tell_world},
        parcel::{Parcel, Refused},
        remote::{BatchError, Frame, Lost, Remote, SessionId, Source, read_batch},
    },
    Connection, Filter, Hub,
};
use crate::{message::RefusalReason, sync::PoisonError};

impl Hub {
    /// Returns an empty hub.
    pub(crate) fn closed() -> Arc<Self> {
        let hub = Self::default();
        hub.close();
        Arc::new(hub)
    }

    /// Adds another process. It has no worlds and no keys until it tells of them.
    pub(crate) fn connect(&self, name: Arc<str>, settings: PeerSettings) -> Arc<Remote> {
        let mut members = self.write();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let remote = Arc::new(Remote::new(id, name, self.process, settings));
        if members.is_closed {
            remote.close();
        }
        members.remotes.insert(id, remote.clone());
        remote
    }

    /// Removes another process.
    pub(crate) fn disconnect(&self, remote: &Remote) {
        remote.close();
        self.forget(remote, remote.disconnect());
        let mut members = self.write();
        // A thread that has cut this connection off may be slower.
        members.forget(remote);
        let removed = members.remotes.remove(&remote.id);
        drop(members);
        drop(removed);
    }

    /// Closes the connections to all other processes. Parcels that wait for them are still sent.
    pub(crate) fn close(&self) {
        let mut members = self.write();
        members.is_closed = true;
        for remote in members.remotes.values() {
            remote.close();
        }
    }

    /// Takes a batch from another process.
    pub(crate) fn receive(
        self: &Arc<Self>,
        remote: &Arc<Remote>,
        batch: &[u8],
    ) -> Result<(), BatchError> {
        let (head, mut frames) = read_batch(batch)?;
        let turn = remote.take_turn();
        let (heard, lost) = remote.hear(&head, batch.len());
        self.forget(remote, lost);
        let was_suspect = remote.revive();
        if let Some(session) = heard.begun {
            self.begin(remote, session, head.process);
        } else if was_suspect {
            self.announce_suspicion(remote);
        }
        if let Some((known, session)) = heard.frames {
            let handle = || {
                for frame in frames.drain(known as usize..) {
                    self.handle(remote, session, frame);
                }
            };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(handle)) {
                // The filter has panicked. The frames that are left are lost, so both sides begin anew.
                self.forget(remote, remote.disconnect());
                resume_unwind(panic);
            }
        }
        drop(turn);
        Ok(())
    }

    /// Begins a connection: tells the other process of all worlds and keys here.
    fn begin(&self, remote: &Remote, session: SessionId, process: u64) {
        let mut members = self.write();
        // A link that looks for processes may find this one.
        let is_other = process != self.process && members.remotes.contains_key(&remote.id);
        if !is_other || !remote.begin(session) {
            return;
        }
        // The thread that knows of the end of the last connection may be slower.
        members.forget(remote);
        let connection = Connection {
            session,
            process,
            is_introduced: false,
        };
        members.connections.insert(remote.id, connection);
        for (name, group) in &members.groups {
            let worlds = group.worlds_here();
            if worlds > 0 {
                remote.set_worlds(name.clone(), worlds);
            }
            for (&key, &epoch) in &group.announced {
                let group = name.clone();
                remote.set_key(&Address { group, key }, [false, true], epoch);
            }
        }
        // After all worlds and keys, and before all parcels.
        let lost = remote.answer(&Frame::Introduced);
        debug_assert!(lost.is_none(), "the queue was empty");
    }

    /// Another process has told its worlds and keys: from now on it is up.
    fn note_introduced(&self, remote: &Remote, session: SessionId) {
        let mut members = self.write();
        if let Some(connection) = members.connected(remote, session)
            && !mem::replace(&mut connection.is_introduced, true)
        {
            members.announce(remote, Liveness::Up);
        }
    }

    /// Removes the worlds and keys of another process whose connection has ended, and refuses the parcels
    /// that were not sent.
    pub(crate) fn forget(&self, remote: &Remote, lost: Option<Lost>) {
        let Some(Lost {
            session,
            mut waiting,
        }) = lost
        else {
            return;
        };
        let mut members = self.write();
        if members.connected(remote, session).is_some() {
            members.forget(remote);
        }
        drop(members);
        for frame in waiting.frames() {
            if let Frame::Parcel(parcel, source) = frame {
                self.refuse(parcel.refused(RefusalReason::PeerLost), source);
            }
        }
        self.tell_room(waiting.take_refused());
    }

    /// Handles a frame from another process.
    fn handle(self: &Arc<Self>, remote: &Arc<Remote>, session: SessionId, frame: Frame) {
        match frame {
            Frame::Parcel(parcel, source) => self.take(remote, parcel, source),
            Frame::Refused(refused, source) => {
                if remote.may_refuse(refused.reason) {
                    self.refuse(refused, source);
                }
            }
            Frame::Worlds(group, worlds) => {
                if self.permits(remote, FromPeer::Worlds(&group)) {
                    self.set_worlds(remote, session, group, worlds);
                }
            }
            Frame::Bound(address, epoch) => {
                if self.permits(remote, FromPeer::Key(&address)) {
                    self.bind_elsewhere(remote, session, &address, epoch);
                }
            }
            Frame::Unbound(address, epoch) => {
                let mut members = self.write();
                if let Some(group) = members.groups.get_mut(&address.group) {
                    group.unbind(address.key, remote.id, epoch);
                    members.drop_if_empty(&address.group);
                }
            }
            Frame::Room(group, source) => {
                if remote.may_have_room() {
                    self.tell_room([(source, group)]);
                }
            }
            Frame::Goodbye => self.forget(remote, remote.disconnect()),
            Frame::Introduced => self.note_introduced(remote, session),
        }
    }

    /// Takes a parcel from another process. If it is refused, that process learns of it.
    fn take(self: &Arc<Self>, remote: &Remote, parcel: Parcel, mut source: Source) {
        source.hops = source.hops.saturating_add(1);
        let taken = if remote.is_too_large(&parcel) {
            Err(RefusalReason::TooLarge)
        } else if self.permits(remote, FromPeer::Parcel(&parcel)) {
            self.send(&parcel, source)
        } else {
            Err(RefusalReason::Forbidden)
        };
        if let Err(reason) = taken {
            self.answer(remote, &Frame::Refused(parcel.refused(reason), source));
        }
    }

    fn set_worlds(
        &self,
        remote: &Arc<Remote>,
        session: SessionId,
        group: Cow<'static, str>,
        worlds: u32,
    ) {
        let mut members = self.write();
        if members.connected(remote, session).is_none() {
            return;
        }
        match worlds {
            1.. => {
                let group = members.groups.entry(group).or_default();
                group.add(remote.id, Member::Elsewhere(remote.clone(), worlds));
            }
            0 => {
                if let Some(group) = members.groups.get_mut(&group) {
                    group.remove(remote.id);
                }
                members.drop_if_empty(&group);
            }
        }
    }

    fn bind_elsewhere(&self, remote: &Remote, session: SessionId, address: &Address, epoch: Epoch) {
        let mut members = self.write();
        members.epoch = members.epoch.max(epoch);
        if let Some(connection) = members.connected(remote, session) {
            let claim = Claim {
                member: remote.id,
                epoch,
                process: connection.process,
            };
            members.bind(address, claim);
        }
    }

    fn permits(&self, remote: &Remote, what: FromPeer) -> bool {
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        // The function may set another filter.
        let filter = { filter }.clone();
        filter.is_none_or(|permits| permits(&remote.name, what))
    }

    /// Sets the filter for parcels, keys and groups of other processes.
    pub(crate) fn set_filter(&self, filter: Arc<Filter>) {
        let mut place = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        *place = Some(filter);
    }

    /// Tells the world that has sent a parcel that it was refused.
    fn refuse(&self, refused: Refused, source: Source) {
        if source.process != self.process {
            // The parcel was passed on.
            if let Some(remote) = self.peer_of(source) {
                self.answer(&remote, &Frame::Refused(refused, source));
            }
        } else if source.seal == self.seal(source, &refused.parcel) {
            self.run(source.world, move |world| report_refusal(world, refused));
        }
        // This process has never sent a parcel with another seal.
    }

    /// Tells another process what became of its parcel.
    fn answer(&self, remote: &Remote, frame: &Frame) {
        self.forget(remote, remote.answer(frame));
    }

    /// Tells worlds that a group takes parcels again.
    pub(crate) fn tell_room(&self, refused: impl IntoIterator<Item = (Source, Cow<'static, str>)>) {
        for (source, group) in refused {
            if source.process != self.process {
                if let Some(remote) = self.peer_of(source) {
                    self.answer(&remote, &Frame::Room(group, source));
                }
            } else {
                self.run(source.world, move |world| {
                    tell_world(world, HasRoom { group });
                });
            }
        }
    }

    /// Tells all worlds here whether another process is suspected.
    pub(crate) fn announce_suspicion(&self, remote: &Remote) {
        // Alone, so that the last word is the latest.
        let members = self.write();
        if members.is_introduced(remote) {
            members.announce(remote, remote.liveness());
        }
    }

    /// Returns the process that has sent a parcel, if it is connected.
    fn peer_of(&self, source: Source) -> Option<Arc<Remote>> {
        let members = self.read();
        let mut connections = members.connections.iter();
        let (id, _) = connections.find(|(_, it)| it.process == source.process)?;
        members.remotes.get(id).cloned()
    }
}
