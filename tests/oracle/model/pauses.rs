//! Pauses: markers, pauses that are entities, and disabled entities.

use super::{Model, timers::Kind};
use crate::entry::{Id, Named};

impl Model {
    pub(super) fn set_paused(&mut self, id: Id, is_paused: bool) {
        self.entities[id].is_paused = is_paused;
        self.update_pauses(id);
    }

    /// Disabling an entity pauses it, and its clock.
    pub(super) fn set_disabled(&mut self, id: Id, is_disabled: bool) {
        self.entities[id].is_disabled = is_disabled;
        if let Some(nth) = self.clocks.find(Named::Own(id)) {
            self.clocks.all[nth].is_disabled = is_disabled;
        }
        self.update_pauses(id);
    }

    /// A pause is an entity that despawns after a while, on the clock of its target. If the target has a
    /// clock of its own, the pause is on the parent of that one.
    pub(super) fn pause_for(&mut self, target: Id, span: u64) {
        let clock = match self.clock_of(target, None) {
            own if own == Named::Own(target) => self.clock_above(target).unwrap_or(own),
            clock => clock,
        };
        let pause = self.spawn();
        self.entities[pause].on = Some(clock);
        self.insert_life(pause, span, None);
        self.set_pauses(pause, target);
    }

    /// Lets an entity pause another one, in place of the one that it paused before.
    pub(super) fn set_pauses(&mut self, pause: Id, target: Id) {
        self.end_pause(pause);
        self.entities[pause].pauses = Some(target);
        self.entities[target].paused_by.push(pause);
        self.update_pause(pause);
        self.update_pauses(target);
    }

    /// The end of a pause resumes its target, unless something else pauses it.
    pub(super) fn end_pause(&mut self, pause: Id) {
        if let Some(target) = self.entities[pause].pauses.take() {
            self.entities[target].paused_by.retain(|&it| it != pause);
            self.update_pause(pause);
            self.update_pauses(target);
        }
    }

    pub(super) fn update_pauses(&mut self, id: Id) {
        let mut all = vec![id];
        let mut at = 0;
        while let Some(&next) = all.get(at) {
            self.update_pause(next);
            for &owned in &self.entities[next].owned {
                if !all.contains(&owned) {
                    all.push(owned);
                }
            }
            at += 1;
        }
    }

    /// A pause moves the deadline of a timer by its length. A timer that resumes fires in the next run at the earliest.
    pub(super) fn update_pause(&mut self, id: Id) {
        let is_paused = self.is_paused(id);
        for kind in Kind::ALL {
            let Some(at) = self.find_timer(id, kind) else {
                continue;
            };
            let now = self.now_on(self.timers[at].clock);
            let timer = &mut self.timers[at];
            if is_paused && timer.paused_at.is_none() {
                timer.paused_at = Some(now);
            } else if !is_paused && timer.paused_at.is_some() {
                timer.deadline = timer.deadline_at(now);
                timer.paused_at = None;
                timer.burst = (self.runs, timer.burst_in(self.runs).max(self.chain));
                timer.is_released = false;
            }
        }
    }
}
