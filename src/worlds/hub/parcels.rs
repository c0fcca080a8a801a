//! How a parcel goes to the members of its group.

use alloc::sync::Arc;
use core::{hash::BuildHasher, sync::atomic::Ordering};

use smallvec::SmallVec;

use super::{
    super::{
        address::StableKey,
        claim::MemberId,
        members::{Among, Member},
        news::AwaitedFrom,
        parcel::{Parcel, Refused},
        remote::{Source, Way},
    },
    Hub,
};
use crate::message::{Delivery, MessageSender, RefusalReason, SendError};

/// The number of processes that pass a parcel on, before it is refused.
const MAX_HOPS: u8 = 4;

impl Hub {
    /// Sends a parcel from outside all worlds.
    pub(crate) fn post(self: &Arc<Self>, parcel: Parcel) -> Result<Option<AwaitedFrom>, Refused> {
        let sequence = self.outside.fetch_add(1, Ordering::Relaxed);
        self.post_from(0, sequence, parcel)
    }

    /// Sends a parcel from a world, and returns who has taken it, if another process has.
    pub(crate) fn post_from(
        self: &Arc<Self>,
        world: MemberId,
        sequence: u64,
        parcel: Parcel,
    ) -> Result<Option<AwaitedFrom>, Refused> {
        let source = Source {
            process: self.process,
            world,
            sequence,
            seal: 0,
        };
        self.send(parcel, Way { source, hops: 0 }, Among::All)
    }

    /// Sends a parcel to members of its group.
    pub(super) fn send(
        self: &Arc<Self>,
        parcel: Parcel,
        way: Way,
        among: Among,
    ) -> Result<Option<AwaitedFrom>, Refused> {
        match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel, way, among),
            Delivery::All => self.send_to_all(parcel, way, among),
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
    ) -> Result<Option<AwaitedFrom>, Refused> {
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
            way.hops = way.hops.saturating_add(1);
        }
        match members.peers.get(&id) {
            Some(peer) if way.hops <= MAX_HOPS => {
                let way = self.sealed(way, &parcel);
                let sent = peer.remote.send(parcel, way);
                sent.map(|session| Some(AwaitedFrom::One(session)))
            }
            _ => Err(parcel.refused(RefusalReason::UnknownKey)),
        }
    }

    /// Sends a parcel to all members. A refusal by one does not stop the others.
    fn send_to_all(
        self: &Arc<Self>,
        parcel: Parcel,
        way: Way,
        among: Among,
    ) -> Result<Option<AwaitedFrom>, Refused> {
        let mut sealed = None;
        let mut reason = None;
        let (mut takers, mut elsewhere) = (0, None);
        let mut note = |taken| match taken {
            Ok(session) => {
                takers += 1;
                elsewhere = elsewhere.or(session);
            }
            Err(RefusalReason::UnknownGroup) => {}
            Err(refused) => reason = Some(refused),
        };
        if let Some(group) = self.read().groups.get(&parcel.group) {
            for (_, member) in group.members(among) {
                note(match member {
                    Member::Here(world) => self.put_copy(world, &parcel, way).map(|()| None),
                    Member::Elsewhere(remote, _) => {
                        let way = sealed.get_or_insert_with(|| self.sealed(way, &parcel));
                        remote.send_copy(&parcel, *way).map(Some)
                    }
                });
            }
        }
        match (takers, reason) {
            (0, reason) => Err(parcel.refused(reason.unwrap_or(RefusalReason::UnknownGroup))),
            (_, Some(_)) => Err(parcel.refused(RefusalReason::InPart)),
            (1, None) => Ok(elsewhere.map(AwaitedFrom::One)),
            (_, None) => Ok(elsewhere.map(|_| AwaitedFrom::Several)),
        }
    }

    /// Sends a parcel to the member whose turn it is. A member that refuses it loses its turn.
    fn send_in_turn(
        self: &Arc<Self>,
        mut parcel: Parcel,
        way: Way,
        among: Among,
    ) -> Result<Option<AwaitedFrom>, Refused> {
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
                Member::Elsewhere(remote, _) => {
                    let way = self.sealed(way, &parcel);
                    let sent = remote.send(parcel, way);
                    sent.map(|session| Some(AwaitedFrom::One(session)))
                }
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

    /// Seals a parcel that leaves this process, if a world here has sent it.
    fn sealed(&self, mut way: Way, parcel: &Parcel) -> Way {
        if way.source.process == self.process {
            way.source.seal = self.seal(way.source, parcel);
        }
        way
    }

    /// Returns the seal of a parcel that a world here has sent.
    pub(super) fn seal(&self, source: Source, parcel: &Parcel) -> u64 {
        self.seals.hash_one((source.world, source.sequence, parcel))
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
