//! The hub: how a parcel finds the worlds of a group.

mod parcels;
mod peers;

use alloc::{borrow::Cow, sync::Arc};
use core::sync::atomic::Ordering;
use std::hash::RandomState;

use bevy_ecs::world::World;
use bevy_platform::collections::HashMap;

use super::{
    address::{Address, StableKey, warn_of_shared_key},
    link::FromPeer,
    members::{Claim, Epoch, Group, Member, MemberId},
    news::{Liveness, PeerChanged, fail_requests, tell_world},
    remote::{Remote, SessionId, random_process_id},
};
use crate::{
    message::MessageSender,
    sync::{AtomicU64, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The groups of worlds, and how to reach their members.
///
/// A world of this process gets its parcels under the lock, and so does the queue of another process. No
/// code of a link runs under it.
pub(super) struct Hub {
    /// The random id of this process.
    process: u64,
    members: RwLock<Members>,
    /// The id of the next member. Only changed under the lock.
    next: AtomicU64,
    filter: RwLock<Option<Arc<Filter>>>,
    /// The number of parcels that were sent from outside all worlds.
    outside: AtomicU64,
    /// Makes the seals of parcels. It never leaves this process.
    seals: RandomState,
}

/// A function that permits what another process sends. It gets the name of the process.
pub(super) type Filter = dyn Fn(&str, FromPeer) -> bool + Send + Sync;

#[derive(Default)]
struct Members {
    groups: HashMap<Cow<'static, str>, Group>,
    worlds: HashMap<MemberId, MessageSender>,
    /// The keys of the worlds that announce one only.
    only_key: HashMap<MemberId, StableKey>,
    /// All other processes, and the connections to those that have answered.
    remotes: HashMap<MemberId, Arc<Remote>>,
    connections: HashMap<MemberId, Connection>,
    /// Above all epochs that this process knows.
    epoch: Epoch,
    is_closed: bool,
}

/// A connection to another process.
#[derive(Clone, Copy)]
struct Connection {
    session: SessionId,
    /// The id of the process.
    process: u64,
    /// Whether the process has told its worlds and keys. It is up from then on.
    is_introduced: bool,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            process: random_process_id(),
            members: RwLock::default(),
            // Zero stands for the code outside all worlds.
            next: AtomicU64::new(1),
            filter: RwLock::default(),
            outside: AtomicU64::new(0),
            seals: RandomState::new(),
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
        members.introduce(&sender);
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
            for key in group.keys_of(id) {
                let group = name.clone();
                members.unbind(&Address { group, key }, id);
            }
            members.drop_if_empty(&name);
        }
        if gone.is_some() {
            members.announce_worlds(name);
        }
        members.only_key.remove(&id);
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
        members.epoch = members.epoch.saturating_add(1);
        let claim = Claim {
            member: id,
            epoch: members.epoch,
            process: self.process,
        };
        let is_shared = members.bind(address, claim);
        members.announce_key(address);
        drop(members);
        if is_shared {
            let (hub, address) = (Arc::downgrade(self), address.clone());
            let warn = move |world: &mut World| {
                let is_shared = hub.upgrade().is_some_and(|hub| hub.is_shared(&address));
                if is_shared {
                    warn_of_shared_key(world, &address);
                }
            };
            // A world that takes no messages has no use for the warning.
            world.run(warn).ok();
        }
    }

    /// Takes a key from a world.
    pub(super) fn unbind(&self, address: &Address, id: MemberId) {
        self.write().unbind(address, id);
    }

    /// Tells other processes of no key of a world but this one, from now on.
    pub(super) fn announce_only(&self, only: &Address, id: MemberId) {
        let mut members = self.write();
        let Some(group) = members.groups.get(&only.group) else {
            return;
        };
        let keys = group.keys_of(id);
        // A world that was left behind is no longer a member.
        if members.worlds.contains_key(&id) {
            members.only_key.insert(id, only.key);
        }
        for key in keys {
            let group = only.group.clone();
            members.announce_key(&Address { group, key });
        }
    }

    /// Returns `true` if several members have an entity with this address.
    fn is_shared(&self, address: &Address) -> bool {
        let members = self.read();
        let group = members.groups.get(&address.group);
        group.is_some_and(|group| group.is_shared(address.key))
    }

    /// Returns `true` if a connection has not ended.
    pub(super) fn is_connected(&self, session: SessionId) -> bool {
        let members = self.read();
        let mut connections = members.connections.values();
        connections.any(|connection| connection.session == session)
    }

    /// Runs a function on a world in its next frame, if it has not left.
    pub(super) fn run(&self, id: MemberId, function: impl FnOnce(&mut World) + Send + 'static) {
        let world = self.read().worlds.get(&id).cloned();
        if let Some(world) = world {
            world.run_anyway(function);
        }
    }

    /// Returns the number of worlds of a group, without processes that may be dead.
    pub(super) fn running(&self, group: &str) -> usize {
        self.read().groups.get(group).map_or(0, Group::worlds)
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
        group.bind(address.key, claim)
    }

    /// Takes a key from a world.
    fn unbind(&mut self, address: &Address, id: MemberId) {
        if let Some(group) = self.groups.get_mut(&address.group) {
            group.unbind(address.key, id, Epoch::MAX);
            self.announce_key(address);
            self.drop_if_empty(&address.group);
        }
    }

    /// Ends the connection to another process, and removes its worlds and keys.
    fn forget(&mut self, remote: &Remote) {
        let Some(connection) = self.connections.remove(&remote.id) else {
            return;
        };
        self.groups.retain(|_, group| {
            group.remove(remote.id);
            group.unbind_all(remote.id);
            !group.is_empty()
        });
        for world in self.worlds.values() {
            world.run_anyway(move |world| fail_requests(world, connection.session));
        }
        if connection.is_introduced {
            self.announce(remote, Liveness::Down);
        }
    }

    /// Tells all worlds here how another process is.
    fn announce(&self, remote: &Remote, liveness: Liveness) {
        for world in self.worlds.values() {
            announce_to(world, remote, liveness);
        }
    }

    /// Tells a world which processes are there.
    fn introduce(&self, world: &MessageSender) {
        for remote in self.remotes.values() {
            if self.is_introduced(remote) {
                announce_to(world, remote, remote.liveness());
            }
        }
    }

    /// Returns `true` if another process has told its worlds and keys.
    fn is_introduced(&self, remote: &Remote) -> bool {
        let connection = self.connections.get(&remote.id);
        connection.is_some_and(|connection| connection.is_introduced)
    }

    /// Returns a connection to another process, if it has not ended.
    fn connected(&mut self, remote: &Remote, session: SessionId) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(&remote.id);
        connection.filter(|connection| connection.session == session)
    }

    /// Tells all other processes of the newest claim to a key here, if it has changed.
    fn announce_key(&mut self, address: &Address) {
        let Address { group, key } = address;
        let Some(group) = self.groups.get_mut(group) else {
            return;
        };
        let claims = group.keys.get(key).map_or(&[][..], |claims| claims);
        let newest = claims.iter().rev().find(|claim| {
            let only = self.only_key.get(&claim.member);
            self.worlds.contains_key(&claim.member) && only.is_none_or(|only| only == key)
        });
        let here = newest.map(|claim| claim.epoch);
        let before = match here {
            Some(epoch) => group.announced.insert(*key, epoch),
            None => group.announced.remove(key),
        };
        if here == before {
            return;
        }
        let epoch = here.unwrap_or(self.epoch);
        for remote in self.remotes.values() {
            remote.set_key(address, [before.is_some(), here.is_some()], epoch);
        }
    }

    /// Tells all other processes how many worlds of a group are here.
    fn announce_worlds(&self, group: Cow<'static, str>) {
        let worlds = self.groups.get(&group).map_or(0, Group::worlds_here);
        for remote in self.remotes.values() {
            remote.set_worlds(group.clone(), worlds);
        }
    }

    fn drop_if_empty(&mut self, group: &str) {
        if self.groups.get(group).is_some_and(Group::is_empty) {
            self.groups.remove(group);
        }
    }
}

/// Tells a world how another process is.
fn announce_to(world: &MessageSender, remote: &Remote, liveness: Liveness) {
    let name = remote.name.clone();
    world.run_anyway(move |world| _ = tell_world(world, PeerChanged { name, liveness }));
}
