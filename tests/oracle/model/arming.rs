//! Arming timers: their first deadlines, their random delays, and the swap that settles their clocks.

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
    /// A timer takes its place among equal deadlines when it is inserted. Its delay counts from then if its
    /// clock exists. The next swap settles the clock.
    pub(super) fn add_timer(&mut self, id: Id, kind: Kind) {
        self.inserted += 1;
        self.sequence += 1;
        let seat = self.inserted;
        let spec = self.spec(id, kind);
        let clock = self.clocks.find(self.clock_of(id, self.chosen(id, kind)));
        let mut timer = Timer {
            entity: id,
            kind,
            seat,
            clock,
            state: State::Pending,
            deadline: 0,
            paused_at: None,
            is_held: self.is_in_transit(id),
            is_released: false,
            sequence: self.sequence,
            owner: self.owner_of(id),
            acts: self.entities[id].action.is_some(),
            interval: 0,
            random: 0,
            is_random: false,
            times: 1,
            missed: MissedTicks::Burst,
            count: 0,
            wait: 0,
            burst: (0, 0),
        };
        let delay = self.draw_delay(id, kind);
        if let Some(clock) = clock {
            (timer.deadline, timer.wait) = self.first_deadline(id, kind, clock, delay);
            let now = self.clocks.live(clock).now;
            timer.paused_at = self.is_paused(id).then_some(now);
        }
        if let Some(spec) = spec {
            let rules = self.rules;
            timer.interval = rules.nanos(spec.interval);
            timer.times = times(spec).unwrap_or(0);
            timer.missed = spec.missed;
            timer.is_random = spec.interval > 0 && spec.span > 0;
            timer.random = if timer.is_random { self.draw() } else { 0 };
        }
        if kind == Kind::Request {
            (timer.interval, timer.times) = (0, 1);
        }
        if kind == Kind::Timer {
            self.entities[id].seat = Some(seat);
        }
        self.timers.push(timer);
    }

    /// The settings of a timer or a time-out. A lifetime has only its delay.
    fn spec(&self, id: Id, kind: Kind) -> Option<Spec> {
        match kind {
            Kind::Timer => self.entities[id].timer,
            Kind::Request => self.entities[id].until,
            Kind::Lifetime => None,
        }
    }

    /// A timer or a time-out may choose its clock. A lifetime does not.
    pub(super) fn chosen(&self, id: Id, kind: Kind) -> Option<Named> {
        match kind {
            Kind::Timer => self.entities[id].timer_on,
            Kind::Request => self.entities[id].until_on,
            Kind::Lifetime => None,
        }
    }

    /// The first delay counts from the time on the clock, or from a time that the clock shows. From zero, the
    /// first deadline is a time of the grid that has not passed.
    pub(super) fn first_deadline(&self, id: Id, kind: Kind, clock: Nth, delay: u64) -> (u64, u64) {
        let clock = self.clocks.live(clock);
        let spec = self.spec(id, kind);
        let Some((spec, since)) = spec.and_then(|spec| Some((spec, spec.since?))) else {
            return (clock.now.saturating_add(delay), delay);
        };
        let mut shown = self.rules.nanos(since).saturating_add(delay);
        if since == 0 && spec.interval > 0 && spec.span == 0 {
            let interval = self.rules.nanos(spec.interval);
            let missed = clock
                .shown(clock.now)
                .saturating_sub(shown)
                .div_ceil(interval);
            shown = shown.saturating_add(missed.saturating_mul(interval));
        }
        let deadline = shift(shown, -clock.offset);
        // The deadline may saturate.
        (deadline, deadline.saturating_sub(clock.now))
    }

    /// The delay has a random part and a part of the slack. Both depend on the number of draws before, and
    /// the random part also on the seed.
    pub(super) fn draw_delay(&mut self, id: Id, kind: Kind) -> u64 {
        let Some(spec) = self.spec(id, kind) else {
            return self.entities[id].life.unwrap_or_default();
        };
        let (rules, mut delay) = (self.rules, self.rules.nanos(spec.delay));
        if spec.jitter > 0 {
            delay = delay.saturating_add(scale(self.draw(), rules.nanos(spec.jitter)));
        }
        if spec.slack > 0 {
            self.draws += 1;
            let part = scale(self.draws.wrapping_mul(GOLDEN), rules.nanos(spec.slack) - 1);
            delay = delay.saturating_add(part);
        }
        delay
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.draws += 1;
        mix(self
            .rules
            .seed
            .wrapping_add(self.draws.wrapping_mul(GOLDEN)))
    }

    /// The new timers settle on their clocks, in the order of insertion. Returns those whose clocks do not
    /// exist.
    pub(super) fn resolve(&mut self) -> Vec<(Id, Kind)> {
        let pending = self.timers.iter().filter(|timer| timer.is_pending());
        let mut pending: Vec<_> = pending
            .map(|timer| (timer.sequence, timer.entity, timer.kind))
            .collect();
        pending.sort_unstable_by_key(|&(sequence, ..)| sequence);
        let mut lost = Vec::new();
        for (_, id, kind) in pending {
            let at = self.find_timer(id, kind).expect("it is pending");
            if !self.settle(at) {
                lost.push((id, kind));
            }
        }
        lost
    }

    /// Settles the clock of a new timer. If it is another one than at insertion, the delay starts now.
    /// Returns `false` if there is no such clock.
    pub(super) fn settle(&mut self, at: usize) -> bool {
        let Timer { entity, kind, .. } = self.timers[at];
        if !self.timers[at].is_pending() {
            return true;
        }
        let clock = self.clock_of(entity, self.chosen(entity, kind));
        let Some(clock) = self.clocks.find(clock) else {
            return false;
        };
        self.start_on(at, clock);
        self.timers[at].state = State::Armed;
        true
    }

    /// A component that arrives before the swap may put new timers on another clock. Their delays start again.
    pub(super) fn start_again(&mut self, id: Id) {
        for kind in Kind::ALL {
            let Some(at) = self.find_timer(id, kind) else {
                continue;
            };
            let clock = self.clocks.find(self.clock_of(id, self.chosen(id, kind)));
            if self.timers[at].is_pending()
                && let Some(clock) = clock
            {
                self.start_on(at, clock);
            }
        }
    }

    fn start_on(&mut self, at: usize, clock: Nth) {
        let Timer { entity, kind, .. } = self.timers[at];
        if self.timers[at].clock != Some(clock) {
            let delay = self.draw_delay(entity, kind);
            let (deadline, wait) = self.first_deadline(entity, kind, clock, delay);
            let now = self.clocks.live(clock).now;
            let paused_at = self.is_paused(entity).then_some(now);
            let timer = &mut self.timers[at];
            (timer.deadline, timer.wait) = (deadline, wait);
            (timer.clock, timer.paused_at) = (Some(clock), paused_at);
        }
    }

    /// A timer without a clock is cancelled, and a request times out. A lifetime without a clock is removed, and
    /// a pause without a clock ends.
    pub(super) fn lose_clock(&mut self, id: Id, kind: Kind) {
        match kind {
            Kind::Timer => self.cancel(id, CancelReason::ClockGone),
            Kind::Request => self.cancel_silently(id, kind),
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
            Kind::Request => self.time_out(id),
            Kind::Timer => {
                let Some(spec) = self.entities[id].timer else {
                    return;
                };
                if self.despawns(id, done(spec)) {
                    self.despawn(id);
                    return;
                }
                self.drop_timer(id);
            }
        }
    }
}
