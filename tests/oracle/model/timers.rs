//! Timers and lifetimes: inserting, cancelling and changing them.

use bevy_due::{CancelReason, MissedTicks};

use super::{
    Model,
    clocks::{Nth, shift},
};
use crate::{
    entry::{Cancel, Entry, Id, Named},
    op::{self, Change, Spec},
};

pub(super) struct Timer {
    pub(super) entity: Id,
    pub(super) kind: Kind,
    /// No two insertions have the same number.
    pub(super) seat: u64,
    /// `None` if its clock did not exist when it was inserted.
    pub(super) clock: Option<Nth>,
    pub(super) state: State,
    pub(super) deadline: u64,
    /// The time on the clock when it was paused.
    pub(super) paused_at: Option<u64>,
    /// Whether a run has begun since it was armed, resumed or moved. Only then it may fire.
    pub(super) is_released: bool,
    pub(super) sequence: u64,
    pub(super) owner: Id,
    pub(super) acts: bool,
    pub(super) interval: u64,
    /// The state of the random numbers of its intervals.
    pub(super) random: u64,
    pub(super) is_random: bool,
    pub(super) times: u32,
    pub(super) missed: MissedTicks,
    pub(super) count: u64,
    /// The length of the wait for the deadline.
    pub(super) wait: u64,
    /// The last run in which it fired, and the number of firings in that run.
    pub(super) burst: (u64, u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Timer,
    Lifetime,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum State {
    /// Inserted since the last swap.
    Pending,
    Armed,
}

/// What happens to an entity whose timer has finished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Done {
    Keeps,
    DespawnsIfOwned,
    Despawns,
    DespawnsUnlessOwned,
}

impl Timer {
    pub(super) fn is_pending(&self) -> bool {
        self.state == State::Pending
    }

    /// Returns the deadline, as if a paused timer resumed now.
    pub(super) fn deadline_at(&self, now: u64) -> u64 {
        match self.paused_at {
            Some(paused_at) => shift(self.deadline, i128::from(now) - i128::from(paused_at)),
            None => self.deadline,
        }
    }
}

impl Model {
    pub(super) fn find_timer(&self, id: Id, kind: Kind) -> Option<usize> {
        let is_it = |timer: &Timer| timer.entity == id && timer.kind == kind;
        self.timers.iter().position(is_it)
    }

    pub(super) fn with_armed(&mut self, id: Id, change: impl FnOnce(&mut Timer)) {
        if let Some(at) = self.find_timer(id, Kind::Timer)
            && !self.timers[at].is_pending()
        {
            change(&mut self.timers[at]);
        }
    }

    /// A timer replaces the one on its entity.
    pub(super) fn insert_timer(&mut self, id: Id, spec: Spec, on: Option<Named>) {
        self.cancel(id, CancelReason::Replaced);
        self.entities[id].timer = Some(spec);
        self.entities[id].timer_on = on;
        self.push_pending(id, Kind::Timer);
    }

    /// A lifetime replaces the one on its entity.
    pub(super) fn insert_life(&mut self, id: Id, delay: u64) {
        self.cancel_life(id);
        self.entities[id].life = Some(delay);
        self.push_pending(id, Kind::Lifetime);
    }

