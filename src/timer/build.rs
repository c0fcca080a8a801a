//! The constructors and the builder methods of [`Timer`], and the errors for invalid numbers.

use core::{
    num::{NonZeroU32, NonZeroU64},
    ops::RangeInclusive,
    time::Duration,
};

#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
use thiserror::Error;

use super::{Extra, IntoDuration, InvalidSeconds, Options, Timer, WhenDone, place::TimerSeat};
use crate::{
    clock::{ClockId, FRAME, saturating_nanos},
    seconds::or_panic,
};

impl Timer {
    /// Creates a one-shot timer that fires after `delay`: a [`Duration`], or a number of seconds.
    ///
    /// A delay of zero fires in the next run.
    ///
    /// # Panics
    ///
    /// Panics if `delay` is a negative, infinite or invalid number. Use
    /// [`try_after`](Self::try_after) for numbers that come from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let fuse = Timer::after(1.5);
    /// assert_eq!(fuse, Timer::after(Duration::from_millis(1500)));
    /// assert_eq!(fuse.interval(), None);
    /// assert_eq!(fuse.max_firings(), Some(1));
    /// ```
    #[doc(alias("once", "set_timeout", "one_shot"))]
    #[must_use]
    #[track_caller]
    #[inline]
    pub fn after(delay: impl IntoDuration) -> Self {
        let delay = saturating_nanos(delay.into_duration());
        Self::new(delay, None, NonZeroU32::new(1))
    }

    /// Creates a one-shot timer, or returns an error if the number of seconds is invalid.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidTimer::Seconds`] if `delay` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Timer, timer::InvalidTimer};
    /// assert!(Timer::try_after(0.0).is_ok());
    /// assert_eq!(Timer::try_after(-1.5), Err(InvalidTimer::Seconds(-1.5)));
    /// ```
    pub fn try_after(delay: impl IntoDuration) -> Result<Self, InvalidTimer> {
        Ok(Self::after(delay.try_into_duration()?))
    }

    /// Creates a periodic timer that fires every `interval`, forever.
    ///
    /// The first firing comes after one interval. The k-th deadline after the first is exactly
    /// first + k × interval, in integers. Late firings cause no drift, except with
    /// [`MissedTicks::Delay`].
    ///
    /// # Panics
    ///
    /// Panics if `interval` is zero, or a negative, infinite or invalid number. Use
    /// [`try_every`](Self::try_every) for an interval that comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let summon = Timer::every(8);
    /// assert_eq!(summon.delay(), Duration::from_secs(8));
    /// assert_eq!(summon.interval(), Some(Duration::from_secs(8)));
    /// assert_eq!(summon.max_firings(), None);
    /// ```
    #[doc(alias("repeating", "periodic", "set_interval"))]
    #[must_use]
    #[track_caller]
    pub fn every(interval: impl IntoDuration) -> Self {
        or_panic(Self::try_every(interval))
    }

    /// Creates a periodic timer, or returns an error if the interval is invalid.
    ///
    /// # Errors
    ///
    /// - Returns [`InvalidTimer::ZeroInterval`] if `interval` is zero.
    /// - Returns [`InvalidTimer::Seconds`] if `interval` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Timer, timer::InvalidTimer};
    /// let error = Timer::try_every(0.0).unwrap_err();
    /// assert_eq!(error, InvalidTimer::ZeroInterval);
    /// assert_eq!(error.to_string(), "an interval must be longer than zero, got 0 s");
    /// ```
    pub fn try_every(interval: impl IntoDuration) -> Result<Self, InvalidTimer> {
        let interval = saturating_nanos(interval.try_into_duration()?);
        let interval = NonZeroU64::new(interval).ok_or(InvalidTimer::ZeroInterval)?;
        Ok(Self::new(interval.get(), Some(interval), None))
    }

