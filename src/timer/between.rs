//! The constructors of timers with random delays.

use core::{ops::RangeInclusive, time::Duration};

use super::{
    InvalidTimer, Timer,
    build::{nanos_from_secs, or_panic},
    seconds::Seconds,
};
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
    /// let blink = Timer::after_between(Duration::from_secs(2)..=Duration::from_secs(6));
    /// assert_eq!(blink, Timer::after_between_secs(2.0..=6.0));
    /// assert_eq!(blink, Timer::after_secs(2.0).with_jitter(Duration::from_secs(4)));
    /// ```
    #[doc(alias = "random")]
    #[must_use]
    #[track_caller]
    pub fn after_between(delay: RangeInclusive<Duration>) -> Self {
        or_panic(Self::try_after_between(delay))
    }

    /// Creates a one-shot timer that fires after a random delay in a range of seconds.
    ///
    /// The limits are rounded as in [`after_secs`](Self::after_secs).
    ///
    /// # Panics
    ///
    /// Panics if the range is empty, or if a limit is negative, infinite or not a number.
    #[must_use]
    #[track_caller]
    pub fn after_between_secs(secs: RangeInclusive<impl Seconds>) -> Self {
        or_panic(from_secs(secs).and_then(Self::try_after_between))
    }

    /// Creates a one-shot timer with a random delay, or returns an error if the range is empty.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidTimer::EmptyRange`] if the range is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let (short, long) = (Duration::from_secs(2), Duration::from_secs(6));
    /// let error = Timer::try_after_between(long..=short).unwrap_err();
    /// assert_eq!(error.to_string(), "a random delay needs a range from low to high, got 6s..=2s");
    /// ```
    pub fn try_after_between(delay: RangeInclusive<Duration>) -> Result<Self, InvalidTimer> {
        let (min, max) = delay.into_inner();
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
    /// let song = Timer::every_between(Duration::from_secs(2)..=Duration::from_secs(6));
    /// assert_eq!(song, Timer::every_between_secs(2.0..=6.0));
    /// assert_eq!(song.interval(), Some(Duration::from_secs(2)));
    /// ```
    #[doc(alias = "random")]
    #[must_use]
    #[track_caller]
    pub fn every_between(interval: RangeInclusive<Duration>) -> Self {
        or_panic(Self::try_every_between(interval))
    }

    /// Creates a periodic timer with random intervals in a range of seconds.
    ///
    /// The limits are rounded as in [`after_secs`](Self::after_secs).
    ///
    /// # Panics
    ///
    /// Panics if the range is empty or starts at zero, or if a limit is negative, infinite or not a
    /// number.
    #[must_use]
    #[track_caller]
    pub fn every_between_secs(secs: RangeInclusive<impl Seconds>) -> Self {
        or_panic(from_secs(secs).and_then(Self::try_every_between))
    }

    /// Creates a periodic timer with random intervals, or returns an error if the range is invalid.
    ///
    /// # Errors
    ///
    /// - Returns [`InvalidTimer::EmptyRange`] if the range is empty.
    /// - Returns [`InvalidTimer::ZeroInterval`] if it starts at zero.
    pub fn try_every_between(interval: RangeInclusive<Duration>) -> Result<Self, InvalidTimer> {
        let (min, max) = interval.into_inner();
        let span = max.checked_sub(min);
        let span = span.ok_or(InvalidTimer::EmptyRange(min, max))?;
        let mut timer = Self::try_every(min)?.with_jitter(span);
        timer.options_mut().interval_span = saturating_nanos(span);
        Ok(timer)
    }
}

fn from_secs(secs: RangeInclusive<impl Seconds>) -> Result<RangeInclusive<Duration>, InvalidTimer> {
    let (min, max) = secs.into_inner();
    let [min, max] = [nanos_from_secs(min)?, nanos_from_secs(max)?];
    Ok(Duration::from_nanos(min)..=Duration::from_nanos(max))
}
