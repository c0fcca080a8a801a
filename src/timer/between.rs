//! The constructors of timers with random delays.

use core::{ops::RangeInclusive, time::Duration};

use super::{InvalidTimer, Timer, build::or_panic, seconds::IntoDuration};
use crate::clock::saturating_nanos;

impl Timer {
    /// Creates a one-shot timer that fires after a random delay in a range.
    ///
    /// The delay is drawn when the timer is armed, as with [`with_jitter`](Self::with_jitter).
    ///
    /// # Panics
    ///
    /// Panics if the range is empty. Use [`try_after_between`](Self::try_after_between) for a range
    /// that comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let blink = Timer::after_between(2.0..=6.0);
    /// assert_eq!(blink, Timer::after(2.0).with_jitter(Duration::from_secs(4)));
    /// ```
    #[doc(alias = "random")]
    #[must_use]
    #[track_caller]
    pub fn after_between(delay: RangeInclusive<impl IntoDuration>) -> Self {
        or_panic(Self::try_after_between(delay))
    }

    /// Creates a one-shot timer with a random delay, or returns an error if the range is empty.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidTimer::EmptyRange`] if the range is empty, and [`InvalidTimer::Seconds`] if a limit is a
    /// negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let error = Timer::try_after_between(6..=2).unwrap_err();
    /// assert_eq!(error.to_string(), "a random delay needs a range from low to high, got 6s..=2s");
    /// ```
    pub fn try_after_between(
        delay: RangeInclusive<impl IntoDuration>,
    ) -> Result<Self, InvalidTimer> {
        let (min, max) = into_durations(delay)?;
        match max.checked_sub(min) {
            Some(span) => Ok(Self::after(min).with_jitter(span)),
            None => Err(InvalidTimer::EmptyRange(min, max)),
        }
    }

    /// Creates a periodic timer that waits for a new random interval each time, forever.
    ///
    /// The first delay is random, too, unless you set it with
    /// [`first_after`](Self::first_after). The intervals are reproducible: they depend only on
    /// [`DuePlugin::delay_seed`](crate::DuePlugin::delay_seed) and on the number of timers armed
    /// before.
    ///
    /// Each interval counts from the deadline before it, so late firings cause no drift. When
    /// deadlines are [skipped](crate::MissedTicks) after a long frame, the next interval starts
    /// now. The number of deadlines that the firing reports as
    /// [missed](crate::TimerFired::missed) is then an estimate from the average interval, at
    /// least one.
    ///
    /// # Panics
    ///
    /// Panics if the range is empty or starts at zero. Use
    /// [`try_every_between`](Self::try_every_between) for a range that comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// // A bird sings every 2 to 6 seconds.
    /// let song = Timer::every_between(2.0..=6.0);
    /// assert_eq!(song.interval(), Some(Duration::from_secs(2)));
    /// ```
    #[doc(alias = "random")]
    #[must_use]
    #[track_caller]
    pub fn every_between(interval: RangeInclusive<impl IntoDuration>) -> Self {
        or_panic(Self::try_every_between(interval))
    }

    /// Creates a periodic timer with random intervals, or returns an error if the range is invalid.
    ///
    /// # Errors
    ///
    /// - Returns [`InvalidTimer::EmptyRange`] if the range is empty.
    /// - Returns [`InvalidTimer::ZeroInterval`] if it starts at zero.
    /// - Returns [`InvalidTimer::Seconds`] if a limit is a negative, infinite or invalid number.
    pub fn try_every_between(
        interval: RangeInclusive<impl IntoDuration>,
    ) -> Result<Self, InvalidTimer> {
        let (min, max) = into_durations(interval)?;
        let span = max.checked_sub(min);
        let span = span.ok_or(InvalidTimer::EmptyRange(min, max))?;
        let mut timer = Self::try_every(min)?.with_jitter(span);
        timer.options_mut().interval_span = saturating_nanos(span);
        Ok(timer)
    }
}

fn into_durations(
    range: RangeInclusive<impl IntoDuration>,
) -> Result<(Duration, Duration), InvalidTimer> {
    let (min, max) = range.into_inner();
    Ok((min.try_into_duration()?, max.try_into_duration()?))
}
