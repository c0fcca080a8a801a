//! The link between the worlds of one process.

use alloc::{borrow::Cow, sync::Arc, vec::Vec};
use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bevy_app::App;
use bevy_ecs::world::FromWorld;

use crate::message::{
    Delivery, Link, Mail, MessageSender, Parcel, Refused, RefusedBecause, SendError, StableKey,
    WorldLink,
};

/// Which worlds there are, and how they are reached.
#[derive(Debug, Default)]
pub(super) struct Hub(RwLock<HashMap<Cow<'static, str>, Group>>);

#[derive(Debug, Default)]
struct Group {
    /// By age.
    members: Vec<(MemberId, MessageSender)>,
    /// Where the entities are.
    keys: HashMap<StableKey, MemberId>,
    next: MemberId,
    /// Those before this one have had their turn.
    turn: std::sync::Mutex<MemberId>,
}

type MemberId = u64;

/// The end of the link that a world has.
#[derive(Debug)]
pub(super) struct HubLink {
    hub: Arc<Hub>,
    group: Cow<'static, str>,
    member: MemberId,
}

impl Hub {
    /// Makes the world of an app a member.
    pub(super) fn join(self: &Arc<Self>, group: Cow<'static, str>, app: &mut App) {
        let sender = MessageSender::from_world(app.world_mut());
        let member = {
            let mut groups = self.write();
            let group = groups.entry(group.clone()).or_default();
            let member = group.next;
            group.next += 1;
            group.members.push((member, sender));
            member
        };
        let link = HubLink {
            hub: self.clone(),
            group: group.clone(),
            member,
        };
        Mail::link(app.world_mut(), WorldLink::new(group, link));
    }

    pub(super) fn members(&self, group: &str) -> usize {
        self.read()
            .get(group)
            .map_or(0, |group| group.members.len())
    }

    pub(super) fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        let groups = self.read();
        match groups.get(&parcel.group) {
            Some(group) => group.send(parcel),
            None => refuse(parcel, RefusedBecause::UnknownGroup),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Cow<'static, str>, Group>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Cow<'static, str>, Group>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    fn remove(&mut self, member: MemberId) -> Option<MessageSender> {
        self.keys.retain(|_, at| *at != member);
        let place = self.place(member)?;
        Some(self.members.remove(place).1)
    }

    fn place(&self, member: MemberId) -> Option<usize> {
        let place = self.members.binary_search_by_key(&member, |(id, _)| *id);
        place.ok()
    }

    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel),
            Delivery::All => self.send_to_all(parcel),
            Delivery::InTurn => self.send_in_turn(parcel),
        }
    }

    fn send_to(&self, key: StableKey, parcel: Parcel) -> Result<(), Refused> {
        let member = self.keys.get(&key);
        let place = member.and_then(|&member| self.place(member));
        match place {
            Some(place) => {
                let (_, sender) = &self.members[place];
                sender.receive(parcel).or_else(|error| match error {
                    SendError::Full(parcel) => refuse(parcel, RefusedBecause::Full),
                    SendError::Closed(parcel) => refuse(parcel, RefusedBecause::UnknownKey),
                })
            }
            None if self.members.is_empty() => refuse(parcel, RefusedBecause::UnknownGroup),
            None => refuse(parcel, RefusedBecause::UnknownKey),
        }
    }

    /// One that has no room does not keep the others from getting it, but is told of.
    fn send_to_all(&self, parcel: Parcel) -> Result<(), Refused> {
        let mut because = Some(RefusedBecause::UnknownGroup);
        for (_, sender) in &self.members {
            match sender.receive(parcel.clone()) {
                Ok(()) if because == Some(RefusedBecause::UnknownGroup) => because = None,
                Err(SendError::Full(_)) => because = Some(RefusedBecause::Full),
                Ok(()) | Err(SendError::Closed(_)) => {}
            }
        }
        because.map_or(Ok(()), |because| refuse(parcel, because))
    }

    /// One that has no room leaves its turn to the next.
    fn send_in_turn(&self, mut parcel: Parcel) -> Result<(), Refused> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut because = RefusedBecause::UnknownGroup;
        let start = self.members.partition_point(|&(id, _)| id < *turn);
        let (before, from) = self.members.split_at(start);
        for (id, sender) in from.iter().chain(before) {
            parcel = match sender.receive(parcel) {
                Ok(()) => {
                    *turn = id + 1;
                    return Ok(());
                }
                Err(SendError::Full(parcel)) => {
                    because = RefusedBecause::Full;
                    parcel
                }
                Err(SendError::Closed(parcel)) => parcel,
            };
        }
        refuse(parcel, because)
    }
}

fn refuse(parcel: Parcel, because: RefusedBecause) -> Result<(), Refused> {
    Err(Refused { parcel, because })
}

impl Link for HubLink {
    fn send(&self, parcel: Parcel) -> Result<(), Refused> {
        self.hub.send(parcel)
    }

    fn bind(&self, key: StableKey) {
        if let Some(group) = self.hub.write().get_mut(&self.group) {
            group.keys.insert(key, self.member);
        }
    }

    fn unbind(&self, key: StableKey) {
        if let Some(group) = self.hub.write().get_mut(&self.group)
            && group.keys.get(&key) == Some(&self.member)
        {
            group.keys.remove(&key);
        }
    }
}

/// A world that is dropped, whatever the reason, is no member any more.
impl Drop for HubLink {
    fn drop(&mut self) {
        // With its sender goes what is left in its inbox, which may hold another link.
        let _gone = self
            .hub
            .write()
            .get_mut(&self.group)
            .and_then(|group| group.remove(self.member));
    }
}
