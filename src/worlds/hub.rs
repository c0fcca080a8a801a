//! The hub: how a parcel finds the worlds of a group.

use alloc::{borrow::Cow, sync::Arc};
use core::sync::atomic::Ordering;

use bevy_ecs::{error::BevyError, world::World};
use bevy_platform::collections::HashMap;
use smallvec::SmallVec;

use super::{
    address::{Address, SharedKey, StableKey, is_arriving},
    claim::{Claim, Epoch, MemberId},
    filter::{Filter, FromPeer},
    members::{Among, Group, Member},
    news::{HasRoom, Liveness, PeerChanged, tell_world},
    parcel::{Parcel, Refused},
    refusal::report_refusal,
    remote::{
        Arrival, BatchError, Frame, Lost, PeerSettings, Remote, Sent, SessionId, Source, Way,
        random_process_id,
    },
};
use crate::{
    call::report,
    message::{Delivery, MessageSender, RefusalReason, SendError},
    sync::{AtomicU64, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The groups of worlds, and how to reach their members.
///
/// A world of this process gets its parcels under the lock, and so does the queue of another process. No
/// code of a link runs under it.
#[derive(Debug)]
pub(super) struct Hub {
    /// The random id of this process.
    process: u64,
    members: RwLock<Members>,
    /// The id of the next member. Only changed under the lock.
    next: AtomicU64,
    filter: RwLock<Option<Filter>>,
    /// The number of parcels that were sent from outside all worlds.
    outside: AtomicU64,
}

#[derive(Debug, Default)]
struct Members {
    groups: HashMap<Cow<'static, str>, Group>,
    worlds: HashMap<MemberId, MessageSender>,
    peers: HashMap<MemberId, PeerEntry>,
    /// Above all epochs that this process knows.
    epoch: Epoch,
    is_closed: bool,
}

/// Another process.
#[derive(Debug)]
struct PeerEntry {
    remote: Arc<Remote>,
    /// The connection, if there is one.
    session: Option<SessionId>,
    /// The id of the process.
    process: u64,
}

/// The process that has taken a parcel alone, if it is another one.
pub(super) type TakenBy = Option<MemberId>;

/// The number of processes that pass a parcel on, before it is refused.
const MAX_HOPS: u8 = 4;

impl Default for Hub {
    fn default() -> Self {
        Self {
            process: random_process_id(),
            members: RwLock::default(),
            // Zero stands for the code outside all worlds.
            next: AtomicU64::new(1),
            filter: RwLock::default(),
            outside: AtomicU64::new(0),
        }
    }
}

/// Worlds of this process.
impl Hub {
    /// Adds a world to a group, and returns its id.
    pub(super) fn add_world(&self, group: Cow<'static, str>, sender: MessageSender) -> MemberId {
        let mut members = self.write();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        members.worlds.insert(id, sender.clone());
        let of_group = members.groups.entry(group.clone()).or_default();
        of_group.add(id, Member::Here(sender));
        members.announce_worlds(group);
        id
    }

    /// Removes a world and its keys, unless it has left.
    pub(super) fn remove_world(&self, name: Cow<'static, str>, id: MemberId) {
        let mut members = self.write();
        let mut gone = None;
        if let Some(group) = members.groups.get_mut(&name) {
            gone = group.remove(id);
            for key in group.unbind_all(id) {
                let group = name.clone();
                members.announce_key(&Address { group, key });
            }
            members.drop_if_empty(&name);
        }
        if gone.is_some() {
            members.announce_worlds(name);
        }
        let world = members.worlds.remove(&id);
        drop(members);
        // Dropped without the lock: it may drop the inbox, with parcels that hold another link.
        drop((gone, world));
    }

    /// Gives a key to a world.
    pub(super) fn bind(self: &Arc<Self>, address: &Address, id: MemberId) {
        let mut members = self.write();
        // A world that was left behind is no longer a member.
        let Some(world) = members.worlds.get(&id).cloned() else {
            return;
        };
        members.epoch += 1;
        let claim = Claim {
            member: id,
            epoch: members.epoch,
        };
        let is_shared = members.bind(address, claim);
        members.announce_key(address);
        drop(members);
        if is_shared {
            let (hub, shared) = (Arc::downgrade(self), SharedKey(address.clone()));
            let warn = move |world: &mut World| {
                let is_shared = hub.upgrade().is_some_and(|hub| hub.is_shared(&shared.0));
                if is_shared && !is_arriving(world, shared.0.key) {
                    report::<StableKey>(world, BevyError::warning(shared));
                }
            };
            // A world that takes no messages has no use for the warning.
            world.run(warn).ok();
        }
    }

    /// Takes a key from a world.
    pub(super) fn unbind(&self, address: &Address, id: MemberId) {
        let mut members = self.write();
        let group = members.groups.get_mut(&address.group);
        if group.is_some_and(|group| group.unbind(address.key, id, Epoch::MAX)) {
            members.announce_key(address);
            members.drop_if_empty(&address.group);
        }
    }

    /// Returns `true` if several members have an entity with this address.
    fn is_shared(&self, address: &Address) -> bool {
        let members = self.read();
        let group = members.groups.get(&address.group);
        group.is_some_and(|group| group.is_shared(address.key))
    }

    /// Returns the number of worlds of a group, without those of processes that may be dead.
    pub(super) fn running(&self, group: &str) -> usize {
        self.read().groups.get(group).map_or(0, Group::worlds)
    }
}

/// Parcels.
impl Hub {
    /// Sends a parcel from outside all worlds.
    pub(super) fn post(self: &Arc<Self>, parcel: Parcel) -> Result<TakenBy, Refused> {
        let sequence = self.outside.fetch_add(1, Ordering::Relaxed);
        self.post_from(0, sequence, parcel)
    }

    /// Sends a parcel from a world.
    pub(super) fn post_from(
        self: &Arc<Self>,
        world: MemberId,
        sequence: u64,
        parcel: Parcel,
    ) -> Result<TakenBy, Refused> {
        let source = Source {
            process: self.process,
            world,
            sequence,
        };
        self.send(parcel, Way { source, hops: 0 }, Among::All)
    }

    /// Sends a parcel to members of its group.
    fn send(self: &Arc<Self>, parcel: Parcel, way: Way, among: Among) -> Result<TakenBy, Refused> {
        match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel, way, among),
            Delivery::All => self.send_to_all(parcel, way, among).map(|()| None),
            Delivery::InTurn => self.send_in_turn(parcel, way, among),
        }
    }

    /// Sends a parcel to the member with a key.
    fn send_to(
        self: &Arc<Self>,
        key: StableKey,
        parcel: Parcel,
        mut way: Way,
        among: Among,
    ) -> Result<TakenBy, Refused> {
        let members = self.read();
        let Some(group) = members.groups.get(&parcel.group) else {
            return Err(parcel.refused(RefusalReason::UnknownGroup));
        };
        let Some(id) = group.with_key(key) else {
            return Err(parcel.refused(match group.has_members() {
                true => RefusalReason::UnknownKey,
                false => RefusalReason::UnknownGroup,
            }));
        };
        // The parcel is in the inbox before the lock is released. When a key goes to another world,
        // all parcels that were sent before are therefore in the inbox of the world that had it.
        if let Some(world) = members.worlds.get(&id) {
            return self.put(world, parcel, way).map(|()| None);
        }
        if among == Among::Here {
            way.hops += 1;
        }
        match members.peers.get(&id) {
            Some(peer) if way.hops <= MAX_HOPS => peer.remote.send(parcel, way).map(|()| Some(id)),
            _ => Err(parcel.refused(RefusalReason::UnknownKey)),
        }
    }

    /// Sends a parcel to all members. A refusal by one does not stop the others.
    fn send_to_all(
        self: &Arc<Self>,
        parcel: Parcel,
        way: Way,
        among: Among,
    ) -> Result<(), Refused> {
        let mut reason = None;
        let mut is_taken = false;
        let mut note = |taken| match taken {
            Ok(()) => is_taken = true,
            Err(RefusalReason::UnknownGroup) => {}
            Err(refused) => reason = Some(refused),
        };
        if let Some(group) = self.read().groups.get(&parcel.group) {
            for (_, member) in group.members(among) {
                note(match member {
                    Member::Here(world) => self.put_copy(world, &parcel, way),
                    Member::Elsewhere(remote, _) => remote.send_copy(&parcel, way),
                });
            }
        }
        match reason {
            Some(_) if is_taken => Err(parcel.refused(RefusalReason::InPart)),
            Some(reason) => Err(parcel.refused(reason)),
            None if is_taken => Ok(()),
            None => Err(parcel.refused(RefusalReason::UnknownGroup)),
        }
    }

    /// Sends a parcel to the member whose turn it is. A member that refuses it loses its turn.
    fn send_in_turn(
        self: &Arc<Self>,
        mut parcel: Parcel,
        way: Way,
        among: Among,
    ) -> Result<TakenBy, Refused> {
        let mut reason = RefusalReason::UnknownGroup;
        let mut tried = SmallVec::<[MemberId; 4]>::new();
        let members = self.read();
        loop {
            let group = members.groups.get(&parcel.group);
            let Some((id, member)) = group.and_then(|group| group.in_turn(&tried, among)) else {
                return Err(parcel.refused(reason));
            };
            tried.push(*id);
            let taken = match member {
                Member::Here(world) => self.put(world, parcel, way).map(|()| None),
                Member::Elsewhere(remote, _) => remote.send(parcel, way).map(|()| Some(*id)),
            };
            let refused = match taken {
                Ok(taken_by) => return Ok(taken_by),
                Err(refused) => refused,
            };
            parcel = refused.parcel;
            if refused.reason != RefusalReason::UnknownGroup {
                reason = refused.reason;
            }
        }
    }

    /// Puts a parcel into the inbox of a world. A world that has ended refuses it with `UnknownGroup`.
    fn put(
        self: &Arc<Self>,
        world: &MessageSender,
        mut parcel: Parcel,
        way: Way,
    ) -> Result<(), Refused> {
        loop {
            match world.receive(parcel) {
                Ok(()) => return Ok(()),
                Err(SendError::Closed(parcel)) => {
                    return Err(parcel.refused(RefusalReason::UnknownGroup));
                }
                Err(SendError::Full(refused)) => parcel = refused,
            }
            if self.note_full(world, way.source, &parcel) {
                return Err(parcel.refused(RefusalReason::Full));
            }
        }
    }

    /// Puts a copy of a parcel into the inbox of a world.
    fn put_copy(
        self: &Arc<Self>,
        world: &MessageSender,
        parcel: &Parcel,
        way: Way,
    ) -> Result<(), RefusalReason> {
        loop {
            match world.receive_copy(parcel) {
                Ok(()) => return Ok(()),
                Err(SendError::Closed(())) => return Err(RefusalReason::UnknownGroup),
                Err(SendError::Full(())) => {}
            }
            if self.note_full(world, way.source, parcel) {
                return Err(RefusalReason::Full);
            }
        }
    }

    /// Notes that the inbox of a world is full: the sender learns when it has room. Returns `false` if it
    /// has room already.
    fn note_full(self: &Arc<Self>, world: &MessageSender, source: Source, parcel: &Parcel) -> bool {
        let (hub, group) = (Arc::downgrade(self), parcel.group.clone());
        world.when_room((source.process, source.world), move || {
            if let Some(hub) = hub.upgrade() {
                hub.tell_room([(source, group)]);
            }
        })
    }
}

