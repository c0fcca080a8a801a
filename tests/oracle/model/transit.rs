//! Entities in transit: their timers and callbacks wait, and their mail is held.

use super::{
    Model,
    mail::{Letter, Role},
};
use crate::{
    entry::{Entry, Id},
    op::Slot,
};

/// The mail of a move that has begun.
#[derive(Clone)]
pub(super) struct Hold {
    pub(super) root: Id,
    pub(super) members: Vec<Id>,
    /// The letters that were part of the exported data, and those that have arrived since.
    pub(super) letters: Vec<Letter>,
}

impl Model {
    /// One entity moves at a time. A request that it has not got yet stops the move.
    pub(super) fn export(&mut self, slot: Slot) {
        let Some(root) = self.at(slot).filter(|_| self.moving().is_none()) else {
            return;
        };
        self.release_lost();
        let members = self.dependents(root);
        let letters = self.mail_to(&members);
        if self.are_asked_from_outside(&members) {
            self.log.push(Entry::Refused);
            return;
        }
        self.add_modified_clocks();
        self.drop_mail_to(&members);
        for &id in &members {
            self.set_transit(id, Some(root));
        }
        self.mail.transit.push(Hold {
            root,
            members,
            letters,
        });
        self.rollback.forget();
    }

    /// The entity gets the mail that was held for it, before all others.
    pub(super) fn stay(&mut self) {
        let Some(root) = self.moving() else { return };
        let mut holds = self.mail.transit.iter();
        let hold = holds.position(|hold| hold.root == root);
        match hold.filter(|_| self.exists(root)) {
            Some(at) => self.release(at),
            None => self.log.push(Entry::Refused),
        }
    }

    /// The end of an entity ends its move.
    pub(super) fn release_lost(&mut self) {
        let is_lost = |model: &Self, root: Id| model.entities[root].transit != Some(root);
        while let Some(at) =
            (0..self.mail.transit.len()).find(|&at| is_lost(self, self.mail.transit[at].root))
        {
            self.release(at);
        }
    }

    fn release(&mut self, at: usize) {
        let Hold {
            root,
            members,
            letters,
        } = self.mail.transit.remove(at);
        for id in members {
            if self.entities[id].transit == Some(root) {
                self.set_transit(id, None);
            }
        }
        for letter in letters.into_iter().rev() {
            self.mail.released.push_front(letter);
        }
    }

    /// Keeps a letter to an entity in transit until the end of its move.
    pub(super) fn hold(&mut self, id: Id, letter: Letter) {
        let root = self.entities[id].transit;
        let mut holds = self.mail.transit.iter_mut();
        match holds.find(|hold| Some(hold.root) == root) {
            Some(hold) => hold.letters.push(letter),
            None => self.mail.held.push(letter),
        }
    }

    /// Returns the entity that moves, if any. It may have despawned.
    pub(super) fn moving(&self) -> Option<Id> {
        self.entities.iter().find_map(|entity| entity.transit)
    }

    /// An entity waits if it or its owner is in transit.
    pub(super) fn is_in_transit(&self, id: Id) -> bool {
        let transit = |id: Id| self.entities.get(id).and_then(|entity| entity.transit);
        transit(id).or(transit(self.owner_of(id))).is_some()
    }

    fn set_transit(&mut self, id: Id, root: Option<Id>) {
        self.entities[id].transit = root;
        self.update_pauses(id);
    }

    /// Returns `true` if a request to these entities, by another one, is on its way.
    pub(super) fn are_asked_from_outside(&self, ids: &[Id]) -> bool {
        self.mail_to(ids).iter().any(|letter| match letter.role {
            Role::Request(asker, _) => !ids.contains(&asker) && self.exists(asker),
            _ => false,
        })
    }
}
