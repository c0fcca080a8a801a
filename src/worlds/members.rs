//! A group of worlds, and the members that a parcel goes to.

use alloc::{sync::Arc, vec::Vec};
use core::{fmt, sync::atomic::Ordering::Relaxed};

use bevy_platform::collections::HashMap;
use smallvec::SmallVec;

use super::{address::StableKey, remote::Remote};
use crate::{message::MessageSender, sync::AtomicU64};

/// A named group of worlds.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// In the order of joining.
    pub(super) members: Vec<(MemberId, Member)>,
    /// The members with an entity of each key, one in most cases. The last one gets the parcels.
    pub(super) keys: HashMap<StableKey, SmallVec<[MemberId; 1]>>,
    /// Members with a lower id have had their turn.
    turn: AtomicU64,
}

/// Rises with the order of joining, also after a group has lost all members.
pub(super) type MemberId = u64;

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
    pub(super) fn members(&self, among: Among) -> impl Iterator<Item = &(MemberId, Member)> {
        let members = self.members.iter();
        members.filter(move |(_, member)| member.is_among(among))
    }

    /// Returns the member of this process with a key, if any.
    pub(super) fn with_key(&self, key: StableKey) -> Option<&(MemberId, Member)> {
        self.get(*self.keys.get(&key)?.last()?)
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

    /// Ends the turn of the next member that was not tried yet, and returns it.
    pub(super) fn in_turn(&self, tried: &[MemberId], among: Among) -> Option<&(MemberId, Member)> {
        let Some(last) = tried.last() else {
            let after = |turn| Some(self.next(turn, among)?.0 + 1);
            let turn = self.turn.fetch_update(Relaxed, Relaxed, after).ok()?;
            return self.next(turn, among);
        };
        let next = self.next(last + 1, among);
        let next = next.filter(|(id, _)| !tried.contains(id))?;
        self.turn.store(next.0 + 1, Relaxed);
        Some(next)
    }

    /// Returns the first member from an id on, or else the first of all.
    fn next(&self, from: MemberId, among: Among) -> Option<&(MemberId, Member)> {
        let first = self.members.partition_point(|(id, _)| *id < from);
        let mut next = self.members[first..].iter().chain(&self.members[..first]);
        next.find(|(_, member)| member.is_among(among))
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
    fn is_among(&self, among: Among) -> bool {
        among == Among::All || matches!(self, Self::Here(_))
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
