//! The hub: how a parcel finds the worlds of a group.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
use core::fmt;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bevy_app::App;
use bevy_ecs::world::FromWorld;
use smallvec::SmallVec;

use super::{
    address::{Address, StableKey},
    link::{Link, WorldLink},
    parcel::{Parcel, Refused},
};
use crate::message::{Delivery, MessageSender, RefusalReason, SendError};

/// The groups of worlds, and how to reach their members.
///
/// No lock is held while a link is called: a link may call back.
#[derive(Debug, Default)]
pub(super) struct Hub(RwLock<Groups>);

type Groups = HashMap<Cow<'static, str>, Group>;

#[derive(Debug, Default)]
struct Group {
    /// In the order of joining.
    members: Vec<(MemberId, Member)>,
    /// The member with the entity of each key.
    keys: HashMap<StableKey, MemberId>,
    next: MemberId,
    /// Members with a lower id have had their turn.
    turn: Mutex<MemberId>,
}

type MemberId = u64;

/// Members to call when no lock is held.
type Members = SmallVec<[(MemberId, Member); 4]>;

#[derive(Clone)]
enum Member {
    Here(MessageSender),
    Elsewhere(Arc<dyn Link>),
}

/// The members of a group that a parcel can go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    All,
    /// Members in this process. The parcel comes from another process, and must not go back.
    Here,
}

/// The link of a member to the hub.
#[derive(Debug)]
struct HubLink {
    hub: Arc<Hub>,
    group: Cow<'static, str>,
    member: MemberId,
}

impl Hub {
    /// Makes the world of an app a member of a group.
    pub(super) fn join(self: &Arc<Self>, group: Cow<'static, str>, app: &mut App) {
        let sender = MessageSender::from_world(app.world_mut());
        let member = self.add(group.clone(), Member::Here(sender));
        let link = HubLink {
            hub: self.clone(),
            group: group.clone(),
            member,
        };
        app.insert_resource(WorldLink::new(group, link));
    }

    /// Makes the other end of a link a member of a group.
    pub(super) fn join_remote(&self, group: Cow<'static, str>, link: impl Link) {
        let link = Arc::new(link);
        self.add(group, Member::Elsewhere(link.clone()));
        let groups = self.read();
        let addresses = groups.iter().flat_map(|(group, Group { keys, .. })| {
            let group = group.clone();
            keys.keys().map(move |&key| Address {
                group: group.clone(),
                key,
            })
        });
        let addresses: Vec<_> = addresses.collect();
        drop(groups);
        for address in &addresses {
            link.bind(address);
        }
    }

    fn add(&self, group: Cow<'static, str>, member: Member) -> MemberId {
        let mut groups = self.write();
        let group = groups.entry(group).or_default();
        let id = group.next;
        group.next += 1;
        group.members.push((id, member));
        id
    }

    pub(super) fn members(&self, group: &str) -> usize {
        let groups = self.read();
        groups.get(group).map_or(0, |group| group.members.len())
    }

