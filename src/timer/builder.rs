//! How a [`Timer`] is made.

use core::{
    num::{NonZeroU32, NonZeroU64},
    ops::RangeInclusive,
    time::Duration,
};

use bevy_platform::sync::atomic::{AtomicU32, AtomicU64};

use super::{Extra, InvalidTimer, MissedTicks, Timer, Told, WhenDone, reading::FRAME};
use crate::{
    clock::{ClockId, saturating_nanos},
    queue::TimerKey,
};

impl Timer {
    /// Creates a timer that fires once, after `delay`.
    ///
    /// A delay of zero fires in the next run of [`DueSystems::Fire`](crate::DueSystems::Fire).
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let fuse = Timer::after(Duration::from_millis(1500));
    /// assert_eq!(fuse, Timer::after_secs(1.5));
    /// assert_eq!(fuse.interval(), None);
    /// assert_eq!(fuse.max_firings(), Some(1));
    /// ```
    #[doc(alias("once", "set_timeout", "one_shot"))]
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self::new(saturating_nanos(delay), None, NonZeroU32::new(1))
    }

    /// Creates a timer that fires once, after a number of seconds.
    ///
    /// Seconds are `f64` because an `f32` can't hold a tenth of a second to the nanosecond.
    /// They are rounded to the nearest nanosecond, and what is more than zero never to zero.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number. See
    /// [`try_after_secs`](Self::try_after_secs) for seconds that come from data.
    #[must_use]
    #[track_caller]
    pub fn after_secs(secs: f64) -> Self {
        or_panic(Self::try_after_secs(secs))
    }

    /// Creates a timer that fires once, after a number of seconds that may be bad.
    ///
    /// # Errors
    ///
    /// [`InvalidTimer::Seconds`] if `secs` is negative, infinite or not a number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{InvalidTimer, Timer};
    /// assert!(Timer::try_after_secs(0.0).is_ok());
    /// assert_eq!(Timer::try_after_secs(-1.5), Err(InvalidTimer::Seconds(-1.5)));
    /// ```
    pub fn try_after_secs(secs: f64) -> Result<Self, InvalidTimer> {
        Ok(Self::new(nanos_from_secs(secs)?, None, NonZeroU32::new(1)))
    }

    /// Creates a timer that fires every `interval`, for ever, the first time after one interval.
    ///
    /// Its k-th deadline is exactly first + k × interval, in integers: it does not drift,
    /// however late each firing is.
    ///
    /// # Panics
    ///
    /// Panics if `interval` is zero. See [`try_every`](Self::try_every) for an interval that
    /// comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let summon = Timer::every(Duration::from_secs(8));
    /// assert_eq!(summon.delay(), Duration::from_secs(8));
    /// assert_eq!(summon.interval(), Some(Duration::from_secs(8)));
    /// assert_eq!(summon.max_firings(), None);
    /// ```
    #[doc(alias("repeating", "periodic", "set_interval"))]
    #[must_use]
    #[track_caller]
    pub fn every(interval: Duration) -> Self {
        or_panic(Self::try_every(interval))
    }

    /// Creates a timer that fires every `interval`, which may be bad.
    ///
    /// # Errors
    ///
    /// [`InvalidTimer::ZeroInterval`] if `interval` is zero.
    pub fn try_every(interval: Duration) -> Result<Self, InvalidTimer> {
        Self::every_nanos(saturating_nanos(interval))
    }

    /// Creates a timer that fires every so many seconds, for ever, the first time after one
    /// interval.
    ///
    /// Seconds are rounded as in [`after_secs`](Self::after_secs).
    ///
    /// # Panics
    ///
    /// Panics if `secs` is zero, negative, infinite or not a number. See
    /// [`try_every_secs`](Self::try_every_secs) for seconds that come from data.
    #[must_use]
    #[track_caller]
    pub fn every_secs(secs: f64) -> Self {
        or_panic(Self::try_every_secs(secs))
    }

    /// Creates a timer that fires every so many seconds, a number that may be bad.
    ///
    /// # Errors
    ///
    /// - [`InvalidTimer::ZeroInterval`] if `secs` is zero.
    /// - [`InvalidTimer::Seconds`] if `secs` is negative, infinite or not a number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{InvalidTimer, Timer};
    /// let error = Timer::try_every_secs(0.0).unwrap_err();
    /// assert_eq!(error, InvalidTimer::ZeroInterval);
    /// assert_eq!(error.to_string(), "an interval must be longer than zero, got 0 s");
    /// ```
    pub fn try_every_secs(secs: f64) -> Result<Self, InvalidTimer> {
        Self::every_nanos(nanos_from_secs(secs)?)
    }

    /// Sets the delay from arming to the first firing, whatever it was; the interval counts from
    /// that firing's deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let poison = Timer::every_secs(1.0).first_after(Duration::from_millis(500));
    /// assert_eq!(poison.delay(), Duration::from_millis(500));
    /// ```
    #[must_use]
    pub fn first_after(mut self, delay: Duration) -> Self {
        self.reset_spread();
        self.delay = saturating_nanos(delay);
        self
    }

    /// Sets the delay from arming to the first firing, in seconds.
    ///
    /// Seconds are rounded as in [`after_secs`](Self::after_secs).
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number. See
    /// [`try_first_after_secs`](Self::try_first_after_secs) for seconds that come from data.
    #[must_use]
    #[track_caller]
    pub fn first_after_secs(self, secs: f64) -> Self {
        or_panic(self.try_first_after_secs(secs))
    }

    /// Sets the delay from arming to the first firing, in seconds that may be bad.
    ///
    /// # Errors
    ///
    /// [`InvalidTimer::Seconds`] if `secs` is negative, infinite or not a number.
    pub fn try_first_after_secs(mut self, secs: f64) -> Result<Self, InvalidTimer> {
        self.reset_spread();
        self.delay = nanos_from_secs(secs)?;
        Ok(self)
    }

    /// Fires for the first time in the next run of
    /// [`DueSystems::Fire`](crate::DueSystems::Fire): short for a first delay of zero.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let wave = Timer::every_secs(20.0).immediately();
    /// assert_eq!(wave.delay(), Duration::ZERO);
    /// ```
    #[must_use]
    pub fn immediately(self) -> Self {
        self.first_after(Duration::ZERO)
    }

    /// Limits a periodic timer to `times` firings. Firings are counted, not deadlines.
    ///
    /// # Panics
    ///
    /// Panics if `times` is zero, or more than one for a timer that has no interval. See
    /// [`try_times`](Self::try_times) for a number that comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::Timer;
    /// assert_eq!(Timer::every_secs(1.0).times(5).max_firings(), Some(5));
    /// ```
    #[doc(alias = "repeat")]
    #[must_use]
    #[track_caller]
    pub fn times(self, times: u32) -> Self {
        or_panic(self.try_times(times))
    }

    /// Limits a periodic timer to `times` firings, a number that may be bad.
    ///
    /// # Errors
    ///
    /// - [`InvalidTimer::ZeroTimes`] if `times` is zero.
    /// - [`InvalidTimer::TimesWithoutInterval`] if `times` is more than one and this timer has
    ///   no interval.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{InvalidTimer, Timer};
    /// assert_eq!(Timer::every_secs(1.0).try_times(0), Err(InvalidTimer::ZeroTimes));
    /// assert_eq!(
    ///     Timer::after_secs(1.0).try_times(3),
    ///     Err(InvalidTimer::TimesWithoutInterval(3))
    /// );
    /// ```
    pub fn try_times(mut self, times: u32) -> Result<Self, InvalidTimer> {
        let times = NonZeroU32::new(times).ok_or(InvalidTimer::ZeroTimes)?;
        if self.interval.is_none() && times.get() > 1 {
            return Err(InvalidTimer::TimesWithoutInterval(times.get()));
        }
        self.times = Some(times);
        Ok(self)
    }

    /// Creates a timer that fires once, when its clock shows `time`. If that is past, it fires in
    /// the next run.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::{Clock, Timer};
    /// # let clock = Clock::new();
    /// let midnight = Timer::at(Duration::from_secs(24 * 3600));
    /// let in_a_minute = Timer::at(clock.now() + Duration::from_secs(60));
    /// # assert_eq!(midnight, Timer::after_secs(86_400.0).since(Duration::ZERO));
    /// # let _ = in_a_minute;
    /// ```
    #[must_use]
    pub fn at(time: Duration) -> Self {
        Self::after(time).since(Duration::ZERO)
    }

    /// Creates a timer that fires once, after a random delay within `range`.
    ///
    /// The delay is drawn when the timer is armed, and is the same on every run of the same game:
    /// see [`DelaySeed`](crate::DelaySeed).
    ///
    /// # Panics
    ///
    /// Panics if `range` ends before it begins. See
    /// [`try_after_between`](Self::try_after_between) for a range that comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let blink = Timer::after_between(Duration::from_secs(2)..=Duration::from_secs(6));
    /// # assert_eq!(blink.delay(), Duration::from_secs(2));
    /// ```
    #[doc(alias("random", "jitter"))]
    #[must_use]
    #[track_caller]
    pub fn after_between(range: RangeInclusive<Duration>) -> Self {
        or_panic(Self::try_after_between(range))
    }

    /// Creates a timer that fires once, after a random delay within a range that may be bad.
    ///
    /// # Errors
    ///
    /// [`InvalidTimer::EmptyRange`] if `range` ends before it begins.
    pub fn try_after_between(range: RangeInclusive<Duration>) -> Result<Self, InvalidTimer> {
        Self::after(Duration::ZERO).try_first_after_between(range)
    }

    /// Creates a timer that fires once, in the next run of
    /// [`DueSystems::Fire`](crate::DueSystems::Fire), also while the game is paused: on
    /// [`ClockId::Frames`]. For what is armed after that run, it is that of the next frame.
    #[must_use]
    pub fn next_frame() -> Self {
        Self::after_frames(1)
    }

    /// Creates a timer that fires once, after a number of frames, on [`ClockId::Frames`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{ClockId, Timer};
    /// assert_eq!(Timer::after_frames(3), Timer::after_secs(3.0).on(ClockId::Frames));
    /// ```
    #[must_use]
    pub fn after_frames(frames: u32) -> Self {
        let frames = Duration::from_nanos(u64::from(frames) * FRAME);
        Self::after(frames).on(ClockId::Frames)
    }

    /// Creates a timer that fires every so many frames, for ever, on [`ClockId::Frames`].
    ///
    /// # Panics
    ///
    /// Panics if `frames` is zero.
    #[must_use]
    #[track_caller]
    pub fn every_frames(frames: u32) -> Self {
        let frames = Duration::from_nanos(u64::from(frames) * FRAME);
        Self::every(frames).on(ClockId::Frames)
    }

    /// Sets the first deadline: when the clock shows `time`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// // At noon, and every day from then on.
    /// let daily = Timer::every_secs(24.0 * 3600.0).first_at(Duration::from_secs(12 * 3600));
    /// ```
    #[must_use]
    pub fn first_at(self, time: Duration) -> Self {
        self.first_after(time).since(Duration::ZERO)
    }

    /// Sets a random delay, within `range`, from arming to the first firing.
    ///
    /// # Panics
    ///
    /// Panics if `range` ends before it begins.
    #[must_use]
    #[track_caller]
    pub fn first_after_between(self, range: RangeInclusive<Duration>) -> Self {
        or_panic(self.try_first_after_between(range))
    }

    /// Sets a random delay, within a range that may be bad, from arming to the first firing.
    ///
    /// # Errors
    ///
    /// [`InvalidTimer::EmptyRange`] if `range` ends before it begins.
    pub fn try_first_after_between(
        mut self,
        range: RangeInclusive<Duration>,
    ) -> Result<Self, InvalidTimer> {
        if range.is_empty() {
            let (start, end) = range.into_inner();
            return Err(InvalidTimer::EmptyRange { start, end });
        }
        self.delay = saturating_nanos(*range.start());
        self.told_mut().spread = saturating_nanos(*range.end()) - self.delay;
        Ok(self)
    }

    /// Counts the first delay from `time`, as the clock shows it, rather than from when the timer
    /// is armed.
    ///
    /// For chains without drift: the next link counts from the deadline that has just fired, not
    /// from the frame that happened to serve it.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn red_then_green(fired: On<TimerFired>, mut commands: Commands) {
    ///     let green = Timer::after_secs(30.0).since(fired.deadline);
    ///     commands.entity(fired.entity).insert(green);
    /// }
    /// # World::new().add_observer(red_then_green);
    /// ```
    #[must_use]
    pub fn since(mut self, time: Duration) -> Self {
        self.told_mut().since = Some(saturating_nanos(time));
        self
    }

    /// Puts the timer on a clock: one of [`ClockId`], or an entity with a
    /// [`Clock`](crate::Clock).
    ///
    /// Without it the timer is on the clock of its entity, then on that of its owner (see
    /// [`OnClock`](crate::OnClock)), then on [`ClockId::Virtual`]. If there is no such clock when
    /// the timer is armed, it is cancelled at once, as
    /// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone), and Bevy's error handler is
    /// told, as a warning.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{ClockId, Timer};
    /// let heartbeat = Timer::every_secs(5.0).on(ClockId::Real);
    /// assert_eq!(heartbeat.clock(), Some(ClockId::Real));
    /// ```
    #[must_use]
    pub fn on(mut self, clock: impl Into<ClockId>) -> Self {
        self.told_mut().clock = Some(clock.into());
        self
    }

    /// Sets what becomes of the deadlines that a long frame has passed; [`MissedTicks::Burst`]
    /// unless set.
    #[must_use]
    pub fn with_missed_ticks(mut self, missed_ticks: MissedTicks) -> Self {
        self.told_mut().missed_ticks = missed_ticks;
        self
    }

    /// Despawns the entity at the start of the run after the last firing, so that systems that
    /// read of that as a message still find it. That is what becomes of an owned timer's entity
    /// anyway.
    ///
    /// To despawn something in the very run, see [`DespawnAfter`](crate::DespawnAfter) and
    /// [`TimerAction::despawn`](crate::TimerAction::despawn).
    #[must_use]
    pub fn despawn_when_done(mut self) -> Self {
        self.told_mut().when_done = WhenDone::Despawn;
        self
    }

    /// Keeps the entity after the last firing, also of an owned timer: it only loses its `Timer`,
    /// and can be armed again.
    #[must_use]
    pub fn keep_when_done(mut self) -> Self {
        self.told_mut().when_done = WhenDone::Keep;
        self
    }

    pub(super) fn new(delay: u64, interval: Option<NonZeroU64>, times: Option<NonZeroU32>) -> Self {
        Self {
            delay,
            interval,
            extra: None,
            key: AtomicU64::new(TimerKey::NONE.to_bits()),
            line: AtomicU32::new(0),
            times,
        }
    }

    fn every_nanos(interval: u64) -> Result<Self, InvalidTimer> {
        let interval = NonZeroU64::new(interval).ok_or(InvalidTimer::ZeroInterval)?;
        Ok(Self::new(interval.get(), Some(interval), None))
    }

    pub(super) fn told_mut(&mut self) -> &mut Told {
        let extra: &mut Extra = self.extra.get_or_insert_default();
        &mut extra.told
    }

    /// Lets the first delay be no longer than that.
    fn reset_spread(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.told.spread = 0;
        }
    }
}

#[track_caller]
pub(super) fn or_panic<T>(timer: Result<T, InvalidTimer>) -> T {
    match timer {
        Ok(timer) => timer,
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn nanos_from_secs(secs: f64) -> Result<u64, InvalidTimer> {
    if !secs.is_finite() || secs < 0.0 {
        return Err(InvalidTimer::Seconds(secs));
    }
    // Finite and not negative: what is left to fail is a number past the end of `Duration`.
    let nanos = saturating_nanos(Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX));
    Ok(nanos.max(u64::from(secs > 0.0)))
}
