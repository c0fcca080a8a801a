//! The hub: how a parcel finds the worlds of a group.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
use core::sync::atomic::Ordering;

use bevy_app::App;
use bevy_ecs::{
    error::BevyError,
    world::{FromWorld, World},
};
use bevy_platform::collections::HashMap;
use smallvec::SmallVec;

use super::{
    address::{Address, SharedKey, StableKey, is_arriving},
    link::{Link, WorldLink},
    members::{Among, Group, Member, MemberId},
    parcel::{Parcel, Refused},
    remote::{Notice, Remote},
};
use crate::{
    call::report,
    message::{Delivery, MessageSender, RefusalReason, SendError},
    sync::{AtomicU64, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The groups of worlds, and how to reach their members.
///
/// No lock is held while a link is called: a link may call back. A world of this process gets its
/// parcels under the lock.
#[derive(Debug, Default)]
pub(super) struct Hub {
    groups: RwLock<Groups>,
    /// The id of the next member. Only changed under the lock.
    next: AtomicU64,
}

type Groups = HashMap<Cow<'static, str>, Group>;

/// Links to call when no lock is held.
type Remotes = SmallVec<[Arc<Remote>; 4]>;

/// The link of a member to the hub.
#[derive(Debug)]
struct HubLink {
    hub: Arc<Hub>,
    group: Cow<'static, str>,
    member: MemberId,
}

impl Hub {
    /// Makes the world of an app a member of a group, and returns its id.
    pub(super) fn join(self: &Arc<Self>, group: Cow<'static, str>, app: &mut App) -> MemberId {
        let sender = MessageSender::from_world(app.world_mut());
        let member = self.add(&mut self.write(), group.clone(), Member::Here(sender));
        let link = HubLink {
            hub: self.clone(),
            group: group.clone(),
            member,
        };
        app.insert_resource(WorldLink::new(group, link));
        member
    }

    /// Makes the other end of a link a member of a group.
    pub(super) fn join_remote(&self, group: Cow<'static, str>, link: impl Link) {
        let mut groups = self.write();
        let addresses = groups.iter().flat_map(|(group, Group { keys, .. })| {
            let group = group.clone();
            keys.keys().map(move |&key| Address {
                group: group.clone(),
                key,
            })
        });
        // The keys are read and the link is added under one lock, so the link misses no change.
        let remote = Arc::new(Remote::new(link, addresses.map(Notice::Bind).collect()));
        let member = Member::Elsewhere(remote.clone());
        self.add(&mut groups, group, member);
        drop(groups);
        remote.tell();
    }

    fn add(&self, groups: &mut Groups, group: Cow<'static, str>, member: Member) -> MemberId {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        groups.entry(group).or_default().add(id, member);
        id
    }

    pub(super) fn members(&self, group: &str) -> usize {
        let groups = self.read();
        groups.get(group).map_or(0, |group| group.members.len())
    }

    /// Removes a member and its keys, unless it has left.
    pub(super) fn leave(&self, name: Cow<'static, str>, member: MemberId) {
        // Dropped without the lock: it may drop the inbox, with parcels that hold another link.
        let mut gone = None;
        self.change_keys(|groups| {
            let Some(group) = groups.get_mut(&name) else {
                return Vec::new();
            };
            gone = group.remove(member);
            let keys = group.unbind_all(member).into_iter();
            let unbind = keys.map(|key| {
                let group = name.clone();
                Notice::Unbind(Address { group, key })
            });
            let notices = unbind.collect();
            if group.members.is_empty() {
                groups.remove(&name);
            }
            notices
        });
        drop(gone);
    }

    /// Sends a parcel to members of its group.
    pub(super) fn send(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel, among),
            Delivery::All => self.send_to_all(parcel, among),
            Delivery::InTurn => self.send_in_turn(parcel, among),
        }
    }

    /// Sends a parcel to the member with a key. If no world here has that key, a remote member may.
    fn send_to(&self, key: StableKey, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let groups = self.read();
        let Some(group) = groups.get(&parcel.group) else {
            return Err(parcel.refused(RefusalReason::UnknownGroup));
        };
        // The parcel is in the inbox before the lock is released. When a key goes to another world,
        // all parcels that were sent before are therefore in the inbox of the world that had it.
        if let Some((_, Member::Here(sender))) = group.with_key(key) {
            return send_here(sender, parcel);
        }
        let remotes = group.members(among).filter_map(|(_, member)| match member {
            Member::Here(_) => None,
            Member::Elsewhere(remote) => Some(remote.clone()),
        });
        let remotes: Remotes = remotes.collect();
        drop(groups);
        let mut refused = parcel.refused(RefusalReason::UnknownKey);
        for remote in remotes {
            match remote.send(refused.parcel) {
                Ok(()) => return Ok(()),
                Err(by_remote) => refused = by_remote,
            }
        }
        Err(refused)
    }

    /// Sends a parcel to all members. A refusal by one does not stop the others.
    fn send_to_all(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let mut remotes = Remotes::new();
        let mut reason = None;
        let mut is_taken = false;
        let mut note = |sent| match sent {
            Ok(()) => is_taken = true,
            Err(RefusalReason::UnknownGroup) => {}
            Err(refused) => reason = Some(refused),
        };
        if let Some(group) = self.read().get(&parcel.group) {
            for (_, member) in group.members(among) {
                match member {
                    Member::Here(sender) => note(copy_here(sender, &parcel)),
                    Member::Elsewhere(remote) => remotes.push(remote.clone()),
                }
            }
        }
        for remote in remotes {
            let sent = remote.send(parcel.clone());
            note(sent.map_err(|refused| refused.reason));
        }
        match reason {
            Some(_) if is_taken => Err(parcel.refused(RefusalReason::InPart)),
            Some(reason) => Err(parcel.refused(reason)),
            None if is_taken => Ok(()),
            None => Err(parcel.refused(RefusalReason::UnknownGroup)),
        }
    }

    /// Sends a parcel to the member whose turn it is. A member that refuses it loses its turn.
    fn send_in_turn(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let mut refused = parcel.refused(RefusalReason::UnknownGroup);
        let mut tried = SmallVec::<[MemberId; 4]>::new();
        loop {
            let groups = self.read();
            let group = groups.get(&refused.parcel.group);
            let Some((id, member)) = group.and_then(|group| group.in_turn(&tried, among)) else {
                return Err(refused);
            };
            tried.push(*id);
            let parcel = refused.parcel;
            let sent = match member {
                Member::Here(sender) => send_here(sender, parcel),
                Member::Elsewhere(remote) => {
                    let remote = remote.clone();
                    drop(groups);
                    remote.send(parcel)
                }
            };
            let Err(by_member) = sent else {
                return Ok(());
            };
            let reason = match by_member.reason {
                RefusalReason::UnknownGroup => refused.reason,
                reason => reason,
            };
            refused = by_member.parcel.refused(reason);
        }
    }

    /// Changes the groups, and tells all links which keys have changed. Links learn of the changes
    /// in the order in which they were made.
    fn change_keys(&self, change: impl FnOnce(&mut Groups) -> Vec<Notice>) {
        let mut groups = self.write();
        let notices = change(&mut groups);
        if notices.is_empty() {
            return;
        }
        let members = groups.values().flat_map(|group| &group.members);
        let remotes = members.filter_map(|(_, member)| match member {
            Member::Here(_) => None,
            Member::Elsewhere(remote) => Some(remote.clone()),
        });
        let remotes: Vec<_> = remotes.collect();
        for remote in &remotes {
            for notice in &notices {
                remote.push(notice.clone());
            }
        }
        drop(groups);
        for remote in remotes {
            remote.tell();
        }
    }

    /// Returns `true` if several worlds of this process have an entity with this address.
    fn is_shared(&self, address: &Address) -> bool {
        let groups = self.read();
        let group = groups.get(&address.group);
        group.is_some_and(|group| group.is_shared(address.key))
    }

    fn read(&self) -> RwLockReadGuard<'_, Groups> {
        self.groups.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Groups> {
        self.groups.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a parcel into the inbox of a world. A world that has ended refuses it with `UnknownGroup`.
fn send_here(world: &MessageSender, parcel: Parcel) -> Result<(), Refused> {
    world.receive(parcel).map_err(|error| {
        let reason = reason(&error);
        error.into_inner().refused(reason)
    })
}

/// Puts a copy of a parcel into the inbox of a world.
fn copy_here(world: &MessageSender, parcel: &Parcel) -> Result<(), RefusalReason> {
    world.receive_copy(parcel).map_err(|error| reason(&error))
}

fn reason<T>(error: &SendError<T>) -> RefusalReason {
    match error {
        SendError::Full(_) => RefusalReason::Full,
        SendError::Closed(_) => RefusalReason::UnknownGroup,
    }
}

impl Link for HubLink {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        self.hub.send(parcel, Among::All)
    }

    fn bind(&self, address: &Address) {
        let mut warn = None;
        self.hub.change_keys(|groups| {
            // A world that was left behind is no longer a member.
            let Some(group) = groups.get_mut(&self.group) else {
                return Vec::new();
            };
            let Some((_, Member::Here(sender))) = group.get(self.member).cloned() else {
                return Vec::new();
            };
            // The note is in the inbox before the lock is released, as a parcel is.
            if let Some((id, Member::Here(sender))) = group.with_key(address.key)
                && *id != self.member
            {
                sender.note_key_taken(address.key.0);
            }
            let is_shared = group.bind(address.key, self.member);
            warn = is_shared.then_some(sender);
            [Notice::Bind(address.clone())].into()
        });
        if let Some(sender) = warn {
            let (hub, shared) = (Arc::downgrade(&self.hub), SharedKey(address.clone()));
            let warn = move |world: &mut World| {
                let is_shared = hub.upgrade().is_some_and(|hub| hub.is_shared(&shared.0));
                if is_shared && !is_arriving(world, shared.0.key) {
                    report::<StableKey>(world, BevyError::warning(shared));
                }
            };
            // A world that takes no messages has no use for the warning.
            sender.run(warn).ok();
        }
    }

    fn unbind(&self, address: &Address) {
        self.hub.change_keys(|groups| {
            let group = groups.get_mut(&self.group);
            let is_gone = group.is_some_and(|group| group.unbind(address.key, self.member));
            let gone = is_gone.then(|| Notice::Unbind(address.clone()));
            gone.into_iter().collect()
        });
    }
}

/// A world leaves its group when it is dropped, for any reason.
impl Drop for HubLink {
    fn drop(&mut self) {
        self.hub.leave(self.group.clone(), self.member);
    }
}
