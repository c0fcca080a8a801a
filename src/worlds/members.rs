//! A group of worlds, and the members that a parcel goes to.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::Ordering::Relaxed;

use bevy_platform::collections::HashMap;
use smallvec::SmallVec;

use super::{
    address::StableKey,
    remote::{Remote, Source},
};
use crate::{message::MessageSender, sync::AtomicU64};

/// Rises with the order of joining, for worlds and other processes. Zero stands for none.
pub(super) type MemberId = u64;

/// Tells which of two claims to a key is newer. It rises with each claim that a process makes, above
/// all that it knows.
pub(super) type Epoch = u64;

/// The claim of a member to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) member: MemberId,
    pub(super) epoch: Epoch,
    /// The process of the member. All processes choose alike between claims of the same epoch.
    pub(super) process: u64,
}

/// A named group of worlds.
#[derive(Default)]
pub(super) struct Group {
    /// In the order of joining.
    members: Vec<(MemberId, Member)>,
    /// The members with an entity of each key, one in most cases. The last one gets the parcels.
    pub(super) keys: HashMap<StableKey, SmallVec<[Claim; 1]>>,
    /// The keys of this process that others know, with its newest claims.
    pub(super) announced: HashMap<StableKey, Epoch>,
    /// The member with the next turn, and the number of turns that it has had: see [`Turn`].
    turn: AtomicU64,
}

/// A member of a group.
#[derive(Clone)]
pub(super) enum Member {
    Here(MessageSender),
    /// Another process, with the number of its worlds.
    Elsewhere(Arc<Remote>, u32),
}

/// The member with the next turn, and the number of turns that it has had. If the member is gone, the
/// next one has the turn.
#[derive(Clone, Copy)]
struct Turn {
    member: MemberId,
    had: u32,
}

impl Turn {
    const BITS: u32 = 16;
    /// A process with more worlds has no more turns than this in a row.
    const MAX: u32 = (1 << Self::BITS) - 1;

    fn unpack(packed: u64) -> Self {
        Self {
            member: packed >> Self::BITS,
            // Fewer than 32 bits.
            had: packed as u32 & Self::MAX,
        }
    }

    fn pack(self) -> u64 {
        self.member << Self::BITS | u64::from(self.had)
    }
}

