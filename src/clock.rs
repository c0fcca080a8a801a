//! The clock that timers live on, and how it is read.

use core::time::Duration;

use bevy_time::{Time, Virtual};

use crate::queue::NEVER;

/// What a clock showed when it was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Nanoseconds since the clock's start. [`NEVER`] itself is not reached.
    pub(crate) now: u64,
    /// Whether the clock stood still because it is paused or its speed is zero.
    pub(crate) stopped: bool,
}

impl From<&Time<Virtual>> for Reading {
    fn from(time: &Time<Virtual>) -> Self {
        Self {
            now: saturating_nanos(time.elapsed()).min(NEVER - 1),
            stopped: time.was_paused(),
        }
    }
}

/// Counts nanoseconds up to [`NEVER`].
pub(crate) fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stops_short_of_never() {
        let mut time = Time::<Virtual>::default();
        time.advance_by(Duration::MAX);
        assert_eq!(Reading::from(&time).now, NEVER - 1);
    }
}
