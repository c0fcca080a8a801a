//! What a store of owners is asked.

use bevy_due::worlds::StableKey;
use bevy_ecs::world::World;

use super::{ZoneState, leave::Step, with_zone};
use crate::{
    ids::{JournalId, Life, ZoneId},
    owners::{Owner, OwnerStore, Unreachable, change},
};

impl ZoneState {
    /// Asks the store of owners, if there is one, until it answers this zone.
    fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&mut dyn OwnerStore) -> Result<T, Unreachable> + Send + 'static,
        answer: impl FnOnce(&mut Self, &mut World, T) + Send + 'static,
    ) {
        if let Some(referee) = &self.moves.referee {
            referee.ask(self.home.sender.clone(), question, move |world, found| {
                with_zone(world, |zone, world| answer(zone, world, found));
            });
        }
    }

    /// Returns this zone as the owner of an entity.
    fn owner(&self, life: Life, epoch: u64) -> Owner {
        let zone = self.home.me;
        let birth = life.birth;
        Owner { zone, epoch, birth }
    }

    /// Claims an entity that is here.
    pub(super) fn claim(&self, life: Life, epoch: u64, from: Option<Owner>) {
        let to = self.owner(life, epoch);
        self.ask(
            move |store| change(store, life.key, from, to),
            move |zone, world, changed| {
                if let Err(other) = changed {
                    zone.follow(world, (life, epoch), other);
                }
            },
        );
    }

    /// Asks for all entities of the journal whether they still belong to this zone.
    pub(super) fn check_owners(&self) {
        if self.moves.referee.is_none() {
            return;
        }
        for owned in self.book.owned.values() {
            let (life, epoch) = (owned.life, owned.epoch);
            let mine = self.owner(life, epoch);
            self.ask(
                move |store| store.owner(life.key),
                move |zone, world, owner| {
                    if owner != Some(mine) {
                        zone.follow(world, (life, epoch), owner);
                    }
                },
            );
        }
    }

    /// Follows the store, which has another owner of an entity than this zone.
    fn follow(&mut self, world: &mut World, (life, epoch): (Life, u64), found: Option<Owner>) {
        let key = life.key;
        let owned = self.book.owned.get(&key);
        let Some(owned) = owned.filter(|it| (it.life, it.epoch) == (life, epoch)) else {
            return;
        };
        // The store has not heard yet that the entity is new, has come back, or has stayed.
        let is_behind = found.is_none_or(|it| it.birth == life.birth && it.epoch < epoch);
        let Some(owner) = found.filter(|_| !is_behind) else {
            self.claim(life, epoch, found);
            return self.ask_again(key);
        };
        let is_same = owner.birth == life.birth;
        let is_mine = owner.zone == self.home.me || self.was_here(owner.zone);
        // Only this zone could ask for that. It ended before it could let the entity leave, or before it knew the
        // answer. What this build can't load stays.
        let is_next = is_same && owner.epoch == epoch + 1;
        match (is_same, owned.entity()) {
            (true, _) if is_mine => self.claim_from(life, owner),
            (true, Some(entity)) if is_next => return self.moves.decide(entity, owner),
            (true, None) if is_next => self.claim_from(life, owner),
            // Another entity has had the key before. A copy can be older than that one.
            (false, _) if self.home.shard.restored().is_empty() => self.claim_from(life, owner),
            _ => return self.fence(world, life, owner.epoch),
        }
        self.ask_again(key);
    }

    /// Asks whether an entity may leave. It acts on until the answer is there.
    pub(super) fn ask_to_leave(&mut self, key: StableKey, zone: StableKey) -> Option<Step> {
        self.moves.referee.as_ref()?;
        let owned = self.book.owned.get(&key)?;
        let (life, epoch) = (owned.life, owned.epoch);
        let from = self.owner(life, epoch);
        let to = Owner {
            zone: self.post.streams.id_of(zone)?,
            epoch: epoch + 1,
            ..from
        };
        self.ask(
            move |store| change(store, key, Some(from), to),
            move |zone, world, changed| {
                zone.moves.asked.remove(&key);
                match changed {
                    Ok(()) => zone.may_leave(life, to),
                    Err(other) => zone.follow(world, (life, epoch), other),
                }
            },
        );
        self.moves.asked.insert(key);
        Some(Step::Asked)
    }

    /// Lets an entity leave, unless the answer has come too late.
    fn may_leave(&mut self, life: Life, to: Owner) {
        let entity = self.book.entity(life.key);
        let departure = entity.and_then(|entity| self.moves.departures.get_mut(&entity));
        match departure.filter(|it| (it.zone, it.step) == (to.zone.zone, Step::Asked)) {
            Some(departure) => departure.step = Step::Decided(to),
            None => self.claim_from(life, to),
        }
    }

    /// Lets an entity that is to leave ask again, behind a claim.
    fn ask_again(&mut self, key: StableKey) {
        let entity = self.book.entity(key);
        let departure = entity.and_then(|entity| self.moves.departures.get_mut(&entity));
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

    /// Returns `true` if this zone was made of a copy of another one.
    fn was_here(&self, other: ZoneId) -> bool {
        let is_copy = |lost: &JournalId| *lost == other.journal;
        other.zone == self.home.me.zone && self.home.shard.restored().iter().any(is_copy)
    }

    /// Asks which entities on their way to a lost journal have no other owner by now.
    pub(super) fn ask_what_to_reclaim(&self, journal: JournalId) {
        let me = self.home.me;
        let on_the_way = self.post.streams.entities_to(journal);
        let on_the_way = on_the_way.map(|(zone, moved)| {
            let Life { key, birth } = moved.life;
            let epoch = moved.epoch;
            (key, Owner { zone, epoch, birth })
        });
        let on_the_way: Vec<_> = on_the_way.collect();
        self.ask(
            move |store| {
                let mut free = Vec::new();
                for &(key, lost) in &on_the_way {
                    let to = Owner {
                        zone: me,
                        epoch: lost.epoch + 1,
                        ..lost
                    };
                    if take_over(store, key, lost, to)? {
                        free.push(Life {
                            key,
                            birth: lost.birth,
                        });
                    }
                }
                Ok(free)
            },
            move |zone, world, free| zone.bury(world, journal, &|life| free.contains(&life)),
        );
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
        let Err(found) = change(store, key, from, to)? else {
            return Ok(true);
        };
        let is_earlier = found.is_none_or(|it| it.birth == lost.birth && it.epoch < lost.epoch);
        if !is_earlier {
            return Ok(false);
        }
        from = found;
    }
}
