//! The link between the worlds of one process, and to those of others.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
use core::fmt;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bevy_app::App;
use bevy_ecs::world::FromWorld;

use crate::message::{
    Address, Delivery, Link, MessageSender, Parcel, Refused, RefusedBecause, SendError, StableKey,
    WorldLink,
};

/// Which worlds there are, and how they are reached.
#[derive(Debug, Default)]
pub(super) struct Hub(RwLock<Groups>);

type Groups = HashMap<Cow<'static, str>, Group>;

#[derive(Debug, Default)]
struct Group {
    /// By age.
    members: Vec<(MemberId, Member)>,
    /// In which of the worlds here the entities are.
    keys: HashMap<StableKey, MemberId>,
    next: MemberId,
    /// Those before this one have had their turn.
    turn: Mutex<MemberId>,
}

type MemberId = u64;

#[derive(Clone)]
enum Member {
    Here(MessageSender),
    Elsewhere(Arc<dyn Link>),
}

/// Among which members of a group a parcel is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    All,
    /// It comes from elsewhere, and is not to go back.
    Here,
}

/// The end of the link that a world has.
#[derive(Debug)]
struct HubLink {
    hub: Arc<Hub>,
    group: Cow<'static, str>,
    member: MemberId,
}

impl Hub {
    /// Makes the world of an app a member.
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

    /// Makes what is at the other end of a link a member.
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

    pub(super) fn send(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let groups = self.read();
        match groups.get(&parcel.group) {
            Some(group) => group.send(parcel, among),
            None => refuse(parcel, RefusedBecause::UnknownGroup),
        }
    }

    /// Tells those elsewhere, when nobody holds the lock.
    fn tell_others(&self, tell: impl Fn(&dyn Link)) {
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
    fn send(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel, among),
            Delivery::All => self.send_to_all(parcel, among),
            Delivery::InTurn => self.send_in_turn(parcel, among),
        }
    }

    fn members(&self, among: Among) -> impl Iterator<Item = (MemberId, &Member)> {
        let is_meant = move |member: &Member| among == Among::All || member.is_here();
        let members = self.members.iter().map(|(id, member)| (*id, member));
        members.filter(move |(_, member)| is_meant(member))
    }

    /// Where nobody here has the entity, those elsewhere may.
    fn send_to(&self, key: StableKey, parcel: Parcel, among: Among) -> Result<(), Refused> {
        if self.members.is_empty() {
            return refuse(parcel, RefusedBecause::UnknownGroup);
        }
        let here = self.keys.get(&key).and_then(|&id| self.get(id));
        if let Some(member) = here {
            return member.take(parcel);
        }
        let mut refused = Refused {
            parcel,
            because: RefusedBecause::UnknownKey,
        };
        for (_, member) in self.members(among).filter(|(_, member)| !member.is_here()) {
            match member.take(refused.parcel) {
                Ok(()) => return Ok(()),
                Err(by_this_one) => refused = by_this_one,
            }
        }
        Err(refused)
    }

    /// One that does not take it does not keep the others from getting it.
    fn send_to_all(&self, parcel: Parcel, among: Among) -> Result<(), Refused> {
        let mut refused = None;
        let mut has_taken = false;
        for (_, member) in self.members(among) {
            match member.take(parcel.clone()) {
                Ok(()) => has_taken = true,
                // It has ended.
                Err(gone) if gone.because == RefusedBecause::UnknownGroup => {}
                Err(by_this_one) => refused = Some(by_this_one.because),
            }
        }
        match refused {
            Some(_) if has_taken => refuse(parcel, RefusedBecause::InPart),
            Some(because) => refuse(parcel, because),
            None if has_taken => Ok(()),
            None => refuse(parcel, RefusedBecause::UnknownGroup),
        }
    }

    /// One that does not take it leaves its turn to the next.
    fn send_in_turn(&self, mut parcel: Parcel, among: Among) -> Result<(), Refused> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut because = RefusedBecause::UnknownGroup;
        let from = self.members(among).filter(|&(id, _)| id >= *turn);
        let before = self.members(among).filter(|&(id, _)| id < *turn);
        for (id, member) in from.chain(before) {
            match member.take(parcel) {
                Ok(()) => {
                    *turn = id + 1;
                    return Ok(());
                }
                Err(refused) => {
                    parcel = refused.parcel;
                    if refused.because != RefusedBecause::UnknownGroup {
                        because = refused.because;
                    }
                }
            }
        }
        refuse(parcel, because)
    }

    fn get(&self, member: MemberId) -> Option<&Member> {
        let place = self.members.binary_search_by_key(&member, |(id, _)| *id);
        Some(&self.members[place.ok()?].1)
    }
}

impl Member {
    fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// Takes a parcel, or refuses it: one that has ended as if there were no such group.
    fn take(&self, parcel: Parcel) -> Result<(), Refused> {
        match self {
            Self::Here(sender) => sender.receive(parcel).or_else(|error| match error {
                SendError::Full(parcel) => refuse(parcel, RefusedBecause::Full),
                SendError::Closed(parcel) => refuse(parcel, RefusedBecause::UnknownGroup),
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

fn refuse(parcel: Parcel, because: RefusedBecause) -> Result<(), Refused> {
    Err(Refused { parcel, because })
}

impl Link for HubLink {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        self.hub.send(parcel, Among::All)
    }

    fn bind(&self, address: &Address) {
        if let Some(group) = self.hub.write().get_mut(&self.group) {
            group.keys.insert(address.key, self.member);
        }
        self.hub.tell_others(|link| link.bind(address));
    }

    fn unbind(&self, address: &Address) {
        let is_gone = self.hub.write().get_mut(&self.group).is_some_and(|group| {
            let is_ours = group.keys.get(&address.key) == Some(&self.member);
            is_ours && group.keys.remove(&address.key).is_some()
        });
        if is_gone {
            self.hub.tell_others(|link| link.unbind(address));
        }
    }
}

/// A world that is dropped, whatever the reason, is no member any more.
impl Drop for HubLink {
    fn drop(&mut self) {
        let mut groups = self.hub.write();
        let Some(group) = groups.get_mut(&self.group) else {
            return;
        };
        let is_ours = |&(id, _): &(MemberId, Member)| id == self.member;
        let place = group.members.iter().position(is_ours);
        // With its sender goes what is left in its inbox, which may hold another link.
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
            self.hub.tell_others(|link| link.unbind(&address));
        }
    }
}
