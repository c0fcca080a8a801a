//! What a store of owners is asked.

use bevy_due::worlds::StableKey;
use bevy_ecs::world::World;

use super::{
    Owned, ZoneState,
    leave::{Departure, Step},
};
use crate::{
    journal::JournalId,
    owners::{Owner, change},
};

impl ZoneState {
    /// Claims an entity that is new.
    pub(super) fn claim(&self, key: StableKey, epoch: u64, from: Option<Owner>) {
        let Some(referee) = &self.referee else {
            return;
        };
        let to = self.owner(epoch);
        referee.ask(
            self.sender.clone(),
            move |store| change(store, key, from, to),
            move |zone, world, changed| match changed {
                Ok(()) => {}
                // An entity with this key has lived here before.
                Err(Some(before)) if before.place == to.place => {
                    let epoch = before.epoch.max(to.epoch) + 1;
                    if let Some(owned) = zone.owned.get_mut(&key).filter(|it| it.epoch == to.epoch)
                    {
                        owned.epoch = epoch;
                        zone.dirty.insert(key);
                        zone.claim(key, epoch, Some(before));
                    }
                }
                Err(other) => zone.lose(world, key, to.epoch, other),
            },
        );
    }

    /// Asks for all entities of the journal whether they still belong to this zone.
    pub(super) fn check_owners(&self) {
        let Some(referee) = &self.referee else {
            return;
        };
        for (&key, owned) in &self.owned {
            let epoch = owned.epoch;
            referee.ask(
                self.sender.clone(),
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
        let is_same = self.owned.get(&key).is_some_and(|it| it.epoch == epoch);
        if !is_same || owner == self.owner(epoch) {
            return;
        }
        if owner.epoch < epoch {
            return self.claim(key, epoch, Some(owner));
        }
        if owner.place == self.me {
            if let Some(owned) = self.owned.get_mut(&key) {
                owned.epoch = owner.epoch;
                self.dirty.insert(key);
            }
        } else {
            self.give_way(world, key, owner);
        }
    }

    /// Lets an entity go to its owner.
    fn give_way(&mut self, world: &mut World, key: StableKey, owner: Owner) {
        let Some(owned) = self.owned.get(&key) else {
            return;
        };
        let entity = owned.entity().filter(|_| owner.epoch == owned.epoch + 1);
        let Some(entity) = entity else {
            return self.fence(world, key, owner.epoch);
        };
        // Only this zone could ask for that. It ended before it could let the entity leave, or before it knew
        // the answer.
        self.departures.retain(|it| it.entity != entity);
        let departure = Departure::decided(entity, owner.place.zone);
        self.departures.push(departure);
    }

    /// Asks whether an entity may leave. It acts on until the answer is there.
    pub(super) fn ask_to_leave(&mut self, key: StableKey, zone: StableKey) -> Option<Step> {
        let referee = self.referee.as_ref()?;
        let epoch = self.owned.get(&key)?.epoch;
        let place = self.streams.place_of(zone)?;
        let from = self.owner(epoch);
        let to = Owner {
            place,
            epoch: epoch + 1,
        };
        referee.ask(
            self.sender.clone(),
            move |store| change(store, key, Some(from), to),
            move |zone, world, changed| {
                zone.asked.remove(&key);
                match changed {
                    Ok(()) => zone.may_leave(key, to.place.zone),
                    Err(other) => zone.lose(world, key, epoch, other),
                }
            },
        );
        self.asked.insert(key);
        Some(Step::Asked)
    }

    /// Lets an entity leave, unless the answer has come too late.
    fn may_leave(&mut self, key: StableKey, to: StableKey) {
        let entity = self.owned.get(&key).and_then(Owned::entity);
        let is_asked =
            |it: &&mut Departure| (Some(it.entity), it.zone, it.step) == (entity, to, Step::Asked);
        match self.departures.iter_mut().find(is_asked) {
            Some(departure) => departure.step = Step::Decided,
            None => self.claim_back(key, to),
        }
    }

    fn set_step(&mut self, key: StableKey, step: Step) {
        let entity = self.owned.get(&key).and_then(Owned::entity);
        let mut departures = self.departures.iter_mut();
        if let Some(departure) = departures.find(|it| Some(it.entity) == entity) {
            departure.step = step;
        }
    }

    fn lose(&mut self, world: &mut World, key: StableKey, epoch: u64, other: Option<Owner>) {
        if self.owned.get(&key).is_some_and(|it| it.epoch == epoch) {
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
    pub(super) fn claim_back(&mut self, key: StableKey, zone: StableKey) {
        let place = self.streams.place_of(zone);
        if let Some(owned) = self.owned.get_mut(&key)
            && let Some(place) = place
        {
            let epoch = owned.epoch + 1;
            owned.epoch = epoch + 1;
            self.dirty.insert(key);
            self.claim(key, epoch + 1, Some(Owner { place, epoch }));
        }
    }

    /// Asks which entities on their way to a lost journal have no other owner by now.
    pub(super) fn ask_what_to_reclaim(&self, journal: JournalId) {
        let Some(referee) = &self.referee else {
            return;
        };
        let me = self.me;
        let on_the_way = self.streams.entities_to(journal);
        let on_the_way: Vec<_> = on_the_way
            .map(|(place, moved)| (moved.key, place, moved.epoch))
            .collect();
        referee.ask(
            self.sender.clone(),
            move |store| {
                let mut free = Vec::new();
                for &(key, place, epoch) in &on_the_way {
                    let from = Owner { place, epoch };
                    let to = Owner {
                        place: me,
                        epoch: epoch + 1,
                    };
                    if change(store, key, Some(from), to)?.is_ok() {
                        free.push(key);
                    }
                }
                Ok(free)
            },
            move |zone, world, free| zone.bury(world, journal, &|key| free.contains(&key)),
        );
    }
}