/// Other processes.
impl Hub {
    /// Adds another process. It has no worlds and no keys until it tells of them.
    pub(super) fn connect(&self, name: Arc<str>, settings: PeerSettings) -> Arc<Remote> {
        let mut members = self.write();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let remote = Arc::new(Remote::new(id, name, self.process, settings));
        if members.is_closed {
            remote.close();
        }
        let entry = PeerEntry {
            remote: remote.clone(),
            session: None,
            process: 0,
        };
        members.peers.insert(id, entry);
        remote
    }

    /// Removes another process.
    pub(super) fn disconnect(&self, remote: &Remote) {
        remote.close();
        let lost = remote.disconnect();
        self.forget(remote, lost);
        let entry = self.write().peers.remove(&remote.id);
        drop(entry);
    }

    /// Closes the connections to all other processes. What waits for them is still sent.
    pub(super) fn close(&self) {
        let mut members = self.write();
        members.is_closed = true;
        for peer in members.peers.values() {
            peer.remote.close();
        }
    }

    /// Takes a batch from another process.
    pub(super) fn receive(
        self: &Arc<Self>,
        remote: &Remote,
        batch: &[u8],
    ) -> Result<(), BatchError> {
        let Arrival {
            lost,
            begun,
            frames,
            was_suspect,
            process,
            turn,
        } = remote.hear(batch)?;
        self.forget(remote, lost);
        if let Some(session) = begun {
            self.begin(remote, session, process);
        } else if was_suspect {
            self.announce(remote, Liveness::Up);
        }
        if let Some((frames, session)) = frames {
            for frame in frames {
                self.handle(remote, session, frame);
            }
        }
        drop(turn);
        Ok(())
    }

