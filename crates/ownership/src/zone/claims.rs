//! What a zone claims, if a store decides who owns an entity.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use bevy_due::worlds::StableKey;
use bevy_ecs::world::World;

use super::{
    ZoneState,
    leave::{Departure, Step},
    now, with_zone,
};
use crate::{
    changes::Outgoing,
    committer::Effect,
    ids::{JournalId, Life, Recipient, ZoneId},
    owners::{Owner, OwnerStore, Referee, Unreachable},
    report::report,
};

/// How long an entity waits before it claims its key again, and after how many attempts it is reported.
const CLAIM_AGAIN: Duration = Duration::from_millis(250);
const REPORT_AFTER: u32 = 8;

/// What the store of owners is asked, and has yet to hear.
#[derive(Default)]
pub(super) struct Claims {
    /// Who asks the store. `None` if the journals decide.
    pub(super) referee: Option<Referee>,
    /// The entities for which the store has yet to say whether they may leave.
    pub(super) asked: BTreeSet<StableKey>,
    /// The entities that are new or have despawned. The store hears of them when the frame is durable.
    pub(super) to_tell: BTreeSet<Life>,
    /// The entities that have despawned, with their epochs, and that the store still has.
    pub(super) released: BTreeMap<Life, u64>,
    /// The entities whose keys belong to other ones.
    conflicts: BTreeMap<Life, Conflict>,
}

/// The store has another entity with the same key.
struct Conflict {
    /// When to claim the key again.
    again: Duration,
    attempts: u32,
}

impl Claims {
    pub(super) fn new(referee: Option<Referee>) -> Self {
        Self {
            referee,
            ..Self::default()
        }
    }

    pub(super) fn is_in_conflict(&self, life: Life) -> bool {
        self.conflicts.contains_key(&life)
    }

    /// Returns the number of entities whose keys belong to other ones.
    pub(super) fn conflicts(&self) -> usize {
        self.conflicts.len()
    }
}

