//! Arming timers: their first deadlines, their random delays, and the swap of the pending ones.

use bevy_due::{CancelReason, MissedTicks};

use super::{
    Model,
    clock::shift,
    clocks::Nth,
    random::{GOLDEN, mix, scale},
    timers::{Kind, State, Timer, done, times},
};
use crate::{
    entry::{Id, Named},
    op::Spec,
};

impl Model {
    /// A timer is pending until the next swap. Its delay counts from now if its clock exists.
    pub(super) fn push_pending(&mut self, id: Id, kind: Kind) {
        self.inserted += 1;
        let seat = self.inserted;
        let spec = self.entities[id].timer.filter(|_| kind == Kind::Timer);
        let random = spec.map_or(0, |spec| self.draw_jitter(spec));
        let clock = self.clocks.find(self.clock_of(id, self.chosen(id, kind)));
        let mut timer = Timer {
            entity: id,
            kind,
            seat,
            clock,
            state: State::Pending,
            deadline: 0,
            paused_at: None,
            is_held: false,
            is_released: false,
            sequence: 0,
            owner: id,
            acts: false,
            interval: 0,
            random: 0,
            is_random: false,
            priority: None,
            waits: false,
            slack: 0,
            shift: None,
            times: 1,
            missed: MissedTicks::Burst,
            count: 0,
            wait: 0,
            burst: (0, 0),
        };
        if let Some(clock) = clock {
            (timer.deadline, timer.wait) = self.first_deadline(id, kind, clock, random);
            let now = self.clocks.live(clock).now;
            timer.paused_at = self.is_paused(id).then_some(now);
        }
        if kind == Kind::Timer {
            self.entities[id].seat = Some(seat);
        }
        self.timers.push(timer);
    }

    /// A timer may choose its clock. A lifetime does not.
    pub(super) fn chosen(&self, id: Id, kind: Kind) -> Option<Named> {
        self.entities[id].timer_on.filter(|_| kind == Kind::Timer)
    }

    /// The first delay counts from the time on the clock, or from a time that the clock shows.
    pub(super) fn first_deadline(&self, id: Id, kind: Kind, clock: Nth, random: u64) -> (u64, u64) {
        let clock = self.clocks.live(clock);
        let entity = &self.entities[id];
        let Some(spec) = entity.timer.filter(|_| kind == Kind::Timer) else {
            let delay = entity.life.unwrap_or_default();
            return (clock.now.saturating_add(delay), delay);
        };
        let delay = self.rules.nanos(spec.delay);
        let delay = delay.saturating_add(scale(random, self.rules.nanos(spec.jitter)));
        let deadline = match spec.since {
            None => clock.now.saturating_add(delay),
            Some(since) => {
                let shown = self.rules.nanos(since).saturating_add(delay);
                shift(shown, -clock.offset)
            }
        };
        // The deadline may saturate.
        let wait = match spec.since {
            None => delay,
            Some(_) => deadline.saturating_sub(clock.now),
        };
        (deadline, wait)
    }

    /// The random delay depends on the seed and on the number of draws before.
    pub(super) fn draw_jitter(&mut self, spec: Spec) -> u64 {
        match spec.jitter {
            0 => 0,
            _ => self.draw(),
        }
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix(self
            .rules
            .seed
            .wrapping_add(self.draws.wrapping_mul(GOLDEN)))
    }

    /// The pending timers get their owners, clocks and pauses, in the order of insertion. A timer on
    /// a clock that takes part in the run is armed at once. A timer without a clock is cancelled.
    pub(super) fn resolve(&mut self, is_in_run: impl Fn(&Self, Nth) -> bool) {
        let pending = self.timers.iter().filter(|timer| timer.is_pending());
        let pending: Vec<_> = pending.map(|timer| (timer.entity, timer.kind)).collect();
        let mut lost = Vec::new();
        for (id, kind) in pending {
            let at = self.find_timer(id, kind).expect("it is pending");
            let spec = self.entities[id].timer.filter(|_| kind == Kind::Timer);
            match self.clocks.find(self.clock_of(id, self.chosen(id, kind))) {
                Some(clock) => {
                    let is_in_run = is_in_run(self, clock);
                    self.arm(at, clock, spec, is_in_run);
                }
                None => lost.push((id, kind)),
            }
        }
        for &(id, kind) in &lost {
            let at = self.find_timer(id, kind).expect("it is pending");
            let timer = self.timers.remove(at);
            self.timers.push(Timer {
                clock: None,
                ..timer
            });
        }
        for (id, kind) in lost {
            if self.find_timer(id, kind).is_some() {
                self.lose_clock(id, kind);
            }
        }
    }

    fn arm(&mut self, at: usize, clock: Nth, spec: Option<Spec>, is_in_run: bool) {
        let Timer { entity, kind, .. } = self.timers[at];
        if self.timers[at].clock != Some(clock) {
            let random = spec.map_or(0, |spec| self.draw_jitter(spec));
            let (deadline, wait) = self.first_deadline(entity, kind, clock, random);
            let now = self.clocks.live(clock).now;
            let timer = &mut self.timers[at];
            (timer.deadline, timer.wait) = (deadline, wait);
            timer.paused_at = Some(now);
        }
        let (is_paused, is_held) = (self.is_paused(entity), self.is_in_transit(entity));
        let owner = self.owner_of(entity);
        let is_random = spec.is_some_and(|spec| spec.interval > 0 && spec.span > 0);
        let random = if is_random { self.draw() } else { 0 };
        let acts = self.entities[entity].action.is_some() || self.entities[entity].is_request;
        self.sequence += 1;
        let (sequence, rules) = (self.sequence, self.rules);
        let timer = &mut self.timers[at];
        timer.clock = Some(clock);
        timer.state = State::Armed;
        timer.paused_at = timer.paused_at.filter(|_| is_paused);
        (timer.is_held, timer.is_released) = (is_held, is_in_run && !is_held);
        (timer.sequence, timer.owner, timer.acts) = (sequence, owner, acts);
        (timer.random, timer.is_random) = (random, is_random);
        if let Some(spec) = spec {
            timer.interval = rules.nanos(spec.interval);
            timer.times = times(spec).unwrap_or(0);
            timer.missed = spec.missed;
            timer.slack = rules.nanos(spec.slack);
            timer.priority = spec.priority;
        }
        self.choose(at, 0, None);
    }

    /// A timer without a clock is cancelled. A lifetime without a clock is removed, and a pause
    /// without a clock ends.
    pub(super) fn lose_clock(&mut self, id: Id, kind: Kind) {
        match kind {
            Kind::Timer => self.cancel(id, CancelReason::ClockGone),
            Kind::Lifetime => self.cancel_life(id),
        }
        self.retire(id, kind);
    }

    /// Removes the component of a timer that lost its clock. The entity of an owned timer despawns.
    pub(super) fn retire(&mut self, id: Id, kind: Kind) {
        if !self.exists(id) || self.find_timer(id, kind).is_some() {
            return;
        }
        match kind {
            Kind::Lifetime if self.entities[id].pauses.is_some() => self.despawn(id),
            Kind::Lifetime => self.entities[id].life = None,
            Kind::Timer => {
                let Some(spec) = self.entities[id].timer else {
                    return;
                };
                if self.despawns(id, done(spec)) {
                    self.despawn(id);
                    return;
                }
                self.drop_timer(id);
                if self.entities[id].is_request {
                    self.time_out(id);
                }
            }
        }
    }
}
