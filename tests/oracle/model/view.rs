//! The view of the model between two frames.

use core::mem;

use super::{
    Model,
    clocks::Nth,
    timers::{Kind, Timer},
};
use crate::{
    entry::{Id, Named, SOON, Status, View},
    op::KEYS,
};

impl Model {
    /// Returns what there is to see, and what has happened since the last call. Also returns the
    /// entities with a new timer whose clock is not known yet: their status is no promise.
    pub(crate) fn view(&mut self) -> (Vec<Id>, View) {
        let unsettled = self.timers.iter().filter(|timer| timer.clock.is_none());
        let unsettled: Vec<Id> = unsettled.map(|timer| timer.entity).collect();
        let exists = |&id: &Id| self.exists(id);
        let alive: Vec<Id> = (0..self.entities.len()).filter(exists).collect();
        let settled = || alive.iter().filter(|id| !unsettled.contains(id));
        let clocks = (0..self.clocks.all.len()).filter(|&nth| self.clocks.all[nth].exists);
        let clocks = clocks.map(|nth| {
            let clock = &self.clocks.all[nth];
            (clock.name, clock.shown(clock.now))
        });
        let mut clocks: Vec<_> = clocks.collect();
        clocks.sort_unstable();
        let keyed = self.keys.iter().filter(|&&(_, id)| self.exists(id));
        let keyed = keyed.filter(|&&(_, id)| self.find_timer(id, Kind::Timer).is_some());
        let mut keyed: Vec<_> = keyed
            .map(|&((owner, key), id)| (owner, KEYS[key], id))
            .collect();
        keyed.sort_unstable();
        let mut view = View {
            timers: settled().filter_map(|&id| self.status(id)).collect(),
            lifetimes: settled()
                .filter_map(|&id| Some((id, self.lifetime(id)?)))
                .collect(),
            armed: self.armed(),
            plans: match unsettled[..] {
                [] => clocks.iter().map(|&(clock, ..)| self.plan(clock)).collect(),
                _ => Vec::new(),
            },
            owned: alive
                .iter()
                .map(|&id| (id, self.entities[id].owned.clone()))
                .filter(|(_, owned)| !owned.is_empty())
                .collect(),
            children: alive
                .iter()
                .filter_map(|&id| Some((id, self.entities[id].parent?)))
                .collect(),
            alive: alive.clone(),
            keyed,
            clocks,
            runs: self.stats,
            messages: self.mail.shown_counts,
            ..View::default()
        };
        view.log = mem::take(&mut self.log);
        view.fired = mem::take(&mut self.fired);
        view.cancelled = mem::take(&mut self.cancelled);
        (unsettled, view)
    }

    fn armed(&self) -> Vec<Id> {
        let timers = self.timers.iter().filter(|timer| timer.kind == Kind::Timer);
        let mut armed: Vec<Id> = timers.map(|timer| timer.entity).collect();
        armed.sort_unstable();
        armed
    }

    /// Returns the next deadline on a clock, and the timers that are due soon, in order. What never
    /// fires or is paused does not count.
    fn plan(&self, name: Named) -> (Named, Option<u64>, Vec<Id>) {
        let nth = self.clocks.find(name).expect("it exists");
        let clock = &self.clocks.all[nth];
        let waits = |timer: &&Timer| timer.clock == Some(nth) && self.may_fire(timer);
        let waiting = self.timers.iter().filter(waits);
        let next = waiting
            .clone()
            .map(|timer| clock.shown(timer.deadline))
            .min();
        let until = clock.now.saturating_add(self.rules.nanos(SOON));
        let is_due = |timer: &&Timer| timer.kind == Kind::Timer && timer.deadline <= until;
        let mut due: Vec<&Timer> = waiting.filter(is_due).collect();
        due.sort_by_key(|timer| (timer.deadline, timer.sequence));
        (name, next, due.iter().map(|timer| timer.entity).collect())
    }

    fn status(&self, id: Id) -> Option<Status> {
        let timer = &self.timers[self.find_timer(id, Kind::Timer)?];
        let nth = timer.clock?;
        let clock = &self.clocks.all[nth];
        let deadline = timer.deadline_at(clock.now);
        let remaining = self.remaining(timer, nth);
        let deadline = deadline.min(clock.now.saturating_add(timer.wait));
        let interval = timer.interval;
        Some(Status {
            entity: id,
            owner: timer.owner,
            clock: clock.name,
            deadline: clock.shown(deadline),
            remaining,
            elapsed: timer.wait.saturating_sub(remaining),
            wait: timer.wait,
            interval: Some(interval).filter(|&interval| interval > 0),
            count: timer.count,
            left: timer.left(),
            paused: timer.paused_at.is_some(),
        })
    }

    /// The time until the deadline, of which a wait has no more than its length.
    pub(super) fn remaining(&self, timer: &Timer, clock: Nth) -> u64 {
        let now = self.clocks.all[clock].now;
        timer.deadline_at(now).saturating_sub(now).min(timer.wait)
    }

    /// The time that is left to an entity.
    fn lifetime(&self, id: Id) -> Option<u64> {
        let timer = &self.timers[self.find_timer(id, Kind::Lifetime)?];
        Some(self.remaining(timer, timer.clock?))
    }
}