    /// Begins a connection: tells the other process of all worlds and keys here.
    fn begin(&self, remote: &Remote, session: SessionId, process: u64) {
        let mut members = self.write();
        if !members.peers.contains_key(&remote.id) || !remote.begin(session) {
            return;
        }
        // The thread that knows of the end of the last connection may be slower.
        members.forget(remote);
        if let Some(entry) = members.peers.get_mut(&remote.id) {
            (entry.session, entry.process) = (Some(session), process);
        }
        for (name, group) in &members.groups {
            let worlds = group.worlds_here();
            if worlds > 0 {
                remote.set_worlds(name.clone(), worlds);
            }
            for (&key, claims) in &group.keys {
                if let Some(epoch) = members.epoch_here(claims) {
                    let group = name.clone();
                    remote.set_key(&Address { group, key }, true, epoch);
                }
            }
        }
        members.announce(remote, Liveness::Up);
    }

    /// Removes the worlds and keys of another process whose connection has ended, and refuses the parcels
    /// that were not sent.
    pub(super) fn forget(&self, remote: &Remote, lost: Option<Lost>) {
        let Some(Lost { session, waiting }) = lost else {
            return;
        };
        let mut members = self.write();
        if members.connected(remote.id, session).is_some() {
            members.forget(remote);
        }
        drop(members);
        for frame in waiting.frames() {
            if let Frame::Parcel(sent) = frame {
                self.refuse(sent, RefusalReason::PeerLost);
            }
        }
        self.tell_room(waiting.refused);
    }

