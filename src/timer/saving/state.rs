//! The state of a timer as data: what the queue knows of a timer, beyond the settings in its component.

use core::num::{NonZeroU32, NonZeroU64};

use bevy_ecs::entity::MapEntities;
use serde::{Deserialize, Serialize, Serializer};

use super::fields::Fields;
use crate::{clock::ClockId, queue::NEVER, timer::random::RandomInterval};

/// The state of a timer, a time-out or a lifetime.
#[derive(MapEntities, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TimerState {
    /// Inserted since the last run, on a clock that is not there yet. The delay has not started.
    New {
        /// The place among the timers of its world.
        sequence: u64,
        random: Option<RandomInterval>,
    },
    /// In the queue of a clock.
    Armed(#[entities] Progress),
    /// The last firing is over, but the component is still there.
    Finished,
}

/// How far a timer has come.
#[derive(MapEntities, Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    /// The place among the timers of its world.
    pub(super) sequence: u64,
    #[serde(default)]
    #[entities]
    pub(super) clock: ClockId,
    /// The time until the deadline, or [`NEVER`].
    pub(super) remaining: u64,
    /// The time since a deadline that has passed, because the timer was paused or its clock stopped.
    #[serde(default)]
    pub(super) lateness: u64,
    /// The length of the whole wait.
    pub(super) wait: u64,
    /// The number of firings.
    #[serde(default)]
    pub(super) count: u64,
    /// The number of firings left, or `None` if the timer fires forever.
    pub(super) left: Option<NonZeroU32>,
    /// The current interval in nanoseconds.
    pub(super) interval: Option<NonZeroU64>,
    pub(super) random: Option<RandomInterval>,
    /// Whether the timer chose its clock.
    #[serde(default)]
    pub(super) is_chosen: bool,
    /// Whether the timer was inserted since the last run.
    #[serde(default)]
    pub(super) is_new: bool,
    /// Whether the timer was paused, or a condition held its clock.
    #[serde(default)]
    pub(super) is_still: bool,
}

impl Serialize for Progress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, "Progress", 12)?;
        fields.required("sequence", &self.sequence)?;
        fields.add("clock", &self.clock)?;
        fields.required("remaining", &self.remaining)?;
        fields.add("lateness", &self.lateness)?;
        fields.required("wait", &self.wait)?;
        fields.add("count", &self.count)?;
        fields.add("left", &self.left)?;
        fields.add("interval", &self.interval)?;
        fields.add("random", &self.random)?;
        fields.add("is_chosen", &self.is_chosen)?;
        fields.add("is_new", &self.is_new)?;
        fields.add("is_still", &self.is_still)?;
        fields.end()
    }
}

impl TimerState {
    /// Returns the place among the timers of its world.
    pub(crate) fn order(&self) -> u64 {
        match *self {
            Self::Armed(Progress { sequence, .. }) | Self::New { sequence, .. } => sequence,
            Self::Finished => 0,
        }
    }

    /// Returns the clock on which the timer runs, if it was there.
    pub(crate) fn clock(&self) -> Option<ClockId> {
        match self {
            Self::Armed(progress) => Some(progress.clock),
            Self::New { .. } | Self::Finished => None,
        }
    }

    /// Lets time pass on the clock of the timer, unless the timer stood still.
    pub(crate) fn pass(&mut self, passed: impl Fn(ClockId) -> u64) {
        if let Self::Armed(progress) = self
            && progress.remaining != NEVER
            && !progress.is_still
        {
            let nanos = passed(progress.clock);
            let late = nanos.saturating_sub(progress.remaining);
            progress.lateness = progress.lateness.saturating_add(late);
            progress.remaining = progress.remaining.saturating_sub(nanos);
        }
    }

    /// Puts the timer on the default clock if it runs on one of these.
    pub(crate) fn leave_clock(&mut self, is_missing: impl Fn(ClockId) -> bool) {
        if let Self::Armed(progress) = self
            && is_missing(progress.clock)
        {
            progress.clock = ClockId::default();
        }
    }
}