impl Group {
    /// Adds a member, or replaces the one with this id.
    pub(super) fn add(&mut self, id: MemberId, member: Member) {
        match self.members.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(place) => self.members[place].1 = member,
            Err(place) => self.members.insert(place, (id, member)),
        }
    }

    /// Returns `true` if the group has neither members nor keys.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.keys.is_empty()
    }

    /// Returns `true` if the group has members.
    pub(super) fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Returns the number of worlds, without processes that may be dead.
    pub(super) fn worlds(&self) -> usize {
        let worlds = self.members.iter().map(|(_, member)| match member {
            Member::Here(_) => 1,
            Member::Elsewhere(remote, _) if remote.is_suspect() => 0,
            Member::Elsewhere(_, worlds) => *worlds as usize,
        });
        worlds.sum()
    }

    /// Returns the number of worlds of this process.
    pub(super) fn worlds_here(&self) -> usize {
        let members = self.members.iter();
        let here = members.filter(|(_, member)| matches!(member, Member::Here(_)));
        here.count()
    }

    /// Iterates over the members that can get a parcel.
    pub(super) fn takers(&self, source: Source) -> impl Iterator<Item = &(MemberId, Member)> {
        let members = self.members.iter();
        members.filter(move |(_, member)| member.can_get(source))
    }

    /// Returns the member with a key, if any.
    pub(super) fn with_key(&self, key: StableKey) -> Option<MemberId> {
        Some(self.keys.get(&key)?.last()?.member)
    }

    /// Returns `true` if several members have a key.
    pub(super) fn is_shared(&self, key: StableKey) -> bool {
        self.keys.get(&key).is_some_and(|claims| claims.len() > 1)
    }

    /// Gives a key to a member. The newest claim wins. Returns `true` if another member has the key,
    /// too.
    pub(super) fn bind(&mut self, key: StableKey, claim: Claim) -> bool {
        let claims = self.keys.entry(key).or_default();
        claims.retain(|other| other.member != claim.member);
        let age = |claim: &Claim| (claim.epoch, claim.process);
        let place = claims.partition_point(|other| age(other) <= age(&claim));
        claims.insert(place, claim);
        claims.len() > 1
    }

    /// Takes a key from a member, unless its claim is newer than this epoch.
    pub(super) fn unbind(&mut self, key: StableKey, member: MemberId, epoch: Epoch) {
        if let Some(claims) = self.keys.get_mut(&key) {
            claims.retain(|claim| claim.member != member || claim.epoch > epoch);
            if claims.is_empty() {
                self.keys.remove(&key);
            }
        }
    }

    /// Returns all keys of a member.
    pub(super) fn keys_of(&self, member: MemberId) -> Vec<StableKey> {
        let of_member = |claim: &Claim| claim.member == member;
        let keys = self.keys.iter();
        let keys = keys.filter(|(_, claims)| claims.iter().any(of_member));
        keys.map(|(&key, _)| key).collect()
    }

    /// Takes all keys from a member.
    pub(super) fn unbind_all(&mut self, member: MemberId) {
        for key in self.keys_of(member) {
            self.unbind(key, member, Epoch::MAX);
        }
    }

    /// Ends the turn of the next member that was not tried yet, and returns it. A process has a turn for
    /// each of its worlds. One that may be dead has a turn only if all others were tried.
    pub(super) fn in_turn(
        &self,
        tried: &[MemberId],
        source: Source,
    ) -> Option<&(MemberId, Member)> {
        let is_new = |(id, member): &&(MemberId, Member)| {
            member.can_get(source) && !tried.contains(id) && !member.is_suspect()
        };
        if tried.is_empty() {
            let after = |packed| {
                let (_, turn) = self.next(Turn::unpack(packed), is_new)?;
                Some(turn.pack())
            };
            if let Ok(turn) = self.turn.fetch_update(Relaxed, Relaxed, after) {
                return Some(self.next(Turn::unpack(turn), is_new)?.0);
            }
        } else {
            let last = Turn::unpack(self.turn.load(Relaxed));
            if let Some((next, turn)) = self.next(last, is_new) {
                self.turn.store(turn.pack(), Relaxed);
                return Some(next);
            }
        }
        let mut takers = self.takers(source);
        takers.find(|(id, _)| !tried.contains(id))
    }

    /// Returns the member that has a turn, and the turn after it.
    fn next(
        &self,
        turn: Turn,
        is_new: impl Fn(&&(MemberId, Member)) -> bool,
    ) -> Option<(&(MemberId, Member), Turn)> {
        let find = |from| {
            let first = self.members.partition_point(|(id, _)| *id < from);
            let (before, after) = self.members.split_at(first);
            after.iter().chain(before).find(&is_new)
        };
        let mut next = find(turn.member)?;
        let mut had = if next.0 == turn.member { turn.had } else { 0 };
        if had >= next.1.turns() {
            (next, had) = (find(turn.member + 1)?, 0);
        }
        let (member, had) = match had + 1 < next.1.turns() {
            true => (next.0, had + 1),
            false => (next.0 + 1, 0),
        };
        Some((next, Turn { member, had }))
    }

    /// Removes a member, if it has not left.
    pub(super) fn remove(&mut self, member: MemberId) -> Option<Member> {
        let place = self.members.binary_search_by_key(&member, |(id, _)| *id);
        Some(self.members.remove(place.ok()?).1)
    }
}

impl Member {
    /// Returns `true` if the member can get a parcel. One that comes from another process must not go back.
    fn can_get(&self, source: Source) -> bool {
        source.hops == 0 || matches!(self, Self::Here(_))
    }

    fn is_suspect(&self) -> bool {
        matches!(self, Self::Elsewhere(remote, _) if remote.is_suspect())
    }

    /// Returns the number of turns that the member has in a row.
    fn turns(&self) -> u32 {
        match self {
            Self::Here(_) => 1,
            Self::Elsewhere(_, worlds) => (*worlds).min(Turn::MAX),
        }
    }
}
