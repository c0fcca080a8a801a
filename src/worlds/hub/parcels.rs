//! How a parcel goes to the members of its group.

use alloc::{borrow::Cow, sync::Arc};
use core::{hash::BuildHasher, sync::atomic::Ordering};

use smallvec::SmallVec;

use super::{
    super::{
        address::StableKey,
        members::{Member, MemberId},
        news::AwaitedFrom,
        parcel::{Parcel, Refused},
        remote::{SessionId, Source},
    },
    Hub, Members,
};
use crate::message::{Delivery, MessageSender, RefusalReason, SendError};

/// The number of processes that pass a parcel on, before it is refused.
const MAX_HOPS: u8 = 4;

impl Hub {
    /// Sends a parcel from outside all worlds.
    pub(crate) fn post(self: &Arc<Self>, parcel: Parcel) -> Result<(), Refused> {
        let sequence = self.outside.fetch_add(1, Ordering::Relaxed);
        self.post_from(0, sequence, parcel).map(|_| ())
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
            hops: 0,
        };
        let sent = self.send(&parcel, source);
        sent.map_err(|reason| parcel.refused(reason))
    }

    /// Sends a parcel to members of its group, and returns who has taken it, if another process has.
    pub(super) fn send(
        self: &Arc<Self>,
        parcel: &Parcel,
        source: Source,
    ) -> Result<Option<AwaitedFrom>, RefusalReason> {
        let session = match parcel.delivery {
            Delivery::To(key) => self.send_to(key, parcel, source)?,
            Delivery::All => return self.send_to_all(parcel, source),
            Delivery::InTurn => self.send_in_turn(parcel, source)?,
        };
        Ok(session.map(AwaitedFrom::One))
    }

    /// Sends a parcel to the member with a key.
    fn send_to(
        self: &Arc<Self>,
        key: StableKey,
        parcel: &Parcel,
        source: Source,
    ) -> Result<Option<SessionId>, RefusalReason> {
        let members = self.read();
        let group = members.groups.get(&parcel.group);
        let group = group.ok_or(RefusalReason::UnknownGroup)?;
        let Some(id) = group.with_key(key) else {
            return Err(match group.has_members() {
                true => RefusalReason::UnknownKey,
                false => RefusalReason::UnknownGroup,
            });
        };
        // The parcel is in the inbox before the lock is released. When a key goes to another world,
        // all parcels that were sent before are therefore in the inbox of the world that had it.
        if let Some(world) = members.worlds.get(&id) {
            return self.put(world, parcel, source).map(|()| None);
        }
        match members.remotes.get(&id) {
            Some(remote) if source.hops <= MAX_HOPS => {
                let parcel = members.for_others(parcel);
                remote.send(&parcel, self.sealed(source, &parcel)).map(Some)
            }
            _ => Err(RefusalReason::UnknownKey),
        }
    }

    /// Sends a parcel to all members. A refusal by one does not stop the others.
    fn send_to_all(
        self: &Arc<Self>,
        parcel: &Parcel,
        mut source: Source,
    ) -> Result<Option<AwaitedFrom>, RefusalReason> {
        let mut reason = None;
        let (mut takers, mut elsewhere) = (0, None);
        let members = self.read();
        if let Some(group) = members.groups.get(&parcel.group) {
            let for_others = members.for_others(parcel);
            for (_, member) in group.takers(source) {
                if matches!(member, Member::Elsewhere(..)) {
                    // Once for all processes.
                    source = self.sealed(source, &for_others);
                }
                match self.give(member, [parcel, &for_others], source) {
                    Ok(session) => {
                        takers += 1;
                        elsewhere = elsewhere.or(session);
                    }
                    Err(RefusalReason::UnknownGroup) => {}
                    Err(refused) => reason = Some(refused),
                }
            }
        }
        match (takers, reason) {
            (0, reason) => Err(reason.unwrap_or(RefusalReason::UnknownGroup)),
            (_, Some(_)) => Err(RefusalReason::InPart),
            (1, None) => Ok(elsewhere.map(AwaitedFrom::One)),
            (_, None) => Ok(elsewhere.map(|_| AwaitedFrom::Several)),
        }
    }

    /// Sends a parcel to the member whose turn it is. A member that refuses it loses its turn.
    fn send_in_turn(
        self: &Arc<Self>,
        parcel: &Parcel,
        source: Source,
    ) -> Result<Option<SessionId>, RefusalReason> {
        let mut reason = RefusalReason::UnknownGroup;
        let mut tried = SmallVec::<[MemberId; 4]>::new();
        let members = self.read();
        let group = members.groups.get(&parcel.group).ok_or(reason)?;
        let for_others = members.for_others(parcel);
        while let Some((id, member)) = group.in_turn(&tried, source) {
            tried.push(*id);
            match self.give(member, [parcel, &for_others], source) {
                Err(RefusalReason::UnknownGroup) => {}
                Err(refused) => reason = refused,
                taken => return taken,
            }
        }
        Err(reason)
    }

    /// Gives a parcel to a member: as it is, or as it is for other processes. Returns the connection by which
    /// another process has taken it.
    fn give(
        self: &Arc<Self>,
        member: &Member,
        [here, elsewhere]: [&Parcel; 2],
        source: Source,
    ) -> Result<Option<SessionId>, RefusalReason> {
        match member {
            Member::Here(world) => self.put(world, here, source).map(|()| None),
            Member::Elsewhere(remote, _) => {
                let source = self.sealed(source, elsewhere);
                remote.send(elsewhere, source).map(Some)
            }
        }
    }

    /// Seals a parcel that leaves this process, if a world here has sent it.
    fn sealed(&self, mut source: Source, parcel: &Parcel) -> Source {
        if source.process == self.process && source.seal == 0 {
            source.seal = self.seal(source, parcel);
        }
        source
    }

    /// Returns the seal of a parcel that a world here has sent.
    pub(super) fn seal(&self, source: Source, parcel: &Parcel) -> u64 {
        self.seals.hash_one((source.world, source.sequence, parcel))
    }

    /// Puts a parcel into the inbox of a world. A world that has ended refuses it with `UnknownGroup`. If
    /// the inbox is full, the sender learns when it has room.
    fn put(
        self: &Arc<Self>,
        world: &MessageSender,
        parcel: &Parcel,
        source: Source,
    ) -> Result<(), RefusalReason> {
        loop {
            match world.receive(parcel) {
                Ok(()) => return Ok(()),
                Err(SendError::Closed(())) => return Err(RefusalReason::UnknownGroup),
                Err(SendError::Full(())) => {}
            }
            let (hub, group) = (Arc::downgrade(self), parcel.group.clone());
            let is_full = world.when_room((source.process, source.world), move || {
                if let Some(hub) = hub.upgrade() {
                    hub.tell_room([(source, group)]);
                }
            });
            if is_full {
                return Err(RefusalReason::Full);
            }
        }
    }
}

impl Members {
    /// Returns a parcel as other processes get it. If they do not know the key of an asking entity here, the
    /// reply goes to the key that its world announces.
    fn for_others<'a>(&self, parcel: &'a Parcel) -> Cow<'a, Parcel> {
        let asker = parcel.asker().filter(|_| !self.only_key.is_empty());
        let announced = asker.and_then(|(group, key)| {
            let world = self.groups.get(group)?.with_key(key)?;
            self.only_key.get(&world)
        });
        match announced {
            Some(&key) => Cow::Owned(parcel.clone().asked_by(key)),
            None => Cow::Borrowed(parcel),
        }
    }
}
