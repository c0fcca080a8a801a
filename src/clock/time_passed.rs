//! The time that has passed on each of the built-in clocks.

use core::time::Duration;

use super::{
    reading::saturating_nanos,
    row::{BevyTime, FRAME, Source},
};

/// The time that has passed on each of the built-in clocks since an entity was exported or copied.
///
/// A `Duration` stands for the same time on all of them but the clock of frames. That is right for a
/// move, because both worlds run meanwhile. An entity that comes back from a file has missed what each
/// clock of its world has shown since then.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::moving::TimePassed;
///
/// let second = Duration::from_secs(1);
/// let paused = TimePassed { real: second, ..TimePassed::default() };
/// assert_ne!(paused, TimePassed::from(second));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimePassed {
    /// On [`ClockId::Real`](crate::ClockId::Real).
    pub real: Duration,
    /// On [`ClockId::Virtual`](crate::ClockId::Virtual), the game clock.
    pub game: Duration,
    /// On [`ClockId::Fixed`](crate::ClockId::Fixed).
    pub fixed: Duration,
    /// On [`ClockId::Frames`](crate::ClockId::Frames).
    pub frames: u32,
}

impl From<Duration> for TimePassed {
    fn from(passed: Duration) -> Self {
        Self {
            real: passed,
            game: passed,
            fixed: passed,
            frames: 0,
        }
    }
}

impl TimePassed {
    /// Returns the nanoseconds that a source of time has advanced.
    pub(super) fn on(&self, source: Source) -> u64 {
        match source {
            Source::Bevy(BevyTime::Real) => saturating_nanos(self.real),
            Source::Bevy(BevyTime::Virtual) => saturating_nanos(self.game),
            Source::Bevy(BevyTime::Fixed) => saturating_nanos(self.fixed),
            Source::Frames => u64::from(self.frames) * FRAME,
            Source::Clock(..) | Source::Missing => 0,
        }
    }
}
