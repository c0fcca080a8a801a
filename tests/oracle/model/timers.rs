//! Timers and lifetimes, and the components that arm them.

use bevy_due::{CancelReason, MissedTicks};

use super::{
    Model,
    clock::{Clock, shift},
    clocks::Nth,
};
use crate::{
    entry::{Id, Named},
    op::{self, Spec},
    rules::Rules,
};

#[derive(Clone)]
pub(super) struct Timer {
    pub(super) entity: Id,
    pub(super) kind: Kind,
    /// No two insertions have the same number.
    pub(super) seat: u64,
    /// `None` while its clock does not exist.
    pub(super) clock: Option<Nth>,
    /// The clock that it chose itself.
    pub(super) chosen: Option<Named>,
    /// Whether it was inserted since the last swap, and not changed. Its clock may become another one.
    pub(super) is_new: bool,
    pub(super) deadline: u64,
    /// The time on the clock when it was paused.
    pub(super) paused_at: Option<u64>,
    /// Whether a run has begun since it was armed, resumed, released or moved. Only then it may fire.
    pub(super) is_released: bool,
    pub(super) sequence: u64,
    pub(super) owner: Id,
    pub(super) interval: u64,
    /// The state of the random numbers of its intervals.
    pub(super) random: u64,
    pub(super) is_random: bool,
    pub(super) times: u32,
    pub(super) missed: MissedTicks,
    pub(super) count: u64,
    /// The length of the wait for the deadline.
    pub(super) wait: u64,
    /// The length of its burst, and of the chain of handlers that armed it in an exact frame. It ends with this run.
    pub(super) burst: (u64, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Timer,
    Request,
    Lifetime,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Timer, Self::Request, Self::Lifetime];
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
    /// Of equal deadlines, those of lifetimes come last.
    pub(super) fn rank(&self) -> (u64, bool, u64) {
        (self.deadline, self.kind == Kind::Lifetime, self.sequence)
    }

    /// Returns the length of its burst and chain so far in a run.
    pub(super) fn burst_in(&self, run: u64) -> u32 {
        let (of, length) = self.burst;
        if of == run { length } else { 0 }
    }

    /// Returns the number of firings left, or `None` if there is no limit.
    pub(super) fn left(&self) -> Option<u32> {
        let times = Some(self.times).filter(|&times| times != 0)?;
        Some(times.saturating_sub(self.count as u32))
    }

    /// Returns the deadline, as if a paused timer resumed now.
    pub(super) fn deadline_at(&self, now: u64) -> u64 {
        match self.paused_at {
            Some(paused_at) => shift(self.deadline, i128::from(now) - i128::from(paused_at)),
            None => self.deadline,
        }
    }
}

impl Timer {
    /// Time passes on the clock without the timer.
    pub(super) fn pass(&mut self, span: u64) {
        self.deadline = shift(self.deadline, -i128::from(span));
    }

    /// A new timer is saved on its clock, if that exists. A timer without a clock is saved as if it were new.
    pub(super) fn save(&mut self, spec: impl FnOnce(Id, Kind) -> Option<Spec>, rules: Rules) {
        self.is_new = self.clock.is_none();
        if self.is_new
            && let Some(spec) = spec(self.entity, self.kind)
            && self.kind == Kind::Timer
        {
            (self.count, self.times) = (0, times(spec).unwrap_or(0));
            self.interval = rules.nanos(spec.interval);
        }
    }

    /// A timer keeps the deadline that its clock shows, and its pause, when the clock is loaded.
    pub(super) fn follow_clock(&mut self, saved: &Clock, loaded: &Clock) {
        let (from, to) = (saved.now, shift(saved.shown(saved.now), -loaded.offset));
        let deadline = self.deadline_at(from);
        self.deadline = shift(deadline, i128::from(to) - i128::from(from));
        self.paused_at = self.paused_at.map(|_| to);
    }
}

impl Model {
    pub(super) fn find_timer(&self, id: Id, kind: Kind) -> Option<usize> {
        let is_it = |timer: &Timer| timer.entity == id && timer.kind == kind;
        self.timers.iter().position(is_it)
    }

    pub(super) fn with_armed(&mut self, id: Id, change: impl FnOnce(&mut Timer)) {
        if let Some(at) = self.find_timer(id, Kind::Timer) {
            change(&mut self.timers[at]);
        }
    }

    /// A timer replaces the one on its entity.
    pub(super) fn insert_timer(&mut self, id: Id, spec: Spec, on: Option<Named>) {
        self.cancel(id, CancelReason::Replaced);
        self.entities[id].timer = Some(spec);
        self.add_timer(id, Kind::Timer, spec, on);
    }

    /// A lifetime replaces the one on its entity.
    pub(super) fn insert_life(&mut self, id: Id, delay: u64, since: Option<u64>) {
        self.cancel_life(id);
        let life = Spec {
            delay,
            since,
            ..ONCE
        };
        self.entities[id].life = Some(life);
        self.add_timer(id, Kind::Lifetime, life, None);
    }
}

/// A timer that fires once and has no other settings.
const ONCE: Spec = Spec {
    delay: 0,
    since: None,
    jitter: 0,
    interval: 0,
    span: 0,
    slack: 0,
    times: 0,
    missed: MissedTicks::Burst,
    done: op::Done::ByOwner,
    on: None,
};

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
