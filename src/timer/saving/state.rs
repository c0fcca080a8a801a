//! The state of a timer as data: what the queue knows of a timer, beyond the settings in its
//! component.

use core::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use bevy_ecs::{entity::MapEntities, prelude::*};
use bevy_platform::sync::atomic::{AtomicBool, Ordering};

use crate::{
    clock::{ClockId, Reading},
    queue::NEVER,
    timer::random_interval::RandomInterval,
};

/// The state of a timer or a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum TimerState {
    /// Inserted since the last run, after this number of others. Without a wait, the clock did not
    /// exist yet.
    Added { nth: u64, wait: Option<Wait> },
    /// In the queue of a clock.
    Armed(Progress),
    /// The last firing is over, but the component is still there.
    Finished,
}

/// How far a timer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct Progress {
    /// The place among equal deadlines on the clock.
    pub(in crate::timer) sequence: u64,
    pub(in crate::timer) wait: Wait,
    /// The number of firings.
    pub(in crate::timer) count: u64,
    /// The number of firings left, or `None` if the timer fires forever.
    pub(in crate::timer) left: Option<NonZeroU32>,
    /// The current interval in nanoseconds.
    pub(in crate::timer) interval: Option<NonZeroU64>,
    pub(in crate::timer) random: Option<Draws>,
    /// The choice of a timer with slack: the time from the start of its window to the deadline.
    #[cfg_attr(feature = "serialize", serde(default))]
    pub(in crate::timer) shift: Option<u64>,
}

/// The wait for the next deadline, in nanoseconds on a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct Wait {
    pub(in crate::timer) clock: ClockId,
    /// The time that the clock shows.
    now: u64,
    due: Due,
    /// The length of the whole wait.
    pub(in crate::timer) length: u64,
}

/// The time of a deadline, relative to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
enum Due {
    In(u64),
    /// The deadline has passed, but the timer was paused or its clock stopped.
    Since(u64),
    Never,
}

/// The random intervals of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct Draws {
    /// Whether the next interval is drawn. A changed interval is fixed.
    pub(in crate::timer) is_on: bool,
    pub(in crate::timer) intervals: RandomInterval,
}

/// The place of a saved timer among the others that are inserted with it. The timers that were
/// armed come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::timer) enum Order {
    Armed(u64),
    Added(u64),
}

impl TimerState {
    pub(in crate::timer) fn order(&self) -> Order {
        match *self {
            Self::Armed(Progress { sequence, .. }) => Order::Armed(sequence),
            Self::Added { nth, .. } => Order::Added(nth),
            Self::Finished => Order::Armed(0),
        }
    }

    /// Returns the wait for the next deadline, if its clock was known.
    pub(in crate::timer) fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Armed(progress) => Some(&progress.wait),
            Self::Added { wait, .. } => wait.as_ref(),
            Self::Finished => None,
        }
    }

    /// Returns the clock on which the timer runs, if it was known.
    pub(crate) fn clock(&self) -> Option<ClockId> {
        Some(self.wait()?.clock)
    }

    /// Lets time pass on the clock of the wait, if there is one.
    #[cfg(feature = "serialize")]
    pub(in crate::timer) fn pass(&mut self, passed: impl Fn(ClockId) -> u64) {
        match self {
            Self::Armed(Progress { wait, .. })
            | Self::Added {
                wait: Some(wait), ..
            } => wait.pass(passed(wait.clock)),
            Self::Added { wait: None, .. } | Self::Finished => {}
        }
    }

    pub(in crate::timer) fn progress(&self) -> Option<&Progress> {
        match self {
            Self::Armed(progress) => Some(progress),
            Self::Added { .. } | Self::Finished => None,
        }
    }
}

impl Wait {
    pub(in crate::timer) fn new(
        clock: ClockId,
        reading: Reading,
        deadline: u64,
        length: u64,
    ) -> Self {
        let due = match deadline.checked_sub(reading.now) {
            _ if deadline == NEVER => Due::Never,
            Some(remaining) => Due::In(remaining),
            None => Due::Since(reading.now - deadline),
        };
        Self {
            clock,
            now: reading.shown_nanos(reading.now),
            due,
            length,
        }
    }

    #[cfg(feature = "serialize")]
    fn pass(&mut self, nanos: u64) {
        self.due = match self.due {
            Due::In(remaining) => match remaining.checked_sub(nanos) {
                Some(remaining) => Due::In(remaining),
                None => Due::Since(nanos - remaining),
            },
            Due::Since(lateness) => Due::Since(lateness.saturating_add(nanos)),
            Due::Never => Due::Never,
        };
    }

    /// Returns the deadline on a clock that shows the same time as the saved one now.
    pub(in crate::timer) fn deadline(&self, reading: Reading) -> u64 {
        match self.due {
            Due::In(remaining) => reading.now.saturating_add(remaining),
            Due::Since(lateness) => reading.now.saturating_sub(lateness),
            Due::Never => NEVER,
        }
    }

    /// Returns the deadline on a clock that has moved on since it was loaded.
    pub(in crate::timer) fn deadline_on_loaded(&self, reading: Reading) -> u64 {
        let due = match self.due {
            Due::In(remaining) => i128::from(remaining),
            Due::Since(lateness) => -i128::from(lateness),
            Due::Never => return NEVER,
        };
        let deadline = i128::from(self.now) + due - reading.offset;
        u64::try_from(deadline.max(0)).unwrap_or(NEVER)
    }

    /// Returns the time until the deadline, or zero if it has passed.
    pub(in crate::timer) fn remaining(&self) -> Duration {
        Duration::from_nanos(match self.due {
            Due::In(remaining) => remaining,
            Due::Since(_) => 0,
            Due::Never => NEVER,
        })
    }
}

impl MapEntities for TimerState {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        match self {
            Self::Armed(Progress { wait, .. })
            | Self::Added {
                wait: Some(wait), ..
            } => wait.clock.map_entities(mapper),
            Self::Added { wait: None, .. } | Self::Finished => {}
        }
    }
}

/// The state with which a component was loaded. It counts for the first insertion.
#[derive(Debug)]
pub(in crate::timer) struct Loaded {
    state: TimerState,
    is_used: AtomicBool,
}

impl Loaded {
    pub(in crate::timer) fn new(state: TimerState) -> Self {
        Self {
            state,
            is_used: AtomicBool::new(false),
        }
    }

    pub(in crate::timer) fn state(&self) -> Option<&TimerState> {
        let is_used = self.is_used.load(Ordering::Relaxed);
        (!is_used).then_some(&self.state)
    }

    pub(in crate::timer) fn state_mut(&mut self) -> &mut TimerState {
        &mut self.state
    }

    /// Notes that the timer has been armed or cancelled. If it is inserted again, it starts over.
    pub(in crate::timer) fn use_up(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }
}

/// Clones the state, unless it has been used.
impl Clone for Loaded {
    fn clone(&self) -> Self {
        Self {
            state: self.state,
            is_used: AtomicBool::new(self.state().is_none()),
        }
    }
}