    /// A timer is pending until the next swap. Its delay counts from now if its clock exists.
    fn push_pending(&mut self, id: Id, kind: Kind) {
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
            is_released: false,
            sequence: 0,
            owner: id,
            acts: false,
            interval: 0,
            random: 0,
            is_random: false,
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
    fn first_deadline(&self, id: Id, kind: Kind, clock: Nth, random: u64) -> (u64, u64) {
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
        // Without further settings, the wait is the delay even if the deadline saturates.
        let wait = match self.entities[id].is_request || !is_plain(spec) {
            true => deadline.saturating_sub(clock.now),
            false => delay,
        };
        (deadline, wait)
    }

    /// The random delay depends on the seed and on the number of draws before.
    fn draw_jitter(&mut self, spec: Spec) -> u64 {
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
            if let Some(spec) = self.entities[id].timer.filter(|_| kind == Kind::Timer) {
                self.draw_jitter(spec);
            }
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
        let is_paused = self.is_paused(entity);
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
        timer.is_released = is_in_run;
        (timer.sequence, timer.owner, timer.acts) = (sequence, owner, acts);
        (timer.random, timer.is_random) = (random, is_random);
        if let Some(spec) = spec {
            timer.interval = rules.nanos(spec.interval);
            timer.times = times(spec).unwrap_or(0);
            timer.missed = spec.missed;
        }
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
        let setting = self.clock_of(id, self.chosen(id, Kind::Timer));
        let armed = timer.clock.filter(|_| !timer.is_pending());
        let cancelled = Entry::Cancelled(Cancel {
            entity: id,
            owner: self.owner_of(id),
            key: self.key_name(id),
            clock: armed.map_or(setting, |nth| self.clocks.all[nth].name),
            reason,
        });
        self.log.push(cancelled.clone());
        self.unwritten.push(cancelled);
        true
    }

    pub(super) fn cancel_life(&mut self, id: Id) {
        self.entities[id].life = None;
        if let Some(at) = self.find_timer(id, Kind::Lifetime) {
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
        let timer = self.keyed(owner, key);
        let timer = timer.filter(|&timer| self.entities[timer].timer.is_some());
        timer.is_some_and(|timer| self.cancel_and_despawn(timer, CancelReason::Cancelled))
    }

    /// Cancels the timers of an owner, except for the time-outs of requests.
    pub(super) fn cancel_all(&mut self, owner: Id) {
        for id in self.timers_of(owner) {
            if id == owner {
                self.cancel(id, CancelReason::Cancelled);
                self.drop_timer(id);
            } else if self.entities[id].owner == Some(owner) && !self.entities[id].is_request {
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
        for ended in &mut self.ended {
            ended.push((id, Done::DespawnsUnlessOwned));
        }
    }

    /// Changes an armed timer. Returns `false` if there is none, or no such clock to move it to.
    pub(super) fn change(&mut self, id: Option<Id>, change: Change) -> bool {
        let armed = |model: &Self| model.find_timer(id?, Kind::Timer);
        if armed(self).is_none() {
            return false;
        }
        self.resolve(|_, _| false);
        let Some(at) = armed(self) else {
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
                timer.is_random = spec.interval > 0 && spec.span > 0;
                timer.times = times(spec).unwrap_or(0);
                let random = self.draw_jitter(spec);
                let (deadline, _) = self.first_deadline(entity, Kind::Timer, clock, random);
                self.move_to(at, deadline, deadline.saturating_sub(live.now));
            }
            Change::Refresh => set_left(timer, times(spec)),
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
                let deadline = timer.deadline_at(live.now).saturating_add(by);
                let wait = timer.wait.saturating_add(by);
                self.move_to(at, deadline, wait);
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
    fn move_to_clock(&mut self, at: usize, to: op::At, now: u64) -> bool {
        let Some(to) = self.find_clock(to) else {
            return false;
        };
        if self.timers[at].clock == Some(to) {
            return true;
        }
        let there = self.clocks.live(to).now;
        self.inserted += 1;
        let timer = &mut self.timers[at];
        let deadline = timer.deadline_at(now);
        let deadline = shift(deadline, i128::from(there) - i128::from(now));
        timer.paused_at = timer.paused_at.map(|_| there);
        timer.clock = Some(to);
        timer.seat = self.inserted;
        self.entities[timer.entity].seat = Some(timer.seat);
        let wait = timer.wait;
        self.move_to(at, deadline, wait);
        true
    }
}

/// Returns `true` for a timer that has a delay, an interval and a number of firings at most.
fn is_plain(spec: Spec) -> bool {
    let Spec {
        delay,
        interval,
        times,
        ..
    } = spec;
    let plain = Spec {
        delay,
        since: None,
        jitter: 0,
        interval,
        span: 0,
        times,
        missed: MissedTicks::Burst,
        done: op::Done::ByOwner,
        on: None,
    };
    spec == plain
}

fn set_left(timer: &mut Timer, left: Option<u32>) {
    let count = u32::try_from(timer.count).expect("counts are small");
    timer.times = left.map_or(0, |left| count.saturating_add(left));
}

/// Returns the number of firings, or `None` for no limit.
pub(super) fn times(spec: Spec) -> Option<u32> {
    match (spec.interval, spec.times) {
        (0, _) => Some(1),
        (_, 0) => None,
        (_, times) => Some(times),
    }
}

pub(super) fn done(spec: Spec) -> Done {
    match spec.done {
        op::Done::ByOwner => Done::DespawnsIfOwned,
        op::Done::Keeps => Done::Keeps,
        op::Done::Despawns => Done::Despawns,
    }
}

/// The step between two states of `SplitMix64` (Steele, Lea and Flood, 2014).
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the random number of a state of `SplitMix64`.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Scales a random number to `0..=max`.
pub(super) fn scale(random: u64, max: u64) -> u64 {
    ((u128::from(random) * (u128::from(max) + 1)) >> 64) as u64
}
