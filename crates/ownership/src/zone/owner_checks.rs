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

    /// Returns this zone as an owner.
    fn owner(&self, epoch: u64) -> Owner {
        let zone = self.home.me;
        Owner { zone, epoch }
    }

    /// Claims an entity that is new.
    pub(super) fn claim(&self, key: StableKey, epoch: u64, from: Option<Owner>) {
        let to = self.owner(epoch);
        self.ask(
            move |store| change(store, key, from, to),
            move |zone, world, changed| match changed {
                Ok(()) => {}
                // An entity with this key has lived here before.
                Err(Some(before)) if before.zone == to.zone => {
                    let epoch = before.epoch.max(to.epoch) + 1;
                    if let Some(owned) = zone
                        .book
                        .owned
                        .get_mut(&key)
                        .filter(|it| it.epoch == to.epoch)
                    {
                        owned.epoch = epoch;
                        zone.book.dirty.insert(key);
                        zone.claim(key, epoch, Some(before));
                    }
                }
                Err(other) => zone.lose(world, key, to.epoch, other),
            },
        );
    }

    /// Asks for all entities of the journal whether they still belong to this zone.
    pub(super) fn check_owners(&self) {
        if self.moves.referee.is_none() {
            return;
        }
        for (&key, owned) in &self.book.owned {
            let epoch = owned.epoch;
            self.ask(
                move |store| store.owner(key),
                move |zone, world, owner| zone.check_owner(world, (key, epoch), owner),
            );
        }
    }

    fn check_owner(
        &mut self,
        world: &mut World,
        (key, epoch): (StableKey, u64),
        owner: Option<Owner>,
    ) {
        let Some(owner) = owner else {
            self.claim(key, epoch, None);
            return;
        };
        let is_same = self
            .book
            .owned
            .get(&key)
            .is_some_and(|it| it.epoch == epoch);
        if !is_same || owner == self.owner(epoch) {
            return;
        }
        if owner.epoch < epoch {
            return self.claim(key, epoch, Some(owner));
        }
        if owner.zone == self.home.me {
            if let Some(owned) = self.book.owned.get_mut(&key) {
                owned.epoch = owner.epoch;
                self.book.dirty.insert(key);
            }
        } else if self.was_here(owner.zone) {
            self.claim_from(key, owner);
        } else {
            self.give_way(world, key, owner);
        }
    }

    /// Lets an entity go to its owner.
    fn give_way(&mut self, world: &mut World, key: StableKey, owner: Owner) {
        let Some(owned) = self.book.owned.get(&key) else {
            return;
        };
        if owner.epoch != owned.epoch + 1 {
            return self.fence(world, owned.life, owner.epoch);
        }
        // Only this zone could ask for that. It ended before it could let the entity leave, or before it knew the
        // answer. What this build can't load stays.
        match owned.entity() {
            Some(entity) => self.moves.decide(entity, owner.zone.zone),
            None => self.claim_back(key, owner.zone),
        }
    }

    /// Asks whether an entity may leave. It acts on until the answer is there.
    pub(super) fn ask_to_leave(&mut self, key: StableKey, zone: StableKey) -> Option<Step> {
        self.moves.referee.as_ref()?;
        let epoch = self.book.owned.get(&key)?.epoch;
        let from = self.owner(epoch);
        let to = Owner {
            zone: self.post.streams.id_of(zone)?,
            epoch: epoch + 1,
        };
        self.ask(
            move |store| change(store, key, Some(from), to),
            move |zone, world, changed| {
                zone.moves.asked.remove(&key);
                match changed {
                    Ok(()) => zone.may_leave(key, to.zone),
                    Err(other) => zone.lose(world, key, epoch, other),
                }
            },
        );
        self.moves.asked.insert(key);
        Some(Step::Asked)
    }

    /// Lets an entity leave, unless the answer has come too late.
    fn may_leave(&mut self, key: StableKey, to: ZoneId) {
        let entity = self.book.entity(key);
        let departure = entity.and_then(|entity| self.moves.departures.get_mut(&entity));
        match departure.filter(|it| (it.zone, it.step) == (to.zone, Step::Asked)) {
            Some(departure) => departure.step = Step::Decided,
            None => self.claim_back(key, to),
        }
    }

    fn set_step(&mut self, key: StableKey, step: Step) {
        let entity = self.book.entity(key);
        let departure = entity.and_then(|entity| self.moves.departures.get_mut(&entity));
        if let Some(departure) = departure {
            departure.step = step;
        }
    }

    fn lose(&mut self, world: &mut World, key: StableKey, epoch: u64, other: Option<Owner>) {
        if self
            .book
            .owned
            .get(&key)
            .is_some_and(|it| it.epoch == epoch)
        {
            match other {
                Some(owner) if owner.epoch >= epoch => self.give_way(world, key, owner),
                // The store has not heard yet that the entity is new, has come back, or has stayed.
                earlier => {
                    self.claim(key, epoch, earlier);
                    // It asks again, behind the claim.
                    self.set_step(key, Step::Reaching);
                }
            }
        }
    }

    /// Takes an entity back that could not leave, although it was decided.
    pub(super) fn claim_back(&mut self, key: StableKey, zone: ZoneId) {
        if let Some(owned) = self.book.owned.get(&key) {
            let epoch = owned.epoch + 1;
            self.claim_from(key, Owner { zone, epoch });
        }
    }

    /// Makes this zone the next owner of an entity that is here.
    fn claim_from(&mut self, key: StableKey, before: Owner) {
        if let Some(owned) = self.book.owned.get_mut(&key) {
            let epoch = before.epoch + 1;
            owned.epoch = epoch;
            self.book.dirty.insert(key);
            self.claim(key, epoch, Some(before));
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
        let on_the_way: Vec<(Life, ZoneId, u64)> = on_the_way
            .map(|(zone, moved)| (moved.life, zone, moved.epoch))
            .collect();
        self.ask(
            move |store| {
                let mut free = Vec::new();
                for &(life, zone, epoch) in &on_the_way {
                    let from = Owner { zone, epoch };
                    let to = Owner {
                        zone: me,
                        epoch: epoch + 1,
                    };
                    if change(store, life.key, Some(from), to)?.is_ok() {
                        free.push(life);
                    }
                }
                Ok(free)
            },
            move |zone, world, free| zone.bury(world, journal, &|life| free.contains(&life)),
        );
    }
}
