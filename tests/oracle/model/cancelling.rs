//! Cancelling timers, and ending finished timers.

use bevy_due::CancelReason;

use super::{
    Model,
    entities::Entity,
    timers::{Done, Kind},
};
use crate::entry::{Cancel, Entry, Id};

impl Model {
    /// Takes out the timer on an entity and reports it, if it is pending, armed or paused.
    pub(super) fn cancel(&mut self, id: Id, reason: CancelReason) {
        self.take_out(id, reason);
    }

    fn take_out(&mut self, id: Id, reason: CancelReason) -> bool {
        if self.entities[id].timer.is_some() {
            self.entities[id].seat = None;
        }
        let Some(at) = self.find_timer(id, Kind::Timer) else {
            return false;
        };
        let timer = self.timers.remove(at);
        let clock = match timer.clock {
            Some(nth) => self.clocks.all[nth].name,
            None => self.clock_of(id, timer.chosen),
        };
        let cancelled = Entry::Cancelled(Cancel {
            entity: id,
            owner: self.owner_of(id),
            key: self.key_name(id),
            clock,
            count: timer.count,
            left: timer.left(),
            remaining: timer.clock.map_or(0, |nth| self.remaining(&timer, nth)),
            reason,
        });
        self.log.push(cancelled.clone());
        self.unwritten.push(cancelled);
        true
    }

    pub(super) fn cancel_life(&mut self, id: Id) {
        self.entities[id].life = None;
        self.cancel_silently(id, Kind::Lifetime);
    }

    pub(super) fn cancel_silently(&mut self, id: Id, kind: Kind) {
        if let Some(at) = self.find_timer(id, kind) {
            self.timers.remove(at);
        }
    }

    /// Removes the `Timer` component.
    pub(super) fn remove_timer(&mut self, id: Id) {
        self.cancel(id, CancelReason::Removed);
        self.drop_timer(id);
    }

    /// Removes the `Timer` component of a timer that is no longer armed.
    pub(super) fn drop_timer(&mut self, id: Id) {
        (self.entities[id].timer, self.entities[id].seat) = (None, None);
    }

    /// Cancels an owned timer, and despawns its entity. Returns `true` if it was armed.
    pub(super) fn cancel_and_despawn(&mut self, id: Id, reason: CancelReason) -> bool {
        let was_armed = self.take_out(id, reason);
        self.end_unarmed(id, Done::Despawns);
        was_armed
    }

    pub(super) fn cancel_key(&mut self, owner: Id, key: usize) -> bool {
        let Some(id) = self.keyed(owner, key) else {
            return false;
        };
        if self.entities[id].timer.is_some() {
            return self.cancel_and_despawn(id, CancelReason::Cancelled);
        }
        let lives = self.entities[id].life.is_some();
        if lives {
            self.despawn(id);
        }
        lives
    }

    /// Cancels the timers of an owner.
    pub(super) fn cancel_all(&mut self, owner: Id) {
        for id in self.timers_of(owner) {
            if id == owner {
                self.cancel(id, CancelReason::Cancelled);
                self.drop_timer(id);
                continue;
            }
            let Entity {
                owner: by, timer, ..
            } = self.entities[id];
            // It may have lost its clock with one of the others.
            if by == Some(owner) && timer.is_some() {
                self.cancel_and_despawn(id, CancelReason::Cancelled);
            }
        }
    }

    /// Ends a timer that has finished, unless its entity has another one.
    pub(super) fn end_unarmed(&mut self, id: Id, done: Done) {
        if !self.exists(id) || self.find_timer(id, Kind::Timer).is_some() {
            return;
        }
        if self.despawns(id, done) {
            self.despawn(id);
        } else {
            self.drop_timer(id);
        }
    }

    pub(super) fn despawns(&self, id: Id, done: Done) -> bool {
        let is_owned = self.entities[id].owner.is_some();
        match done {
            Done::Keeps => false,
            Done::Despawns => true,
            Done::DespawnsIfOwned => is_owned,
            Done::DespawnsUnlessOwned => !is_owned,
        }
    }

    /// An entity whose owner does not exist loses its timer, and despawns in the next run.
    pub(super) fn retire_later(&mut self, id: Id) {
        self.drop_timer(id);
        self.ended[2].push((id, Done::DespawnsUnlessOwned));
    }
}
