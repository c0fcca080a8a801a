//! The [`Timer`] component and its builder.

mod armed;
mod error;
mod events;
mod hooks;
mod owner;
mod timeline;

use core::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use bevy_ecs::component::Component;
use bevy_platform::sync::atomic::{AtomicU64, Ordering};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use crate::{clock::saturating_nanos, queue::TimerKey};
pub(crate) use armed::ArmedTimer;
pub use error::InvalidTimer;
pub(crate) use events::is_observed_at_all;
pub use events::{CancelReason, TimerCancelled, TimerFired};
pub(crate) use hooks::arm;
pub use owner::{TimerOf, Timers};
pub(crate) use timeline::{Timeline, read_clock, swap_added};

/// Fires [`TimerFired`] after a delay: once, a number of times, or for ever.
///
/// Insert it to arm it, insert another to re-arm, remove it or despawn its entity to cancel.
/// It is immutable, so the queue behind it never drifts from the world. An entity has a `Timer`
/// exactly while it is armed: after the handlers of its last firing the `Timer` is removed, and
/// where it belongs to an owner's [`Timers`], its entity is despawned in the next run. A timer
/// that is cloned or moved to another entity starts anew there. A disabled entity's timer fires.
///
/// A delay counts from what Bevy's `Time<Virtual>` says when the timer is inserted, in every
/// schedule, the fixed one included. So timers obey the game's pause and relative speed: while it
/// is paused, or its speed is zero, nothing fires, not even a delay of zero. A handler that pauses
/// it takes nothing back: what is due in this run still fires.
///
/// Deadlines are absolute. If the clock is set back, armed timers wait until it gets there again;
/// re-arm them to have them count from the new time. A deadline more than 584 years after the
/// start of the clock is never reached.
///
/// For many timers on one entity see [`TimerOf`]. For something that runs in every frame a plain
/// system is simpler than a timer.
///
/// # Time complexity
///
/// In the number *n* of armed timers: inserting is *O*(1), and *O*(log *n*) in the next run;
/// removing is *O*(1), amortised. A frame in which nothing is due is *O*(1).
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
/// #[derive(Component)]
/// struct Health(u32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(100)));
///
/// // Poison: five times one damage, the first after half a second.
/// let poison = Timer::every_secs(1.0).first_after_secs(0.5).times(5);
/// let victim = app
///     .world_mut()
///     .spawn((Health(10), poison))
///     .observe(|fired: On<TimerFired>, mut health: Query<&mut Health>| {
///         if let Ok(mut health) = health.get_mut(fired.entity) {
///             health.0 -= 1;
///         }
///     })
///     .id();
///
/// for _ in 0..60 {
///     app.update();
/// }
/// assert_eq!(app.world().get::<Health>(victim).unwrap().0, 5);
/// assert!(!app.world().entity(victim).contains::<Timer>(), "it has fired its last");
/// ```
#[doc(alias("set_timeout", "set_interval", "schedule", "delay", "sleep"))]
#[derive(Component)]
#[component(immutable, on_insert = hooks::on_insert, on_discard = hooks::on_discard, on_remove = hooks::on_remove, on_despawn = hooks::on_despawn)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "TimerData", try_from = "TimerData")
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Timer {
    delay: u64,
    interval: Option<NonZeroU64>,
    times: Option<NonZeroU32>,
    /// Where the queue keeps this timer, as [`TimerKey`] bits. The hooks see an immutable
    /// component through a shared reference, hence the atomic.
    key: AtomicU64,
}

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
    /// there.
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

    /// Returns the delay from arming to the first firing, at most `u64::MAX` nanoseconds.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }

    /// Returns the time between two deadlines, at most `u64::MAX` nanoseconds, or `None` for a
    /// timer that fires once.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        self.interval
            .map(|interval| Duration::from_nanos(interval.get()))
    }

    /// Returns how often it fires in all, or `None` for ever.
    #[must_use]
    pub fn max_firings(&self) -> Option<u32> {
        self.times.map(NonZeroU32::get)
    }

    fn new(delay: u64, interval: Option<NonZeroU64>, times: Option<NonZeroU32>) -> Self {
        Self {
            delay,
            interval,
            times,
            key: AtomicU64::new(TimerKey::NONE.to_bits()),
        }
    }

    fn every_nanos(interval: u64) -> Result<Self, InvalidTimer> {
        let interval = NonZeroU64::new(interval).ok_or(InvalidTimer::ZeroInterval)?;
        Ok(Self::new(interval.get(), Some(interval), None))
    }

    pub(crate) fn key(&self) -> TimerKey {
        TimerKey::from_bits(self.key.load(Ordering::Relaxed))
    }

    fn set_key(&self, key: TimerKey) {
        self.key.store(key.to_bits(), Ordering::Relaxed);
    }
}

#[track_caller]
fn or_panic(timer: Result<Timer, InvalidTimer>) -> Timer {
    match timer {
        Ok(timer) => timer,
        Err(error) => panic!("{error}"),
    }
}

fn nanos_from_secs(secs: f64) -> Result<u64, InvalidTimer> {
    if !secs.is_finite() || secs < 0.0 {
        return Err(InvalidTimer::Seconds(secs));
    }
    // Finite and not negative: what is left to fail is a number past the end of `Duration`.
    let nanos = saturating_nanos(Duration::try_from_secs_f64(secs).unwrap_or(Duration::MAX));
    Ok(nanos.max(u64::from(secs > 0.0)))
}

/// Clones the delay, interval and number of times. The clone is armed when it is inserted.
impl Clone for Timer {
    fn clone(&self) -> Self {
        Self::new(self.delay, self.interval, self.times)
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.delay, self.interval, self.times) == (other.delay, other.interval, other.times)
    }
}

impl Eq for Timer {}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("delay", &self.delay())
            .field("interval", &self.interval())
            .field("max_firings", &self.max_firings())
            .finish()
    }
}

/// A [`Timer`] as it is written to a file.
#[cfg(feature = "serialize")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Timer", deny_unknown_fields)]
struct TimerData {
    delay: Duration,
    interval: Option<Duration>,
    times: Option<u32>,
}

#[cfg(feature = "serialize")]
impl From<Timer> for TimerData {
    fn from(timer: Timer) -> Self {
        Self {
            delay: timer.delay(),
            interval: timer.interval(),
            times: timer.max_firings(),
        }
    }
}

#[cfg(feature = "serialize")]
impl TryFrom<TimerData> for Timer {
    type Error = InvalidTimer;

    fn try_from(data: TimerData) -> Result<Self, InvalidTimer> {
        let timer = match data.interval {
            Some(interval) => Self::try_every(interval)?.first_after(data.delay),
            None => Self::after(data.delay),
        };
        match data.times {
            Some(times) => timer.try_times(times),
            None => Ok(timer),
        }
    }
}
