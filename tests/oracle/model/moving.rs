//! Moving an entity out of the world and back: it is loaded, and the old one goes without a word.

use std::collections::BTreeMap;

use super::{
    Model,
    clocks::{Clocks, Nth},
    mail::{Letter, Role, Whom},
};
use crate::{
    entry::{Entry, Id, NOWHERE, Named},
    op::Slot,
};

impl Model {
    /// Nothing that moves keeps an owner that stays. A request that it has not got yet stops the move: no reply
    /// could reach the asking entity.
    pub(super) fn move_away_and_back(&mut self, slot: Slot, on_the_way: u64) {
        let Some(root) = self.at(slot) else { return };
        // Whoever asks what moves along saves the entity, while it still has its owner.
        self.add_modified_clocks();
        let moved = self.dependents(root);
        for &id in &moved {
            let owner = self.entities[id].owner;
            if owner.is_some_and(|owner| !moved.contains(&owner)) {
                self.disown(id);
            }
        }
        // Children stay.
        for &id in &moved {
            self.leave_children(id);
        }
        if self.are_asked_from_outside(&moved) {
            self.log.push(Entry::Refused);
            return;
        }
        let then = self.clone();
        let names = self.load(&then, &moved);
        self.pass(&then, &moved, &names, on_the_way);
        self.leave_pauses(&names);
        for (&before, &now) in &names {
            if let Some(follows) = self.entities[before].follows {
                self.follow(now, follows.topics);
            }
        }
        let mail = self.mail_to(&moved);
        self.drop_mail_to(&moved);
        self.forget(&moved);
        for mut letter in mail {
            // The reply to another request is late.
            letter.rename(|id| names.get(&id).copied().unwrap_or(NOWHERE));
            self.mail.sent.push_back(letter);
        }
        self.succeed(&names);
        self.rollback.forget();
    }

    /// Time passes on the clocks that stay, for the timers that are not paused and for the clocks that
    /// move along.
    fn pass(&mut self, then: &Self, moved: &[Id], names: &BTreeMap<Id, Id>, on_the_way: u64) {
        let stays = |nth: Nth| match then.clocks.all[nth].name {
            Named::Own(id) => !moved.contains(&id),
            _ => true,
        };
        let passed = |nth| then.clocks.share(nth, on_the_way);
        for timer in &mut self.timers {
            let is_mine = names.values().any(|&id| id == timer.entity);
            let outside = timer
                .clock
                .filter(|&nth| nth < then.clocks.all.len() && stays(nth));
            if let Some(nth) = outside
                && is_mine
                && timer.paused_at.is_none()
            {
                timer.pass(passed(nth));
            }
        }
        for nth in then.clocks.all.len()..self.clocks.all.len() {
            let name = self.clocks.all[nth].name;
            let mut before = names.iter();
            let before = before.find(|&(_, &now)| name == Named::Own(now));
            let before = before.and_then(|(&before, _)| then.clocks.find(Named::Own(before)));
            if before.is_some_and(|before| then.clocks.all[before].is_held) {
                continue;
            }
            match self.clocks.parent(nth) {
                Some(parent) if parent < then.clocks.all.len() => {
                    self.clocks.pass(nth, passed(parent));
                }
                Some(_) => {}
                None => self.clocks.pass(nth, 0),
            }
        }
    }

    /// Returns the messages to these entities, in the order of delivery.
    pub(super) fn mail_to(&self, ids: &[Id]) -> Vec<Letter> {
        let letters = self.mail_on_way().into_iter();
        letters.filter(|it| it.is_to(ids)).collect()
    }

    fn drop_mail_to(&mut self, ids: &[Id]) {
        self.mail.held.retain(|it| !it.is_to(ids));
        self.mail.released.retain(|it| !it.is_to(ids));
        self.mail.sent.retain(|it| !it.is_to(ids));
    }

    /// Returns `true` if a request to these entities, by another one, is on its way.
    fn are_asked_from_outside(&self, ids: &[Id]) -> bool {
        self.mail_to(ids).iter().any(|letter| match letter.role {
            Role::Request(asker, _) => !ids.contains(&asker) && self.exists(asker),
            _ => false,
        })
    }

    /// Entities despawn. Nobody hears of their timers.
    fn forget(&mut self, ids: &[Id]) {
        self.timers.retain(|timer| !ids.contains(&timer.entity));
        for &id in ids {
            self.drop_timer(id);
            self.entities[id].life = None;
        }
        for &id in ids {
            self.despawn(id);
        }
    }
}

impl Letter {
    fn is_to(&self, ids: &[Id]) -> bool {
        matches!(self.to, Whom::One(Some(id)) if ids.contains(&id))
    }
}

impl Clocks {
    /// Returns how far a clock advances while the real, the game and the fixed clock are driven by this
    /// span.
    fn share(&self, nth: Nth, span: u64) -> u64 {
        let mut clock = self.all[nth].clone();
        let span = match self.parent(nth) {
            Some(parent) => self.share(parent, span),
            None if clock.is_driven_by_bevy() => span,
            None => 0,
        };
        let before = clock.now;
        clock.run(span);
        clock.now - before
    }

    /// The driver of a clock advances unseen by others. The clocks that run on this one follow at once.
    fn pass(&mut self, nth: Nth, span: u64) {
        self.all[nth].run(span);
        for at in self.parents_first() {
            if at != nth && self.runs_on(at, nth) {
                self.follow_parent(at);
            }
        }
    }
}