    /// Creates a one-shot timer that fires after a random delay in a range.
    ///
    /// The delay is drawn when the timer is armed, as with [`with_jitter`](Self::with_jitter).
    ///
    /// # Panics
    ///
    /// Panics if the range is empty, or if a limit is a negative, infinite or invalid number. Use
    /// [`try_after_between`](Self::try_after_between) for a range that comes from data.
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
        let (min, span) = min_and_span(delay)?;
        Ok(Self::after(min).with_jitter(span))
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
    /// Panics if the range is empty or starts at zero, or if a limit is a negative, infinite or invalid
    /// number. Use [`try_every_between`](Self::try_every_between) for a range that comes from data.
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
        let (min, span) = min_and_span(interval)?;
        let mut timer = Self::try_every(min)?.with_jitter(span);
        timer.options_mut().interval_span = saturating_nanos(span);
        Ok(timer)
    }

    /// Sets the delay from arming to the first deadline, overriding any earlier setting but
    /// [`slack`](Self::slack).
    ///
    /// The interval counts from that deadline.
    ///
    /// # Panics
    ///
    /// Panics if `delay` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let poison = Timer::every(1.0).first_after(0.5);
    /// assert_eq!(poison.delay(), Duration::from_millis(500));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn first_after(mut self, delay: impl IntoDuration) -> Self {
        self.delay = saturating_nanos(delay.into_duration());
        if let Some(options) = &mut self.extra.0 {
            options.jitter = 0;
            options.since = None;
        }
        self
    }

    /// Sets the first delay to zero, so that the timer first fires in the next run.
    ///
    /// A [`slack`](Self::slack) still moves the deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// let wave = Timer::every(20.0).immediately();
    /// assert_eq!(wave.delay(), Duration::ZERO);
    /// ```
    #[must_use]
    pub fn immediately(self) -> Self {
        self.first_after(Duration::ZERO)
    }

    /// Limits a periodic timer to `times` firings.
    ///
    /// Skipped deadlines do not count.
    ///
    /// # Panics
    ///
    /// Panics if `times` is zero, or if it is more than one and the timer has no interval. Use
    /// [`try_times`](Self::try_times) for a number that comes from data.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::Timer;
    /// assert_eq!(Timer::every(1.0).times(5).max_firings(), Some(5));
    /// ```
    #[doc(alias = "repeat")]
    #[must_use]
    #[track_caller]
    pub fn times(self, times: u32) -> Self {
        or_panic(self.try_times(times))
    }

    /// Limits a periodic timer to `times` firings, or returns an error if the number is invalid.
    ///
    /// # Errors
    ///
    /// - Returns [`InvalidTimer::ZeroTimes`] if `times` is zero.
    /// - Returns [`InvalidTimer::TimesWithoutInterval`] if `times` is more than one and the timer
    ///   has no interval.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Timer, timer::InvalidTimer};
    /// assert_eq!(Timer::every(1.0).try_times(0), Err(InvalidTimer::ZeroTimes));
    /// assert_eq!(
    ///     Timer::after(1.0).try_times(3),
    ///     Err(InvalidTimer::TimesWithoutInterval(3))
    /// );
    /// ```
    pub fn try_times(mut self, times: u32) -> Result<Self, InvalidTimer> {
        let times = NonZeroU32::new(times).ok_or(InvalidTimer::ZeroTimes)?;
        self.times = Some(times);
        self.validated()
    }

    /// Creates a one-shot timer that fires when its clock shows `time`.
    ///
    /// A time in the past fires in the next run.
    ///
    /// # Panics
    ///
    /// Panics if `time` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// # let now = Duration::ZERO;
    /// let midnight = Timer::at(Duration::from_secs(24 * 3600));
    /// let in_a_minute = Timer::at(now + Duration::from_secs(60));
    /// # assert_eq!(midnight, Timer::after(86_400.0).since(Duration::ZERO));
    /// # let _ = in_a_minute;
    /// ```
    #[must_use]
    #[track_caller]
    pub fn at(time: impl IntoDuration) -> Self {
        Self::after(time).since(Duration::ZERO)
    }

    /// Creates a one-shot timer that fires after a number of frames, on [`ClockId::Frames`].
    ///
    /// Frames pass even while the game is paused. A timer that is armed before this frame's run
    /// counts this frame.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{ClockId, Timer};
    /// assert_eq!(Timer::after_frames(3), Timer::after(3.0).on(ClockId::Frames));
    /// ```
    #[doc(alias = "next_frame")]
    #[must_use]
    pub fn after_frames(frames: u32) -> Self {
        let frames = Duration::from_nanos(u64::from(frames) * FRAME);
        Self::after(frames).on(ClockId::Frames)
    }

    /// Creates a periodic timer that fires every `frames` frames, forever, on [`ClockId::Frames`].
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

    /// Sets the first deadline to `time` on the clock.
    ///
    /// If the clock shows a later time when the timer is armed, the first deadline is the next one on its grid: the
    /// first that is a number of intervals after `time`. So a timer for eight o'clock every day, armed at noon,
    /// first fires tomorrow. With [random intervals](Self::every_between) there is no grid, and the timer fires
    /// in the next run.
    ///
    /// # Panics
    ///
    /// Panics if `time` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// // At noon, and then every day.
    /// let daily = Timer::every(24.0 * 3600.0).first_at(Duration::from_secs(12 * 3600));
    /// # assert_eq!(daily.delay(), Duration::from_secs(12 * 3600));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn first_at(self, time: impl IntoDuration) -> Self {
        self.first_after(time).since(Duration::ZERO)
    }

    /// Adds a random delay of up to `jitter` to the first delay.
    ///
    /// For a one-shot timer, [`after_between`](Self::after_between) is the same in one call.
    ///
    /// The random delay is drawn when the timer is armed. It is reproducible, because it depends
    /// only on [`DuePlugin::delay_seed`](crate::DuePlugin::delay_seed) and on the number of timers
    /// armed before.
    ///
    /// # Panics
    ///
    /// Panics if `jitter` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Timer;
    /// // All enemies think every second, but not all in the same frame.
    /// let think = Timer::every(1.0).immediately().with_jitter(Duration::from_secs(1));
    /// # assert_eq!(think.delay(), Duration::ZERO);
    /// ```
    #[doc(alias("random", "stagger"))]
    #[must_use]
    #[track_caller]
    pub fn with_jitter(mut self, jitter: impl IntoDuration) -> Self {
        self.options_mut().jitter = saturating_nanos(jitter.into_duration());
        self
    }

    /// Moves each deadline later by less than `slack`, to spread work over frames.
    ///
    /// A thousand AIs that think every second, with a second of slack, do not think in the same frame.
    /// Arming picks a fixed offset within the slack. Successive offsets follow the golden ratio, so any
    /// number of timers spreads evenly. The timer keeps its offset through all repeats, so its deadlines
    /// are exactly one interval apart, and do not drift.
    ///
    /// The offset is part of the deadline, so the timer still never fires early or out of order. Equal
    /// inputs give equal deadlines. A [restart](crate::timer::TimerMut::restart) picks another offset. A
    /// deadline that you [set](crate::timer::TimerMut::reschedule) is exact.
    ///
    /// Random [jitter](Self::with_jitter) can bunch timers together; slack does not.
    ///
    /// # Panics
    ///
    /// Panics if `slack` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::{TimePlugin, TimeUpdateStrategy};
    ///
    /// #[derive(Resource, Default)]
    /// struct Busiest(usize);
    ///
    /// fn think(mut fired: MessageReader<TimerFired>, mut busiest: ResMut<Busiest>) {
    ///     busiest.0 = busiest.0.max(fired.read().count());
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default()))
    ///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_secs(1) / 64))
    ///     .init_resource::<Busiest>()
    ///     .add_systems(Update, think);
    /// let think = Timer::every(1.0).slack(Duration::from_secs(1));
    /// app.world_mut().spawn_batch(vec![think; 640]);
    ///
    /// for _ in 0..300 {
    ///     app.update();
    /// }
    /// // 640 timers in 64 frames. Without slack, all of them would fire in one frame.
    /// assert!(app.world().resource::<Busiest>().0 <= 12);
    /// ```
    #[doc(alias("stagger", "spread", "load_balancing"))]
    #[must_use]
    #[track_caller]
    pub fn slack(mut self, slack: impl IntoDuration) -> Self {
        self.options_mut().slack = saturating_nanos(slack.into_duration());
        self
    }

    /// Counts the first delay from `time` on the clock, instead of from arming.
    ///
    /// Use this for chains without drift. The next timer counts from the deadline that was just
    /// reached, not from the frame in which it was handled. It may be due already.
    ///
    /// From a `time` of zero, the first delay is a time on the clock, as for [`at`](Self::at) and
    /// [`first_at`](Self::first_at).
    ///
    /// # Panics
    ///
    /// Panics if `time` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn red_then_green(fired: On<TimerFired>, mut commands: Commands) {
    ///     let green = Timer::after(30.0).since(fired.deadline());
    ///     commands.entity(fired.entity()).insert(green);
    /// }
    /// # World::new().add_observer(red_then_green);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn since(mut self, time: impl IntoDuration) -> Self {
        self.options_mut().since = Some(saturating_nanos(time.into_duration()));
        self
    }

    /// Puts the timer on a clock: a [`ClockId`], or an entity with a [`Clock`](crate::Clock).
    ///
    /// By default, a timer uses the clock of its entity. If the entity has none, the timer uses the
    /// clock of its owner (see [`OnClock`](crate::OnClock)), and otherwise [`ClockId::Virtual`]. If
    /// the clock does not exist when the timer is armed, the timer is cancelled with
    /// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone), and Bevy's error handler gets a
    /// warning.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{ClockId, Timer};
    /// let heartbeat = Timer::every(5.0).on(ClockId::Real);
    /// assert_eq!(heartbeat.clock(), Some(ClockId::Real));
    /// ```
    #[must_use]
    pub fn on(mut self, clock: impl Into<ClockId>) -> Self {
        self.options_mut().clock = Some(clock.into());
        self
    }

    /// Sets the policy for deadlines that pass during a long frame.
    ///
    /// The default is [`MissedTicks::Burst`].
    #[must_use]
    pub fn with_missed_ticks(mut self, missed_ticks: MissedTicks) -> Self {
        self.options_mut().missed_ticks = missed_ticks;
        self
    }

    /// Despawns the entity in the run after the last firing.
    ///
    /// Systems that read the message of the last firing still find the entity. This is the default
    /// for the entity of an owned timer.
    ///
    /// [`DespawnAfter`](crate::DespawnAfter) and
    /// [`TimerAction::despawn`](crate::TimerAction::despawn) despawn the entity in the same run
    /// instead.
    #[must_use]
    pub fn despawn_when_done(mut self) -> Self {
        self.options_mut().when_done = WhenDone::Despawn;
        self
    }

    /// Keeps the entity after the last firing, even the entity of an owned timer.
    ///
    /// The entity loses its `Timer`. Insert another one to start over.
    #[must_use]
    pub fn keep_when_done(mut self) -> Self {
        self.options_mut().when_done = WhenDone::Keep;
        self
    }

    pub(super) fn new(delay: u64, interval: Option<NonZeroU64>, times: Option<NonZeroU32>) -> Self {
        Self {
            delay,
            interval,
            extra: Extra(None),
            seat: TimerSeat::default(),
            times,
        }
    }

    /// Returns the timer, unless its settings contradict each other.
    pub(super) fn validated(self) -> Result<Self, InvalidTimer> {
        if self.interval.is_some() {
            return Ok(self);
        }
        if let Some(times) = self.times.filter(|times| times.get() > 1) {
            return Err(InvalidTimer::TimesWithoutInterval(times.get()));
        }
        match Duration::from_nanos(self.options().interval_span) {
            Duration::ZERO => Ok(self),
            span => Err(InvalidTimer::SpanWithoutInterval(span)),
        }
    }

    pub(super) fn options_mut(&mut self) -> &mut Options {
        self.extra.0.get_or_insert_default()
    }
}