impl ZoneState {
    /// Returns what asks the store of owners, if there is one, until it answers this zone.
    fn question<T: Send + 'static>(
        &self,
        question: impl Fn(&mut dyn OwnerStore) -> Result<T, Unreachable> + Send + 'static,
        answer: impl FnOnce(&mut Self, &mut World, T) + Send + 'static,
    ) -> Effect {
        let referee = self.claims.referee.clone();
        let sender = self.home.sender.clone();
        let answer = move |world: &mut World, found| {
            with_zone(world, |zone, world| answer(zone, world, found));
        };
        Box::new(move || {
            if let Some(referee) = referee {
                referee.ask(sender, question, answer);
            }
        })
    }

    /// Returns this zone as the owner of an entity.
    fn owner(&self, life: Life, epoch: u64) -> Owner {
        let zone = self.home.me;
        let birth = Some(life.birth);
        Owner { zone, epoch, birth }
    }

    /// Claims an entity that is here.
    fn claim(&self, life: Life, epoch: u64, from: Option<Owner>) {
        self.claim_of(life, epoch, from)();
    }

    fn claim_of(&self, life: Life, epoch: u64, from: Option<Owner>) -> Effect {
        let to = self.owner(life, epoch);
        self.question(
            move |store| store.change(life.key, from, to),
            move |zone, world, found| {
                if found == Some(to) {
                    zone.claims.conflicts.remove(&life);
                } else {
                    zone.follow(world, (life, epoch), found);
                }
            },
        )
    }

    /// Returns what tells the store which entities are new and which have despawned. It must not know that before the
    /// journal does.
    pub(super) fn tell_store(&mut self) -> Vec<Effect> {
        let to_tell = core::mem::take(&mut self.claims.to_tell);
        let (born, died): (Vec<_>, Vec<_>) = to_tell
            .into_iter()
            .partition(|&life| self.owned(Recipient::Life(life)).is_some());
        // A new entity may have the key of one that has despawned.
        let released = died.into_iter().filter_map(|life| {
            let epoch = self.claims.released.get(&life)?;
            Some(self.release(life, *epoch))
        });
        let claimed = born.into_iter().filter_map(|life| {
            let epoch = self.book.owned.get(&life.key)?.epoch;
            Some(self.claim_of(life, epoch, None))
        });
        released.chain(claimed).collect()
    }

    /// Asks for all entities of the journal whether they still belong to this zone, and releases the keys of those that
    /// have despawned.
    pub(super) fn check_owners(&self) {
        if self.claims.referee.is_none() {
            return;
        }
        for entry in self.book.owned.values() {
            let mine = self.owner(entry.life, entry.epoch);
            self.claim(entry.life, entry.epoch, Some(mine));
        }
        for (&life, &epoch) in &self.claims.released {
            self.release(life, epoch)();
        }
    }

    /// Follows the store, which has another owner of an entity than this zone.
    fn follow(&mut self, world: &mut World, (life, epoch): (Life, u64), found: Option<Owner>) {
        let key = life.key;
        let owned = self.book.owned.get(&key);
        if owned.is_none_or(|it| (it.life, it.epoch) != (life, epoch)) {
            return;
        }
        let Some(owner) = found else {
            // The store has not heard yet that the entity is new.
            self.claim(life, epoch, None);
            return self.ask_again(key);
        };
        let is_lost = self.lost.dead.contains(&owner.zone.journal);
        let is_here = owner.zone == self.home.me || self.was_here(owner.zone);
        match owner.birth.filter(|_| !is_here && !is_lost) {
            // The key is free, or the entity that has had it is gone.
            None if owner.birth != Some(life.birth) || owner.epoch >= epoch => {
                self.claim_from(life, owner);
            }
            // The store has not heard yet that the entity has come back, or has stayed.
            None => self.claim(life, epoch, found),
            Some(birth) if birth != life.birth => self.note_conflict(world, life),
            Some(_) if owner.epoch < epoch => self.claim(life, epoch, found),
            Some(_) => return self.give_way(world, (life, epoch), owner),
        }
        self.ask_again(key);
    }

    /// Lets an entity go to the zone that has it by now.
    fn give_way(&mut self, world: &mut World, (life, epoch): (Life, u64), owner: Owner) {
        if owner.epoch != epoch + 1 {
            return self.fence(world, life, owner.epoch);
        }
        // Only this zone could ask for that. It ended before it could let the entity leave, or before it knew the
        // answer. What this build can't load stays.
        match self.book.entity(life.key) {
            Some(entity) => {
                let departure = Departure {
                    zone: owner.zone.zone,
                    since: Duration::ZERO,
                    step: Step::Agreed(owner),
                };
                self.departures.insert(entity, departure);
            }
            None => self.claim_from(life, owner),
        }
    }

    /// Notes that another entity has the key. It may have despawned already, and its zone has yet to tell the store.
    fn note_conflict(&mut self, world: &World, life: Life) {
        let conflicts = &mut self.claims.conflicts;
        let attempts = conflicts.get(&life).map_or(0, |it| it.attempts) + 1;
        if attempts == REPORT_AFTER {
            report(world, key_in_use(life.key));
        }
        let again = now(world) + CLAIM_AGAIN;
        conflicts.insert(life, Conflict { again, attempts });
    }

    /// Claims the entities again whose keys belonged to other ones.
    pub(super) fn claim_again(&mut self, world: &World) {
        let now = now(world);
        let mut conflicts = core::mem::take(&mut self.claims.conflicts);
        conflicts.retain(|&life, conflict| {
            let owned = self.owned(Recipient::Life(life));
            if let Some(owned) = owned
                && now >= conflict.again
            {
                conflict.again = now + CLAIM_AGAIN;
                self.claim(life, owned.epoch, None);
            }
            owned.is_some()
        });
        self.claims.conflicts = conflicts;
    }

    /// Returns what tells the store that an entity has despawned.
    fn release(&self, life: Life, epoch: u64) -> Effect {
        let mine = self.owner(life, epoch);
        self.question(
            move |store| release(store, life.key, mine),
            move |zone, _, ()| {
                // It may have lived again and despawned again since.
                if zone.claims.released.get(&life) == Some(&epoch) {
                    zone.claims.released.remove(&life);
                    zone.post.outboxes.touch(life);
                }
            },
        )
    }

    /// Asks whether an entity may leave to the next owner, when this frame is durable. It acts on until the answer is
    /// there.
    pub(super) fn ask_to_leave(
        &mut self,
        world: &World,
        key: StableKey,
        zone: StableKey,
    ) -> Option<Owner> {
        self.claims.referee.as_ref()?;
        let owned = self.book.owned.get(&key)?;
        let (life, epoch) = (owned.life, owned.epoch);
        let from = self.owner(life, epoch);
        let to = Owner {
            zone: self.post.streams.id_of(zone)?,
            epoch: epoch + 1,
            ..from
        };
        let question = self.question(
            move |store| store.change(key, Some(from), to),
            move |zone, world, found| {
                zone.claims.asked.remove(&key);
                if found == Some(to) {
                    zone.may_leave(life, to);
                } else {
                    zone.follow(world, (life, epoch), found);
                }
            },
        );
        world.resource::<Outgoing>().push(question, 0);
        self.claims.asked.insert(key);
        Some(to)
    }

    /// Lets an entity leave, unless that is no longer what was asked for.
    fn may_leave(&mut self, life: Life, to: Owner) {
        let entity = self.book.entity(life.key);
        let departure = entity.and_then(|entity| self.departures.get_mut(&entity));
        match departure.filter(|it| it.step == Step::Asked(to)) {
            Some(departure) => departure.step = Step::Agreed(to),
            None => self.claim_from(life, to),
        }
    }

    /// Lets an entity that is to leave ask again, behind a claim.
    fn ask_again(&mut self, key: StableKey) {
        let entity = self.book.entity(key);
        let departure = entity.and_then(|entity| self.departures.get_mut(&entity));
        if let Some(departure) = departure {
            departure.step = Step::Reaching;
        }
    }

    /// Makes this zone the next owner of an entity that is here.
    pub(super) fn claim_from(&mut self, life: Life, before: Owner) {
        let owned = self.book.owned.get_mut(&life.key);
        if let Some(owned) = owned.filter(|owned| owned.life == life) {
            let epoch = before.epoch + 1;
            owned.epoch = epoch;
            self.book.dirty.insert(life.key);
            self.claim(life, epoch, Some(before));
        }
    }

    /// Returns `true` if this shard was made of a copy of another one.
    fn was_here(&self, other: ZoneId) -> bool {
        self.home.shard.restored().contains(&other.journal)
    }

    /// Becomes the owner of the entities on their way to a lost journal that have no later owner.
    pub(super) fn take_over_what_goes_to(&self, journal: JournalId) {
        let me = self.home.me;
        let on_the_way = self.post.streams.entities_to(journal);
        let on_the_way = on_the_way.map(|(zone, moved)| {
            let Life { birth, .. } = moved.life;
            let (epoch, birth) = (moved.epoch, Some(birth));
            (moved.life, Owner { zone, epoch, birth })
        });
        let on_the_way: Vec<_> = on_the_way.collect();
        let ask = self.question(
            move |store| {
                let mut free = Vec::new();
                for &(life, lost) in &on_the_way {
                    let to = Owner {
                        zone: me,
                        epoch: lost.epoch + 1,
                        ..lost
                    };
                    if take_over(store, life.key, lost, to)? {
                        free.push(life);
                    }
                }
                Ok(free)
            },
            move |zone, world, free| zone.bury(world, journal, &|life| free.contains(&life)),
        );
        ask();
    }
}

