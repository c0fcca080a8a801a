//! The state of a timer as data: what the queue knows of a timer, beyond the settings in its
//! component.

use core::num::{NonZeroU32, NonZeroU64};

use bevy_ecs::entity::MapEntities;
use bevy_platform::sync::OnceLock;

#[cfg(feature = "serialize")]
use super::fields::Fields;
use crate::{
    clock::{ClockId, Reading},
    queue::NEVER,
    timer::{
        queued::{ArmedTimer, Mark},
        random::RandomInterval,
    },
};

/// The state of a timer, a time-out or a lifetime.
#[derive(MapEntities, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum TimerState {
    /// Inserted since the last run, on a clock that was not known yet. The delay has not started.
    Unsettled {
        /// The place among the timers that were saved with it.
        sequence: u64,
        random: Option<RandomInterval>,
    },
    /// In the queue of a clock.
    Armed(#[entities] Progress),
    /// The last firing is over, but the component is still there.
    Finished,
}

/// How far a timer has come.
#[derive(MapEntities, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct Progress {
    /// The place among equal deadlines on the clock.
    pub(in crate::timer) sequence: u64,
    #[cfg_attr(feature = "serialize", serde(default))]
    #[entities]
    pub(in crate::timer) clock: ClockId,
    /// The time that the clock shows.
    pub(super) now: u64,
    /// The time until the deadline, or [`NEVER`].
    pub(in crate::timer) remaining: u64,
    /// The time since a deadline that has passed, because the timer was paused or its clock stopped.
    #[cfg_attr(feature = "serialize", serde(default))]
    pub(super) lateness: u64,
    /// The length of the whole wait.
    pub(super) wait: u64,
    /// The number of firings.
    #[cfg_attr(feature = "serialize", serde(default))]
    pub(in crate::timer) count: u64,
    /// The number of firings left, or `None` if the timer fires forever.
    pub(in crate::timer) left: Option<NonZeroU32>,
    /// The current interval in nanoseconds.
    pub(in crate::timer) interval: Option<NonZeroU64>,
    pub(in crate::timer) random: Option<RandomInterval>,
    /// Whether the timer chose its clock.
    #[cfg_attr(feature = "serialize", serde(default))]
    pub(super) is_chosen: bool,
}

#[cfg(feature = "serialize")]
impl serde::Serialize for Progress {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, "Progress", 11)?;
        fields.required("sequence", &self.sequence)?;
        fields.add("clock", &self.clock)?;
        fields.required("now", &self.now)?;
        fields.required("remaining", &self.remaining)?;
        fields.add("lateness", &self.lateness)?;
        fields.required("wait", &self.wait)?;
        fields.add("count", &self.count)?;
        fields.add("left", &self.left)?;
        fields.add("interval", &self.interval)?;
        fields.add("random", &self.random)?;
        fields.add("is_chosen", &self.is_chosen)?;
        fields.end()
    }
}

impl TimerState {
    /// Returns the place among the timers that were saved with it.
    pub(in crate::timer) fn order(&self) -> u64 {
        match *self {
            Self::Armed(Progress { sequence, .. }) | Self::Unsettled { sequence, .. } => sequence,
            Self::Finished => 0,
        }
    }

    /// Returns the clock on which the timer runs, if it was known.
    pub(crate) fn clock(&self) -> Option<ClockId> {
        match self {
            Self::Armed(progress) => Some(progress.clock),
            Self::Unsettled { .. } | Self::Finished => None,
        }
    }
}

impl Progress {
    /// Continues a new timer with this delay from here.
    pub(in crate::timer) fn put_into(&self, timer: &mut ArmedTimer, delay: u64) {
        timer.set_count(self.count);
        timer.interval = self.interval;
        timer.set_left(self.left.map(NonZeroU32::get));
        if self.random.is_some() {
            timer.change_rare(|rare| rare.random = self.random);
        }
        timer.set_wait(self.wait, delay);
        timer.set(Mark::Chosen, self.is_chosen);
    }

    /// Lets time pass on the clock of the wait.
    #[cfg(feature = "serialize")]
    pub(super) fn pass(&mut self, nanos: u64) {
        if self.remaining != NEVER {
            let late = nanos.saturating_sub(self.remaining);
            self.lateness = self.lateness.saturating_add(late);
            self.remaining = self.remaining.saturating_sub(nanos);
        }
    }

    /// Returns the deadline on a clock that shows the same time as the saved one now.
    pub(in crate::timer) fn deadline(&self, reading: Reading) -> u64 {
        let deadline = reading.now.saturating_add(self.remaining);
        deadline.saturating_sub(self.lateness)
    }

    /// Returns the deadline on a clock that has moved on since it was loaded.
    pub(in crate::timer) fn deadline_on_loaded(&self, reading: Reading) -> u64 {
        if self.remaining == NEVER {
            return NEVER;
        }
        let due = i128::from(self.remaining) - i128::from(self.lateness);
        let deadline = i128::from(self.now) + due - reading.offset;
        u64::try_from(deadline.max(0)).unwrap_or(NEVER)
    }
}

/// The state with which a component was loaded. It counts for the first insertion.
#[derive(MapEntities, Clone, Debug)]
pub(in crate::timer) struct Loaded {
    #[entities]
    pub(super) state: TimerState,
    /// Set once the timer has been armed or cancelled. If it is inserted again, it starts over.
    pub(super) used: OnceLock<()>,
}
