//! Changing armed timers.

use super::{
    Model,
    clock::shift,
    clocks::Nth,
    timers::{Kind, Timer, times},
};
use crate::{
    entry::Id,
    op::{At, Change},
};

impl Model {
    /// Refreshes an armed timer.
    pub(super) fn refresh(&mut self, id: Option<Id>) -> bool {
        let Some(at) = id.and_then(|id| self.find_timer(id, Kind::Timer)) else {
            return false;
        };
        let timer = &mut self.timers[at];
        if timer.interval == 0 {
            return self.change(id, Change::Restart);
        }
        let spec = self.entities[timer.entity].timer;
        spec.inspect(|&spec| set_left(timer, times(spec))).is_some()
    }

    /// Changes an armed timer. Returns `false` if there is none, or no such clock to move it to.
    pub(super) fn change(&mut self, id: Option<Id>, change: Change) -> bool {
        let Some(at) = id.and_then(|id| self.find_timer(id, Kind::Timer)) else {
            return false;
        };
        self.find_late_clock(at);
        let Some(clock) = self.timers[at].clock else {
            return false;
        };
        let entity = self.timers[at].entity;
        let Some(spec) = self.entities[entity].timer else {
            return false;
        };
        let (live, rules) = (self.clocks.all[clock].clone(), self.rules);
        let timer = &mut self.timers[at];
        timer.is_new = false;
        match change {
            Change::PauseTimer => self.set_paused(entity, true),
            Change::ResumeTimer => self.set_paused(entity, false),
            Change::Restart => {
                timer.count = 0;
                timer.interval = rules.nanos(spec.interval);
                timer.times = times(spec).unwrap_or(0);
                let was_random = timer.is_random;
                let delay = self.draw_delay(spec);
                if !was_random && spec.interval > 0 && spec.span > 0 {
                    let random = self.draw();
                    let timer = &mut self.timers[at];
                    (timer.is_random, timer.random) = (true, random);
                }
                let (deadline, _) = self.first_deadline(spec, clock, delay);
                self.move_to(at, deadline, deadline.saturating_sub(live.now));
            }
            Change::Refresh => return self.refresh(id),
            Change::SetLeft(left) => set_left(timer, Some(left)),
            Change::SetInterval(interval) => {
                (timer.interval, timer.is_random) = (rules.nanos(interval), false);
            }
            Change::SetRemaining(by) => {
                let wait = rules.nanos(by);
                self.move_to(at, live.now.saturating_add(wait), wait);
            }
            Change::Reschedule(shown) => {
                let deadline = shift(rules.nanos(shown), -live.offset);
                self.move_to(at, deadline, deadline.saturating_sub(live.now));
            }
            Change::DelayBy(by) => {
                let by = rules.nanos(by);
                let (deadline, wait) = (timer.deadline_at(live.now), timer.wait);
                self.move_to(at, deadline.saturating_add(by), wait.saturating_add(by));
            }
            Change::HastenBy(by) => {
                let by = rules.nanos(by);
                let (deadline, wait) = (timer.deadline_at(live.now), timer.wait);
                self.move_to(at, deadline.saturating_sub(by), wait.saturating_sub(by));
            }
            Change::SetClock(to) => return self.move_to_clock(at, to),
        }
        true
    }

    /// A timer with a new deadline takes a new place among equal ones, and stays paused.
    fn move_to(&mut self, at: usize, deadline: u64, wait: u64) {
        let now = self.now_on(self.timers[at].clock);
        self.sequence += 1;
        let timer = &mut self.timers[at];
        (timer.deadline, timer.wait) = (deadline, wait);
        (timer.sequence, timer.is_released) = (self.sequence, false);
        timer.burst = (self.runs, timer.burst_in(self.runs).max(self.chain));
        timer.paused_at = timer.paused_at.map(|_| now);
    }

    /// A timer stays on a clock that it has chosen.
    fn move_to_clock(&mut self, at: usize, to: At) -> bool {
        let to = self.named(to);
        let Some(clock) = self.clocks.find(to) else {
            return false;
        };
        self.timers[at].chosen = Some(to);
        self.carry(at, Some(clock));
        true
    }

    /// A timer keeps its remaining time on another clock, or without one.
    pub(super) fn carry(&mut self, at: usize, to: Option<Nth>) {
        let from = self.timers[at].clock;
        if from == to {
            return;
        }
        let (now, there) = (self.now_on(from), self.now_on(to));
        let timer = &mut self.timers[at];
        let deadline = shift(timer.deadline_at(now), i128::from(there) - i128::from(now));
        timer.clock = to;
        let wait = timer.wait;
        self.move_to(at, deadline, wait);
    }
}

impl Model {
    /// No time passes without a clock.
    pub(super) fn now_on(&self, clock: Option<Nth>) -> u64 {
        clock.map_or(0, |nth| self.clocks.all[nth].now)
    }
}

fn set_left(timer: &mut Timer, left: Option<u32>) {
    let count = u32::try_from(timer.count).expect("counts are small");
    timer.times = left.map_or(0, |left| count.saturating_add(left));
}
