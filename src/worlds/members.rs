//! A group of worlds, and the members that a parcel goes to.

use alloc::{sync::Arc, vec::Vec};
use core::fmt;
use std::collections::HashMap;

use smallvec::SmallVec;

use super::{
    address::StableKey,
    parcel::{Parcel, Refused},
    remote::Remote,
};
use crate::{
    message::{MessageSender, RefusalReason, SendError},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A named group of worlds.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// In the order of joining.
    pub(super) members: Vec<(MemberId, Member)>,
    /// The members with an entity of each key, one in most cases. The last one gets the parcels.
    pub(super) keys: HashMap<StableKey, SmallVec<[MemberId; 1]>>,
    /// Members with a lower id have had their turn.
    turn: Mutex<MemberId>,
}

/// Rises with the order of joining, also after a group has lost all members.
pub(super) type MemberId = u64;

/// Members to call when no lock is held.
pub(super) type Members = SmallVec<[(MemberId, Member); 4]>;

/// A member of a group.
#[derive(Clone)]
pub(super) enum Member {
    Here(MessageSender),
    Elsewhere(Arc<Remote>),
}

/// The members of a group that a parcel can go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Among {
    All,
    /// Members in this process. The parcel comes from another process, and must not go back.
    Here,
}

impl Group {
    /// Adds a member with an id above all others.
    pub(super) fn add(&mut self, id: MemberId, member: Member) {
        debug_assert!(self.members.last().is_none_or(|(last, _)| *last < id));
        self.members.push((id, member));
    }

    /// Iterates over the members that a parcel can go to.
    pub(super) fn members(&self, among: Among) -> impl Iterator<Item = (MemberId, Member)> {
        let is_meant = move |member: &Member| among == Among::All || member.is_here();
        let members = self.members.iter();
        let members = members.filter(move |(_, member)| is_meant(member));
        members.map(|(id, member)| (*id, member.clone()))
    }

    /// Returns the member of this process with a key, if any.
    pub(super) fn with_key(&self, key: StableKey) -> Option<&(MemberId, Member)> {
        self.get(*self.keys.get(&key)?.last()?)
    }

    /// Returns the members that may have a key that no member of this process has.
    pub(super) fn members_elsewhere(&self, among: Among) -> Members {
        let members = self.members(among);
        members.filter(|(_, member)| !member.is_here()).collect()
    }

    /// Returns `true` if several members have a key.
    pub(super) fn is_shared(&self, key: StableKey) -> bool {
        self.keys.get(&key).is_some_and(|members| members.len() > 1)
    }

    /// Gives a key to a member. Returns `true` if another member has the key, too.
    pub(super) fn bind(&mut self, key: StableKey, member: MemberId) -> bool {
        let members = self.keys.entry(key).or_default();
        members.retain(|other| *other != member);
        members.push(member);
        members.len() > 1
    }

    /// Takes a key from a member. Returns `true` if no member has the key any more.
    pub(super) fn unbind(&mut self, key: StableKey, member: MemberId) -> bool {
        let Some(members) = self.keys.get_mut(&key) else {
            return false;
        };
        members.retain(|other| *other != member);
        members.is_empty() && self.keys.remove(&key).is_some()
    }

    /// Takes all keys from a member, and returns those that no member has any more.
    pub(super) fn unbind_all(&mut self, member: MemberId) -> Vec<StableKey> {
        let gone = self.keys.extract_if(|_, members| {
            members.retain(|other| *other != member);
            members.is_empty()
        });
        gone.map(|(key, _)| key).collect()
    }

    /// Returns all members, starting with the one whose turn it is, and ends that turn.
    pub(super) fn begin_turn(&self, among: Among) -> Members {
        let mut turn = self.lock_turn();
        let mut members: Members = self.members(among).collect();
        let first = members.partition_point(|(id, _)| *id < *turn);
        members.rotate_left(first);
        if let Some((id, _)) = members.first() {
            *turn = id + 1;
        }
        members
    }

    /// Ends the turn of a member.
    pub(super) fn end_turn(&self, member: MemberId) {
        *self.lock_turn() = member + 1;
    }

    fn lock_turn(&self) -> MutexGuard<'_, MemberId> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a member, if it has not left.
    pub(super) fn remove(&mut self, member: MemberId) -> Option<Member> {
        let place = self.place_of(member)?;
        Some(self.members.remove(place).1)
    }

    pub(super) fn get(&self, member: MemberId) -> Option<&(MemberId, Member)> {
        Some(&self.members[self.place_of(member)?])
    }

    fn place_of(&self, member: MemberId) -> Option<usize> {
        let place = self.members.binary_search_by_key(&member, |(id, _)| *id);
        place.ok()
    }
}

impl Member {
    fn is_here(&self) -> bool {
        matches!(self, Self::Here(_))
    }

    /// Takes a parcel. A member that has ended refuses it with `UnknownGroup`.
    pub(super) fn take(&self, parcel: Parcel) -> Result<(), Refused> {
        match self {
            Self::Here(sender) => sender.receive(parcel).map_err(|error| match error {
                SendError::Full(parcel) => parcel.refused(RefusalReason::Full),
                SendError::Closed(parcel) => parcel.refused(RefusalReason::UnknownGroup),
            }),
            Self::Elsewhere(remote) => remote.send(parcel),
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