    /// Sends a parcel to members of its group.
    pub(super) fn send(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel, among),
            Delivery::All => self.send_to_all(parcel, among),
            Delivery::InTurn => self.send_in_turn(parcel, among),
        }
    }

    /// Sends a parcel to the member with a key. If no world here has it, a remote member may.
    fn send_to(&self, key: StableKey, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let (members, reason) = match self.read().get(&parcel.group) {
            None => (Members::new(), RefusalReason::UnknownGroup),
            Some(group) => (group.with_key(key, among), RefusalReason::UnknownKey),
        };
        let mut refused = Refused { parcel, reason };
        for (_, member) in members {
            match member.take(refused.parcel) {
                Ok(()) => return Ok(()),
                Err(by_member) => refused = by_member,
            }
        }
        Err(refused)
    }

    /// Sends a parcel to all members. A refusal by one does not stop the others.
    fn send_to_all(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let members = match self.read().get(&parcel.group) {
            None => Members::new(),
            Some(group) => group.members(among).collect(),
        };
        let mut reason = None;
        let mut is_taken = false;
        for (_, member) in members {
            match member.take(parcel.clone()) {
                Ok(()) => is_taken = true,
                Err(ended) if ended.reason == RefusalReason::UnknownGroup => {}
                Err(refused) => reason = Some(refused.reason),
            }
        }
        match reason {
            Some(_) if is_taken => refuse(parcel, RefusalReason::InPart),
            Some(reason) => refuse(parcel, reason),
            None if is_taken => Ok(()),
            None => refuse(parcel, RefusalReason::UnknownGroup),
        }
    }

    /// Sends a parcel to the member whose turn it is. A member that refuses it loses its turn.
    fn send_in_turn(&self, mut parcel: Parcel, among: Among) -> Result<(), Refused> {
        let members = match self.read().get(&parcel.group) {
            None => Members::new(),
            Some(group) => group.begin_turn(among),
        };
        let mut reason = RefusalReason::UnknownGroup;
        for (nth, (id, member)) in members.into_iter().enumerate() {
            if nth > 0 {
                self.end_turn(&parcel.group, id);
            }
            match member.take(parcel) {
                Ok(()) => return Ok(()),
                Err(refused) => {
                    parcel = refused.parcel;
                    if refused.reason != RefusalReason::UnknownGroup {
                        reason = refused.reason;
                    }
                }
            }
        }
        refuse(parcel, reason)
    }

    fn end_turn(&self, group: &str, member: MemberId) {
        if let Some(group) = self.read().get(group) {
            *group.lock_turn() = member + 1;
        }
    }

    /// Calls a function with the link of every remote member.
    fn tell_remote(&self, tell: impl Fn(&dyn Link)) {
        let groups = self.read();
        let members = groups.values().flat_map(|group| &group.members);
        let links = members.filter_map(|(_, member)| match member {
            Member::Here(_) => None,
            Member::Elsewhere(link) => Some(link.clone()),
        });
        let links: Vec<_> = links.collect();
        drop(groups);
        for link in links {
            tell(&*link);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Groups> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Groups> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    fn members(&self, among: Among) -> impl Iterator<Item = (MemberId, Member)> {
        let is_meant = move |member: &Member| among == Among::All || member.is_here();
        let members = self.members.iter();
        let members = members.filter(move |(_, member)| is_meant(member));
        members.map(|(id, member)| (*id, member.clone()))
    }

    /// Returns the member with a key, or else all members that may have it.
    fn with_key(&self, key: StableKey, among: Among) -> Members {
        let here = self.keys.get(&key).and_then(|&id| self.get(id));
        match here {
            Some(member) => [member.clone()].into_iter().collect(),
            None => {
                let members = self.members(among);
                members.filter(|(_, member)| !member.is_here()).collect()
            }
        }
    }

    /// Returns all members, starting with the one whose turn it is, and ends that turn.
    fn begin_turn(&self, among: Among) -> Members {
        let mut turn = self.lock_turn();
        let mut members: Members = self.members(among).collect();
        let first = members.partition_point(|(id, _)| *id < *turn);
        members.rotate_left(first);
        if let Some((id, _)) = members.first() {
            *turn = id + 1;
        }
        members
    }

    fn lock_turn(&self) -> MutexGuard<'_, MemberId> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, member: MemberId) -> Option<&(MemberId, Member)> {
        let place = self.members.binary_search_by_key(&member, |(id, _)| *id);
        Some(&self.members[place.ok()?])
    }
}

impl Member {
    fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// Takes a parcel. A member that has ended refuses it like an unknown group.
    fn take(&self, parcel: Parcel) -> Result<(), Refused> {
        match self {
            Self::Here(sender) => sender.receive(parcel).or_else(|error| match error {
                SendError::Full(parcel) => refuse(parcel, RefusalReason::Full),
                SendError::Closed(parcel) => refuse(parcel, RefusalReason::UnknownGroup),
            }),
            Self::Elsewhere(link) => link.send(parcel),
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Here(_) => "Here",
            Self::Elsewhere(_) => "Elsewhere",
        })
    }
}

fn refuse(parcel: Parcel, reason: RefusalReason) -> Result<(), Refused> {
    Err(Refused { parcel, reason })
}

impl Link for HubLink {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        self.hub.send(parcel, Among::All)
    }

    fn bind(&self, address: &Address) {
        if let Some(group) = self.hub.write().get_mut(&self.group) {
            group.keys.insert(address.key, self.member);
        }
        self.hub.tell_remote(|link| link.bind(address));
    }

    fn unbind(&self, address: &Address) {
        let is_gone = self.hub.write().get_mut(&self.group).is_some_and(|group| {
            let is_ours = group.keys.get(&address.key) == Some(&self.member);
            is_ours && group.keys.remove(&address.key).is_some()
        });
        if is_gone {
            self.hub.tell_remote(|link| link.unbind(address));
        }
    }
}

/// A world leaves its group when it is dropped, for any reason.
impl Drop for HubLink {
    fn drop(&mut self) {
        let mut groups = self.hub.write();
        let Some(group) = groups.get_mut(&self.group) else {
            return;
        };
        let is_ours = |&(id, _): &(MemberId, Member)| id == self.member;
        let place = group.members.iter().position(is_ours);
        // The sender may drop the inbox, with parcels that hold another link.
        let gone = place.map(|place| group.members.remove(place));
        let keys = group.keys.extract_if(|_, member| *member == self.member);
        let keys: Vec<_> = keys.map(|(key, _)| key).collect();
        if group.members.is_empty() {
            groups.remove(&self.group);
        }
        drop(groups);
        drop(gone);
        for key in keys {
            let group = self.group.clone();
            let address = Address { group, key };
            self.hub.tell_remote(|link| link.unbind(&address));
        }
    }
}
