//! Changing armed timers.

use super::{
    Model,
    clock::shift,
    clocks::Nth,
    timers::{Kind, Timer, times},
};
use crate::{
    entry::{Id, Named},
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
        let armed = id.and_then(|id| self.find_timer(id, Kind::Timer));
        let Some(at) = armed.filter(|&at| self.settle(at)) else {
            return false;
        };
        let (entity, clock) = (self.timers[at].entity, self.timers[at].clock);
        let clock = clock.expect("it is armed");
        let Some(spec) = self.entities[entity].timer else {
            return false;
        };
        let (live, rules) = (self.clocks.live(clock), self.rules);
        let timer = &mut self.timers[at];
        match change {
            Change::PauseTimer => self.set_paused(entity, true),
            Change::ResumeTimer => self.set_paused(entity, false),
            Change::Restart => {
                timer.count = 0;
                timer.interval = rules.nanos(spec.interval);
                timer.times = times(spec).unwrap_or(0);
                let was_random = timer.is_random;
                let delay = self.draw_delay(entity, Kind::Timer);
                if !was_random && spec.interval > 0 && spec.span > 0 {
                    let random = self.draw();
                    let timer = &mut self.timers[at];
                    (timer.is_random, timer.random) = (true, random);
                }
                let (deadline, _) = self.first_deadline(entity, Kind::Timer, clock, delay);
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
            Change::SetClock(to) => return self.move_to_clock(at, to, live.now),
        }
        true
    }

    /// A timer with a new deadline takes a new place among equal ones, and stays paused.
    fn move_to(&mut self, at: usize, deadline: u64, wait: u64) {
        let clock = self.timers[at].clock.expect("it is armed");
        let now = self.clocks.live(clock).now;
        self.sequence += 1;
        let timer = &mut self.timers[at];
        (timer.deadline, timer.wait) = (deadline, wait);
        timer.sequence = self.sequence;
        timer.is_released = false;
        timer.paused_at = timer.paused_at.map(|_| now);
    }

    /// A timer keeps its remaining time on another clock.
    fn move_to_clock(&mut self, at: usize, to: At, now: u64) -> bool {
        let Some(to) = self.find_clock(to) else {
            return false;
        };
        if self.timers[at].clock != Some(to) {
            self.carry(at, to, now);
        }
        true
    }

    /// A timer that is on the clock of an entity by default moves to a new clock there.
    pub(super) fn follow_new_clock(&mut self, id: Id, kind: Kind, entity: Id) {
        let Some(at) = self.find_timer(id, kind) else {
            return;
        };
        if self.timers[at].is_pending() {
            return self.start_again(id);
        }
        let chosen = self.chosen(id, kind);
        let to = self.clock_of(id, chosen);
        let before = self.clock_besides(id, chosen, Some(entity));
        let before = self.clocks.find(before);
        if to == Named::Own(entity)
            && self.timers[at].clock == before
            && let Some((from, to)) = before.zip(self.clocks.find(to))
        {
            let now = self.clocks.live(from).now;
            self.carry(at, to, now);
        }
    }

    fn carry(&mut self, at: usize, to: Nth, now: u64) {
        let there = self.clocks.live(to).now;
        self.inserted += 1;
        let timer = &mut self.timers[at];
        let deadline = shift(timer.deadline_at(now), i128::from(there) - i128::from(now));
        timer.paused_at = timer.paused_at.map(|_| there);
        timer.clock = Some(to);
        timer.seat = self.inserted;
        if timer.kind == Kind::Timer {
            self.entities[timer.entity].seat = Some(timer.seat);
        }
        let wait = timer.wait;
        self.move_to(at, deadline, wait);
    }
}

fn set_left(timer: &mut Timer, left: Option<u32>) {
    let count = u32::try_from(timer.count).expect("counts are small");
    timer.times = left.map_or(0, |left| count.saturating_add(left));
}
