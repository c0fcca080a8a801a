//! The setting of a timer or a callback: its clock, its owner and its pause.

use super::{Model, clocks::Nth};
use crate::{
    entry::{Id, NOWHERE, Named},
    op::At,
};

impl Model {
    pub(super) fn named(&self, at: At) -> Named {
        match at {
            At::Real => Named::Real,
            At::Virtual => Named::Virtual,
            At::Frames => Named::Frames,
            At::Fixed => Named::Fixed,
            At::Own(slot) => Named::Own(self.slots[slot].unwrap_or(NOWHERE)),
        }
    }

    pub(super) fn find_clock(&self, at: At) -> Option<Nth> {
        self.clocks.find(self.named(at))
    }

    pub(super) fn owner_of(&self, id: Id) -> Id {
        self.entities[id].owner.unwrap_or(id)
    }

    /// The clock is the chosen one, or else the clock of the entity, or else the clock of its owner,
    /// or else the game clock.
    pub(super) fn clock_of(&self, id: Id, chosen: Option<Named>) -> Named {
        let clock = chosen.or_else(|| self.clock_on(id));
        let clock = clock.or_else(|| self.clock_on(self.owner_of(id)));
        clock.unwrap_or(Named::Virtual)
    }

    /// The clock of an entity is its own, or else the one that it names. A modifier is on the parent
    /// of the clock that it modifies, or on the clock that will be the parent.
    pub(super) fn clock_on(&self, id: Id) -> Option<Named> {
        let entity = self.entities.get(id).filter(|entity| entity.exists)?;
        let own = |id: Id| {
            let own = Named::Own(id);
            let own = self.clocks.find(own).map(|_| own);
            own.or_else(|| self.entities.get(id).and_then(|entity| entity.on))
        };
        let modified = || {
            let clock = entity.modifies?.0;
            self.clock_above(clock).or_else(|| own(clock))
        };
        own(id).or_else(modified)
    }

    /// Returns the parent of the clock on an entity, if it has one. What affects a manual clock is on the game
    /// clock.
    pub(super) fn clock_above(&self, id: Id) -> Option<Named> {
        let nth = self.clocks.find(Named::Own(id))?;
        Some(self.clocks.all[nth].parent.unwrap_or(Named::Virtual))
    }

    /// An entity is paused by itself or by an owner, at any depth.
    pub(super) fn is_paused(&self, id: Id) -> bool {
        let runs_while_paused =
            self.entities[id].runs_while_paused || self.entities[id].pauses.is_some();
        let stops = |it: Id| {
            self.entities.get(it).is_some_and(|entity| {
                let is_paused = match runs_while_paused {
                    true => entity.is_paused && it == id,
                    false => entity.is_paused || !entity.paused_by.is_empty(),
                };
                entity.exists && (entity.is_disabled || is_paused)
            })
        };
        self.with_owners(id).into_iter().any(stops)
    }

    /// Returns an entity, its owner, the owner of that, and so on.
    pub(super) fn with_owners(&self, id: Id) -> Vec<Id> {
        let mut with_owners = vec![id];
        let mut owner = self.owner_of(id);
        while !with_owners.contains(&owner) {
            with_owners.push(owner);
            if !self.exists(owner) {
                break;
            }
            owner = self.owner_of(owner);
        }
        with_owners
    }
}