    /// Handles a frame from another process.
    fn handle(self: &Arc<Self>, remote: &Remote, session: SessionId, frame: Frame) {
        match frame {
            Frame::Parcel(sent) => self.take(remote, sent),
            Frame::Refused(sent, reason) => self.refuse(sent, reason),
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
            Frame::Room(group, source) => self.tell_room([(source, group)]),
            Frame::Goodbye => self.forget(remote, remote.disconnect()),
        }
    }

    /// Takes a parcel from another process. If it is refused, that process learns of it.
    fn take(self: &Arc<Self>, remote: &Remote, sent: Sent) {
        let Sent { parcel, way } = sent;
        let taken = match self.permits(remote, FromPeer::Parcel(&parcel)) {
            true => self.send(parcel, way, Among::Here),
            false => Err(parcel.refused(RefusalReason::Forbidden)),
        };
        if let Err(Refused { parcel, reason }) = taken {
            let lost = remote.answer(&Frame::Refused(Sent { parcel, way }, reason));
            self.forget(remote, lost);
        }
    }

    fn set_worlds(
        &self,
        remote: &Remote,
        session: SessionId,
        group: Cow<'static, str>,
        worlds: u32,
    ) {
        let mut members = self.write();
        let Some(remote) = members.connected(remote.id, session) else {
            return;
        };
        match worlds {
            0 => {
                if let Some(group) = members.groups.get_mut(&group) {
                    group.remove(remote.id);
                }
                members.drop_if_empty(&group);
            }
            _ => {
                let member = Member::Elsewhere(remote.clone(), worlds);
                let group = members.groups.entry(group).or_default();
                group.add(remote.id, member);
            }
        }
    }

    fn bind_elsewhere(&self, remote: &Remote, session: SessionId, address: &Address, epoch: Epoch) {
        let mut members = self.write();
        members.epoch = members.epoch.max(epoch);
        if members.connected(remote.id, session).is_some() {
            let member = remote.id;
            members.bind(address, Claim { member, epoch });
        }
    }

    fn permits(&self, remote: &Remote, what: FromPeer) -> bool {
        let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
        let filter = filter.clone();
        filter.is_none_or(|filter| filter.permits(&remote.name, what))
    }

    /// Sets the filter for what other processes send.
    pub(super) fn set_filter(&self, filter: Filter) {
        let mut place = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        *place = Some(filter);
    }

    /// Tells the world that has sent a parcel that it was refused.
    fn refuse(&self, sent: Sent, reason: RefusalReason) {
        if sent.way.source.process != self.process {
            // The parcel was passed on.
            if let Some(remote) = self.peer_of(sent.way.source) {
                let lost = remote.answer(&Frame::Refused(sent, reason));
                self.forget(&remote, lost);
            }
            return;
        }
        let refused = sent.parcel.refused(reason);
        if let Some(world) = self.world_of(sent.way.source) {
            world.run_anyway(move |world| report_refusal(world, refused));
        }
    }