/// Frees the key of an entity that has despawned as `mine`. The store may not have heard of this owner, or it has agreed to
/// a move to another one. If it has another entity, the key is free already.
fn release(store: &mut dyn OwnerStore, key: StableKey, mine: Owner) -> Result<(), Unreachable> {
    let is_mine = |found: Owner| {
        let is_near = found.zone == mine.zone || found.epoch <= mine.epoch + 1;
        found.birth == mine.birth && is_near
    };
    let mut from = Some(mine);
    loop {
        let last = from.unwrap_or(mine);
        let free = Owner {
            epoch: last.epoch + 1,
            birth: None,
            ..mine
        };
        let found = store.change(key, from, free)?;
        if found.is_some_and(|it| it == free || !is_mine(it)) {
            return Ok(());
        }
        from = found;
    }
}

/// Makes `to` the owner in place of `lost`, which the store may not have heard of. Returns `true` if it was made.
fn take_over(
    store: &mut dyn OwnerStore,
    key: StableKey,
    lost: Owner,
    to: Owner,
) -> Result<bool, Unreachable> {
    let mut from = Some(lost);
    loop {
        let found = store.change(key, from, to)?;
        if found == Some(to) {
            return Ok(true);
        }
        let is_earlier = found.is_none_or(|it| {
            let is_lost = it.zone.journal == lost.zone.journal;
            it.birth == lost.birth && (it.epoch < lost.epoch || is_lost)
        });
        if !is_earlier {
            return Ok(false);
        }
        from = found;
    }
}

/// Says that two entities have the same key.
pub(super) fn key_in_use(key: StableKey) -> String {
    format!(
        "the store of owners has another entity with the stable key {}: despawn one of the two. Until then, the one here \
         can't move to another zone",
        key.0
    )
}
