//! Arming timers: their first deadlines, their random delays, their clocks, and the swap that releases them.

use bevy_due::CancelReason;

use super::{
    Model,
    clock::shift,
    clocks::{Nth, Scope},
    random::{GOLDEN, mix, scale},
    timers::{Kind, Timer, done, times},
};
use crate::{
    entry::{Id, Named},
    op::Spec,
};

impl Model {
    /// A timer takes its place among equal deadlines when it is inserted.
    pub(super) fn add_timer(&mut self, id: Id, kind: Kind, spec: Spec, chosen: Option<Named>) {
        self.inserted += 1;
        self.sequence += 1;
        let is_request = kind == Kind::Request;
        let mut timer = Timer {
            entity: id,
            kind,
            seat: self.inserted,
            clock: None,
            chosen,
            is_new: true,
            deadline: 0,
            paused_at: None,
            is_released: false,
            sequence: self.sequence,
            owner: self.owner_of(id),
            interval: if is_request {
                0
            } else {
                self.rules.nanos(spec.interval)
            },
            random: 0,
            is_random: spec.interval > 0 && spec.span > 0,
            times: if is_request {
                1
            } else {
                times(spec).unwrap_or(0)
            },
            missed: spec.missed,
            count: 0,
            wait: 0,
            burst: (self.runs, self.chain),
        };
        let clock = self.clocks.find(self.clock_of(id, chosen));
        let delay = self.draw_delay(spec);
        if timer.is_random {
            timer.random = self.draw();
        }
        if let Some(clock) = clock {
            self.start(&mut timer, spec, clock, delay);
        }
        if kind == Kind::Timer {
            self.entities[id].seat = Some(timer.seat);
        }
        self.timers.push(timer);
    }

    /// The component of a timer.
    pub(super) fn spec(&self, id: Id, kind: Kind) -> Option<Spec> {
        match kind {
            Kind::Timer => self.entities[id].timer,
            Kind::Request => self.entities[id].until,
            Kind::Lifetime => self.entities[id].life,
        }
    }

    /// A new timer counts its delay from now, on its clock.
    fn start(&self, timer: &mut Timer, spec: Spec, clock: Nth, delay: u64) {
        (timer.deadline, timer.wait) = self.first_deadline(spec, clock, delay);
        let now = self.clocks.all[clock].now;
        timer.paused_at = self.is_paused(timer.entity).then_some(now);
        timer.clock = Some(clock);
    }

    /// The first delay counts from the time on the clock, or from a time that the clock shows. From zero, the
    /// first deadline is a time of the grid that has not passed.
    pub(super) fn first_deadline(&self, spec: Spec, clock: Nth, delay: u64) -> (u64, u64) {
        let clock = &self.clocks.all[clock];
        let Some(since) = spec.since else {
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
    pub(super) fn draw_delay(&mut self, spec: Spec) -> u64 {
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

    /// A component has arrived that may put an entity and what it owns on another clock.
    pub(super) fn follow_defaults(&mut self, id: Id) {
        let owned = self.entities[id].owned.clone();
        for of in [id].into_iter().chain(owned) {
            self.follow_default(of);
            self.move_update(of);
        }
    }

    /// What has chosen no clock follows the entity to another one. New timers start again there, and others
    /// keep their remaining time.
    pub(super) fn follow_default(&mut self, id: Id) {
        for kind in Kind::ALL {
            let Some(at) = self.find_timer(id, kind) else {
                continue;
            };
            let timer = &self.timers[at];
            let to = self.clocks.find(self.clock_of(id, timer.chosen));
            if timer.is_new {
                self.start_on(at, to);
            } else if timer.chosen.is_none() {
                self.carry(at, to);
            }
        }
    }

    /// Timers without a clock look for it, in the order of insertion.
    fn find_late_clocks(&mut self) {
        let waiting = self.timers.iter().filter(|timer| timer.clock.is_none());
        let mut waiting: Vec<_> = waiting
            .map(|timer| (timer.sequence, timer.entity, timer.kind))
            .collect();
        waiting.sort_unstable_by_key(|&(sequence, ..)| sequence);
        for (_, id, kind) in waiting {
            if let Some(at) = self.find_timer(id, kind) {
                self.find_late_clock(at);
            }
        }
    }

    /// A timer without a clock looks for it.
    pub(super) fn find_late_clock(&mut self, at: usize) {
        let Timer {
            entity,
            clock: None,
            chosen,
            is_new,
            ..
        } = self.timers[at]
        else {
            return;
        };
        let to = self.clocks.find(self.clock_of(entity, chosen));
        match is_new {
            true => self.start_on(at, to),
            false => self.carry(at, to),
        }
    }

    fn start_on(&mut self, at: usize, to: Option<Nth>) {
        let Timer {
            entity,
            kind,
            clock,
            ..
        } = self.timers[at];
        if clock == to {
            return;
        }
        self.timers[at].clock = None;
        if let (Some(to), Some(spec)) = (to, self.spec(entity, kind)) {
            let delay = self.draw_delay(spec);
            let mut timer = self.timers[at].clone();
            self.start(&mut timer, spec, to, delay);
            self.timers[at] = timer;
        }
    }

    /// The swap before a run releases the timers on its clocks. The timers whose clocks still do not exist are
    /// cancelled. Entities with modifiers have a clock from now on.
    pub(super) fn swap(&mut self, scope: Scope) {
        self.add_modified_clocks();
        self.find_late_clocks();
        let mut lost = Vec::new();
        for timer in &mut self.timers {
            match timer.clock {
                Some(clock) if self.clocks.is_in(clock, scope) => timer.is_released = true,
                Some(_) => {}
                None => lost.push((timer.sequence, timer.entity, timer.kind)),
            }
            timer.is_new &= timer.clock.is_none();
        }
        lost.sort_unstable_by_key(|&(sequence, ..)| sequence);
        for (_, id, kind) in lost {
            if self.find_timer(id, kind).is_some() {
                self.lose_clock(id, kind);
            }
        }
    }

    /// A timer without a clock is cancelled, and a request times out. A lifetime without a clock is removed, and
    /// a pause without a clock ends.
    fn lose_clock(&mut self, id: Id, kind: Kind) {
        match kind {
            Kind::Timer => self.cancel(id, CancelReason::ClockGone),
            Kind::Request => self.cancel_silently(id, kind),
            Kind::Lifetime => self.cancel_life(id),
        }
        self.retire(id, kind);
    }

    /// A pause or a modifier of another entity, which ends with its lifetime.
    fn is_effect(&self, id: Id) -> bool {
        self.entities[id].pauses.is_some() || self.entities[id].modifies.is_some()
    }

    /// Removes the component of a timer that lost its clock. The entity of an owned timer despawns.
    pub(super) fn retire(&mut self, id: Id, kind: Kind) {
        if !self.exists(id) || self.find_timer(id, kind).is_some() {
            return;
        }
        match kind {
            Kind::Lifetime if self.is_effect(id) => self.despawn(id),
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