    /// Tells worlds that a group takes parcels again.
    pub(super) fn tell_room(&self, refused: impl IntoIterator<Item = (Source, Cow<'static, str>)>) {
        for (source, group) in refused {
            if source.process != self.process {
                if let Some(remote) = self.peer_of(source) {
                    let lost = remote.answer(&Frame::Room(group, source));
                    self.forget(&remote, lost);
                }
            } else if let Some(world) = self.world_of(source) {
                world.run_anyway(move |world| _ = tell_world(world, HasRoom { group }));
            }
        }
    }

    /// Tells all worlds here how another process is.
    pub(super) fn announce(&self, remote: &Remote, liveness: Liveness) {
        self.read().announce(remote, liveness);
    }

    fn world_of(&self, source: Source) -> Option<MessageSender> {
        self.read().worlds.get(&source.world).cloned()
    }

    /// Returns the process that has sent a parcel, if it is connected.
    fn peer_of(&self, source: Source) -> Option<Arc<Remote>> {
        let members = self.read();
        let mut peers = members.peers.values();
        let peer = peers.find(|peer| peer.session.is_some() && peer.process == source.process)?;
        Some(peer.remote.clone())
    }

    fn read(&self) -> RwLockReadGuard<'_, Members> {
        self.members.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Members> {
        self.members.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Members {
    /// Gives a key to a member. Returns `true` if another member has it, too.
    fn bind(&mut self, address: &Address, claim: Claim) -> bool {
        let group = self.groups.entry(address.group.clone()).or_default();
        let before = group.with_key(address.key);
        let is_shared = group.bind(address.key, claim);
        // The note is in the inbox before the lock is released, as a parcel is.
        if let Some(before) = before
            && before != claim.member
            && group.with_key(address.key) == Some(claim.member)
            && let Some(world) = self.worlds.get(&before)
        {
            world.note_key_taken(address.key.0);
        }
        is_shared
    }

    /// Ends the connection to another process, and removes its worlds and keys.
    fn forget(&mut self, remote: &Remote) {
        let entry = self.peers.get_mut(&remote.id);
        if entry.and_then(|entry| entry.session.take()).is_none() {
            return;
        }
        self.groups.retain(|_, group| {
            group.remove(remote.id);
            group.unbind_all(remote.id);
            !group.is_empty()
        });
        self.announce(remote, Liveness::Down);
    }

    /// Tells all worlds here how another process is.
    fn announce(&self, remote: &Remote, liveness: Liveness) {
        for world in self.worlds.values() {
            let (peer, name) = (remote.id, remote.name.clone());
            world.run_anyway(move |world| {
                let changed = PeerChanged { name, liveness };
                changed.tell(world, peer);
            });
        }
    }

    /// Returns another process, if this connection to it has not ended.
    fn connected(&self, peer: MemberId, session: SessionId) -> Option<Arc<Remote>> {
        let peer = self.peers.get(&peer)?;
        (peer.session == Some(session)).then(|| peer.remote.clone())
    }

    /// Returns the newest claim of a world of this process.
    fn epoch_here(&self, claims: &[Claim]) -> Option<Epoch> {
        let mut claims = claims.iter().rev();
        let here = claims.find(|claim| self.worlds.contains_key(&claim.member))?;
        Some(here.epoch)
    }

    /// Tells all other processes whether a world here has a key.
    fn announce_key(&self, address: &Address) {
        let group = self.groups.get(&address.group);
        let claims = group.and_then(|group| group.keys.get(&address.key));
        let here = claims.and_then(|claims| self.epoch_here(claims));
        for peer in self.peers.values() {
            let epoch = here.unwrap_or(self.epoch);
            peer.remote.set_key(address, here.is_some(), epoch);
        }
    }

    /// Tells all other processes how many worlds of a group are here.
    fn announce_worlds(&self, group: Cow<'static, str>) {
        let worlds = self.groups.get(&group).map_or(0, Group::worlds_here);
        for peer in self.peers.values() {
            peer.remote.set_worlds(group.clone(), worlds);
        }
    }

    fn drop_if_empty(&mut self, group: &str) {
        if self.groups.get(group).is_some_and(Group::is_empty) {
            self.groups.remove(group);
        }
    }
}