/// A one-shot timer that never fires: its delay is the longest one.
///
/// Scenes and `#[derive(Default)]` need a default. It is armed like any other timer.
impl Default for Timer {
    fn default() -> Self {
        Self::after(Duration::MAX)
    }
}

/// The policy of a periodic timer when several deadlines have passed since the last run.
///
/// In the drawings, a timer is due every 10 units, and a long frame lasts from 20 to 55.
///
/// # Examples
///
/// ```
/// use bevy_due::{MissedTicks, Timer};
///
/// // A health bar does not need to be redrawn three times in one frame.
/// let redraw = Timer::every(0.5).with_missed_ticks(MissedTicks::Skip);
/// # assert_eq!(redraw.missed_ticks(), MissedTicks::Skip);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Clone, Debug, Default, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum MissedTicks {
    /// Fires once for every deadline, in order with the firings of other timers.
    ///
    /// After [`burst_limit`](crate::DuePlugin::burst_limit) firings in one run, the rest are
    /// skipped as in [`Skip`](Self::Skip), and the last firing [reports](crate::TimerFired::missed)
    /// them.
    ///
    /// ```text
    /// deadlines   10   20   30   40   50   60   70
    /// runs        10   20               55 60   70
    /// firings     10   20               30 60   70
    ///                                   40
    ///                                   50
    /// ```
    #[default]
    Burst,
    /// Fires once, for the earliest deadline that has passed. The next deadline is one interval
    /// from now.
    ///
    /// ```text
    /// deadlines   10   20   30 (40)(50)      65   75
    /// runs        10   20               55   65   75
    /// firings     10   20               30   65   75
    ///                                    └ missed: 2
    /// ```
    ///
    /// This keeps a minimum distance between firings, at the price of drift. Even if the lateness
    /// is small, the next deadline counts from the run in which the timer fired.
    Delay,
    /// Fires once, for the earliest deadline that has passed. The next deadline is the first future
    /// deadline on the original grid.
    ///
    /// ```text
    /// deadlines   10   20   30 (40)(50)    60   70
    /// runs        10   20               55 60   70
    /// firings     10   20               30 60   70
    ///                                    └ missed: 2
    /// ```
    Skip,
}

