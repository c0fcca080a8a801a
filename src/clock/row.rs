//! One clock in the table: its state, and its place among the other clocks.

use alloc::collections::BTreeSet;

use bevy_ecs::prelude::*;

use super::{reading::Reading, speed::Speed, state::ClockState};
use crate::queue::NEVER;

/// The index of a clock in the table. A key is reused once its clock is gone.
pub(crate) type ClockKey = u32;

/// The number of clocks added before this one. It tells a clock from a later one of the same key.
pub(crate) type Age = u64;

/// The place of a clock in the order in which the clocks of a run go: the age, unless it was loaded.
pub(crate) type Order = u64;

/// The length of one frame on the frame clock.
pub(crate) const FRAME: u64 = 1_000_000_000;

/// The source of time of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Bevy(BevyTime),
    /// The number of frames.
    Frames,
    /// The clock of this key and age.
    Clock(ClockKey, Age),
    /// Nothing, because the parent does not exist.
    Missing,
}

/// One of Bevy's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BevyTime {
    Real,
    Virtual,
    Fixed,
}

/// How often a clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cadence {
    /// Once a frame.
    Frame,
    /// Once a step of the fixed schedule.
    FixedStep,
}

/// A clock.
///
/// A clock on an entity is brought up to date, or *settled*, only when it changes. In between, its
/// time follows from the time of its parent. That is exact, because splitting a span does not
/// change the result of [`Speed::scale`].
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The entity of the clock, unless it is built in.
    pub(super) entity: Option<Entity>,
    pub(super) age: Age,
    pub(super) order: Order,
    pub(super) source: Source,
    /// The built-in clock at the end of the chain of parents. An orphan keeps its last one.
    pub(super) root: ClockKey,
    pub(super) cadence: Cadence,
    pub(super) children: BTreeSet<ClockKey>,
    /// The state when the source showed `seen`.
    pub(super) state: ClockState,
    pub(super) seen: u64,
    /// The time on the source that the clock has not seen, and that comes on top of the time since
    /// `seen`: a loaded clock can be behind by more than its new source has run.
    pub(super) behind: u64,
    /// The epoch in which the clock was added. Until it ends, `seen` is the time of the source at
    /// that moment, which may have moved since the run.
    pub(super) added_in: Option<u64>,
    pub(super) brakes: Brakes,
    /// The reading in this run. It is taken when it is first needed, at the latest before a change.
    pub(super) run: RunReading,
    /// The time in the last two runs of the cadence.
    pub(super) ticks: Ticks,
    pub(super) live: Live,
    pub(super) plan: Plan,
    /// Whether the component may have been overwritten.
    pub(super) is_noted: bool,
}

/// Everything but its own settings that changes the speed of a clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brakes {
    /// The product of the speed modifiers.
    pub(super) factor: f64,
    /// Whether the entity of the clock is disabled.
    pub(super) disabled: bool,
    /// The number of conditions that hold the clock.
    pub(super) holds: u32,
    /// Whether the source is stopped: Bevy's game time was paused.
    pub(super) source_stopped: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RunReading {
    pub(super) epoch: u64,
    pub(super) reading: Reading,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    pub(super) run: u64,
    pub(super) last: u64,
    pub(super) previous: u64,
}

/// The time between two runs, and the moment for which it holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Live {
    pub(super) moment: Option<Moment>,
    pub(super) now: u64,
}

/// A moment at which no clock has changed, and a built-in clock has shown the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) changes: u64,
    pub(super) elapsed: u64,
}

/// When something is due on a clock or its descendants. Too early is harmless.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The first deadline on the clock itself.
    pub(super) deadline: Option<u64>,
    /// The times on this clock at which something is due on its children.
    pub(super) children: BTreeSet<(u64, ClockKey)>,
    /// The time of this clock in the plan of its parent.
    pub(super) entry: Option<u64>,
}

impl Row {
    /// Returns how fast the clock runs, apart from pauses.
    pub(super) fn rate(&self) -> Speed {
        self.state.speed.times(self.brakes.factor)
    }

    /// Returns `true` if the clock itself stands still.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_paused() || self.rate().is_zero()
    }

    fn is_paused(&self) -> bool {
        self.state.paused || self.brakes.disabled || self.brakes.holds > 0
    }

    /// Returns the state when the source shows `now`. A source that is behind has been seen ahead
    /// of the run.
    pub(super) fn state_at(&self, now: u64) -> ClockState {
        match now.checked_sub(self.seen) {
            None | Some(0) => self.state,
            Some(span) => self.state_after(span.saturating_add(self.behind)),
        }
    }

    /// Returns the state after the source has advanced by `nanos`.
    pub(super) fn state_after(&self, nanos: u64) -> ClockState {
        let mut state = self.state;
        if !self.is_paused() {
            state.run(self.rate(), nanos);
        }
        state
    }

    /// Brings the clock up to date with a source that shows `now`.
    pub(super) fn settle_at(&mut self, now: u64) {
        if now > self.seen {
            self.state = self.state_at(now);
            (self.seen, self.behind) = (now, 0);
        }
    }

    /// Follows a source that was set back to `now`.
    pub(super) fn set_back_to(&mut self, now: u64) {
        if now < self.seen {
            if !self.is_paused() {
                self.state.run_back(self.rate(), self.seen - now);
            }
            self.seen = now;
        }
    }

    /// Returns the first time at which something is due on the clock or its descendants.
    pub(super) fn wakes(&self) -> Option<u64> {
        let child = self.plan.children.first().map(|&(time, _)| time);
        self.plan.deadline.into_iter().chain(child).min()
    }

    /// Returns the time of the parent when this clock will show `time`, or `None` if that takes
    /// forever. A time that has passed is always in the past of the parent, which the clock may have
    /// seen ahead of the run.
    pub(super) fn parent_time(&self, time: u64) -> Option<u64> {
        if self.is_stopped() {
            return None;
        }
        let span = time.saturating_sub(self.state.now);
        if span == 0 {
            return Some(0);
        }
        let span = self.rate().unscale(span, self.state.carry)?;
        let span = span.saturating_sub(self.behind);
        self.seen.checked_add(span).filter(|&time| time < NEVER)
    }
}

impl Default for Brakes {
    fn default() -> Self {
        Self {
            factor: 1.0,
            disabled: false,
            holds: 0,
            source_stopped: false,
        }
    }
}