/// The error for an invalid number in a timer.
#[derive(Error, Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum InvalidTimer {
    /// The number of seconds is negative, infinite or not a number.
    #[error("{}", InvalidSeconds(*.0))]
    Seconds(f64),
    /// The interval is zero.
    #[error("an interval must be longer than zero, got 0 s")]
    ZeroInterval,
    /// The number of firings is zero.
    #[error("a timer must fire at least once, got 0 times")]
    ZeroTimes,
    /// The number of firings is more than one, but the timer has no interval.
    #[error(
        "a timer without an interval fires once, got {0} times: set an interval with `Timer::every`"
    )]
    TimesWithoutInterval(u32),
    /// A loaded timer has a range of intervals of this length, but no interval.
    #[error(
        "a timer without an interval fires once, got an `interval_span` of {0:?}: set `interval` to the \
         shortest interval"
    )]
    SpanWithoutInterval(Duration),
    /// The range of a random delay ends before it starts.
    #[error("a random delay needs a range from low to high, got {0:?}..={1:?}")]
    EmptyRange(Duration, Duration),
}

impl From<InvalidSeconds> for InvalidTimer {
    fn from(InvalidSeconds(seconds): InvalidSeconds) -> Self {
        Self::Seconds(seconds)
    }
}

fn min_and_span(
    range: RangeInclusive<impl IntoDuration>,
) -> Result<(Duration, Duration), InvalidTimer> {
    let (min, max) = range.into_inner();
    let (min, max) = (min.try_into_duration()?, max.try_into_duration()?);
    let span = max.checked_sub(min);
    Ok((min, span.ok_or(InvalidTimer::EmptyRange(min, max))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Duration = Duration::from_secs(12 * 3600);
    const JITTER: Duration = Duration::from_secs(2);

    #[test]
    fn a_first_delay_replaces_every_earlier_setting_of_the_first_deadline() {
        let plain = Timer::every(1.0).first_after(5.0);
        let every = || Timer::every(1.0);
        for (setting, timer) in [
            ("first_at", every().first_at(NOON)),
            ("since", every().since(NOON)),
            ("with_jitter", every().with_jitter(JITTER)),
            ("first_after", every().first_after(7.0)),
        ] {
            assert_eq!(timer.first_after(5.0), plain, "after {setting}");
        }
        let once = Timer::at(NOON).first_after(5.0);
        assert_eq!(once, Timer::after(5.0), "after at");
    }

    #[test]
    fn a_jitter_after_a_first_delay_stays() {
        let plain = Timer::after(5.0).with_jitter(JITTER);
        let timer = Timer::at(NOON).first_after(5.0).with_jitter(JITTER);
        assert_eq!(timer, plain);
        assert_ne!(timer, Timer::after(5.0));
    }
}
