//! Cooldowns, with charges.

use core::{num::NonZeroU32, time::Duration};

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

use super::{IntoDuration, Timer};

/// A cooldown of a spell, a weapon, or a dash with two charges.
///
/// A cooldown is a plain value that stores a time. Nothing ticks it, and it costs nothing until you
/// query it. Methods that depend on the current time take it as `now`:
///
/// | the cooldown runs on | pass |
/// |---|---|
/// | game time | [`clocks.now(ClockId::Virtual)?`](crate::Clocks::now) |
/// | another clock | `clocks.now(ClockId::Real)?`, or `clocks.now(arena)?` |
/// | a unit's own clock, which may be slowed | `clocks.now(unit)?` |
///
/// Always take `now` from the same clock for the same cooldown. Do not take it from Bevy's `Time`,
/// because [`ClockMut::set_now`](crate::clock::ClockMut::set_now) and a
/// [fast-forward](crate::DueWorldExt::fast_forward) do not affect it.
///
/// A new cooldown is ready, unless you make it [`empty`](Self::empty). With
/// [charges](Self::with_charges), one charge comes back after each `duration`.
///
/// [`Paused`](crate::Paused) does not stop a cooldown. To be able to stop one, use it with a
/// [`Clock`](crate::Clock) on the entity, and pause that clock. If you set a clock back to before the
/// last use, the cooldown is ready.
///
/// A `Cooldown` component that is saved and loaded, or moved to another world, keeps its remaining time.
/// It counts as running on the clock of its entity: its own [`Clock`](crate::Clock), its
/// [`OnClock`](crate::OnClock), the clock of its owner, or game time. A `Cooldown` field in your
/// own component stores absolute clock times. Save its clock with it, or it will be wrong after loading.
///
/// To react when the cooldown becomes ready, arm a [`ready_timer`](Self::ready_timer), or a timer
/// [at the next charge](Self::next_charge_at). To show a `Cooldown` component to an inspector, add a
/// [`TimerStatus`](crate::timer::TimerStatus).
///
/// # Examples
///
/// A cooldown on game time, which no [`SpeedModifier`](crate::clock::SpeedModifier) of the unit slows. For a
/// unit with its own clock, query its `Entity` too, and take `now` from that clock in the loop.
///
/// ```
/// use bevy_due::{Clocks, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Dash(Cooldown);
///
/// fn learn_to_dash(mut commands: Commands) {
///     commands.spawn(Dash(Cooldown::new(5.0).with_charges(2)));
/// }
///
/// fn dash(mut dashes: Query<&mut Dash>, clocks: Clocks) -> Result {
///     let now = clocks.now(ClockId::Virtual)?;
///     for mut dash in &mut dashes {
///         if dash.0.try_use(now) {
///             // Move.
///         }
///     }
///     Ok(())
/// }
/// # bevy_ecs::system::assert_is_system(learn_to_dash);
/// # bevy_ecs::schedule::Schedule::default().add_systems(dash);
/// ```
///
/// The charges come back one after the other:
///
/// ```
/// use core::time::Duration;
/// use bevy_due::Cooldown;
///
/// let mut now = Duration::ZERO;
/// let mut dash = Cooldown::new(5.0).with_charges(2);
/// assert!(dash.try_use(now));
/// now += Duration::from_secs(1);
/// assert!(dash.try_use(now));
/// assert!(!dash.try_use(now), "both charges are used");
/// assert_eq!(dash.remaining(now), Duration::from_secs(4));
/// now += Duration::from_secs(4);
/// assert_eq!(dash.charges(now), 1);
/// now += Duration::from_secs(5);
/// assert_eq!(dash.charges(now), 2);
/// ```
///
/// A throttle is a cooldown too: it does something at most once per duration.
///
/// ```
/// use bevy_due::{ClockId, Clocks, Cooldown};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Footsteps(Cooldown);
///
/// fn step(mut walkers: Query<&mut Footsteps>, clocks: Clocks) -> Result {
///     let now = clocks.now(ClockId::Virtual)?;
///     for mut footsteps in &mut walkers {
///         if footsteps.0.try_use(now) {
///             // Play a sound.
///         }
///     }
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(step);
/// ```
///
/// A debounce is a [keyed](crate::timer::Keyed) timer: it does something once nothing has happened for a
/// while.
///
/// ```
/// use bevy_due::{Timer, prelude::*, timer::Keyed};
/// use bevy_ecs::prelude::*;
///
/// fn typed(search_box: Entity, mut commands: Commands) {
///     let search = (OwnedBy(search_box), Keyed::new("search"), Timer::after(0.3));
///     commands.spawn(search).observe(|_: On<TimerFired>| { /* Search now. */ });
/// }
/// # let _ = typed;
/// ```
#[doc(alias("throttle", "charges", "debounce"))]
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Cooldown {
    /// At most [`LONGEST`], unless reflection has set it: read it through `duration()`.
    #[cfg_attr(
        feature = "serialize",
        serde(deserialize_with = "deserialize_duration")
    )]
    duration: Duration,
    max_charges: NonZeroU32,
    /// The time at which all charges are back.
    full_at: Duration,
    /// The time of the last use. Before it, the cooldown is ready.
    #[cfg_attr(feature = "serialize", serde(default))]
    used_at: Duration,
}

impl Cooldown {
    /// Creates a ready cooldown that takes `duration` after each use.
    ///
    /// The duration is a [`Duration`], or a number of seconds. It is at most `u64::MAX` nanoseconds. A
    /// cooldown of zero is always ready.
    ///
    /// # Panics
    ///
    /// Panics if `duration` is a negative, infinite or invalid number.
    #[must_use]
    #[track_caller]
    pub fn new(duration: impl IntoDuration) -> Self {
        Self {
            duration: capped(duration.into_duration()),
            max_charges: NonZeroU32::MIN,
            full_at: Duration::ZERO,
            used_at: Duration::ZERO,
        }
    }

    /// Sets the number of charges, one by default.
    ///
    /// Each use takes a charge. A new cooldown has all of them, and an [empty](Self::empty) one has none.
    ///
    /// # Panics
    ///
    /// Panics if `charges` is zero.
    #[must_use]
    #[track_caller]
    pub fn with_charges(mut self, charges: u32) -> Self {
        let is_empty = self.missing(self.used_at) == self.full_duration();
        match NonZeroU32::new(charges) {
            Some(charges) => self.max_charges = charges,
            None => panic!("a cooldown needs at least one charge, got 0"),
        }
        match is_empty {
            true => self.empty(self.used_at),
            false => self,
        }
    }

    /// Takes all charges, so that the cooldown starts over from now.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Clocks, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// /// The cannon is loaded after five seconds.
    /// fn build_cannon(mut commands: Commands, clocks: Clocks) -> Result {
    ///     let now = clocks.now(ClockId::Virtual)?;
    ///     commands.spawn(Cooldown::new(5.0).empty(now));
    ///     Ok(())
    /// }
    /// # bevy_ecs::schedule::Schedule::default().add_systems(build_cannon);
    /// ```
    #[doc(alias("not_ready", "start"))]
    #[must_use]
    pub fn empty(mut self, now: Duration) -> Self {
        self.start(now, self.full_duration());
        self
    }

    /// Returns the time that a charge takes to come back.
    #[must_use]
    pub fn duration(&self) -> Duration {
        capped(self.duration)
    }

    /// Changes the duration, for an upgrade or for haste.
    ///
    /// The charges and the [progress](Self::fraction) of the next charge stay the same: a cooldown
    /// that is half over is still half over. The duration is at most `u64::MAX` nanoseconds.
    ///
    /// # Panics
    ///
    /// Panics if `duration` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_due::Cooldown;
    ///
    /// let mut spell = Cooldown::new(10.0);
    /// assert!(spell.try_use(Duration::ZERO));
    /// let now = Duration::from_secs(5);
    /// spell.set_duration(4.0, now);
    /// assert_eq!(spell.remaining(now), Duration::from_secs(2));
    /// assert_eq!(spell.fraction(now), 0.5);
    /// ```
    #[doc(alias("haste", "upgrade"))]
    #[track_caller]
    pub fn set_duration(&mut self, duration: impl IntoDuration, now: Duration) {
        let duration = duration.into_duration();
        if now < self.used_at {
            self.reset();
        }
        let (before, missing) = (self.duration(), self.missing(now).as_nanos());
        self.duration = capped(duration);
        if missing > 0 {
            // Rounded up, so that no charge comes back early. The product of two `u64`s and a
            // `u32` may exceed a `u128`, so whole charges are scaled apart from the rest.
            let (whole, rest) = (missing / before.as_nanos(), missing % before.as_nanos());
            let after = self.duration().as_nanos();
            let rest = rest.saturating_mul(after).div_ceil(before.as_nanos());
            let missing = whole.saturating_mul(after).saturating_add(rest);
            let missing = Duration::from_nanos_u128(missing.min(Duration::MAX.as_nanos()));
            self.start(now, missing);
        }
    }

    /// Returns the number of charges of a full cooldown.
    #[must_use]
    pub fn max_charges(&self) -> u32 {
        self.max_charges.get()
    }

    /// Uses a charge, or returns `false` if there is none.
    #[must_use]
    pub fn try_use(&mut self, now: Duration) -> bool {
        let is_ready = self.is_ready(now);
        if is_ready {
            self.start(now, self.missing(now).saturating_add(self.duration()));
        }
        is_ready
    }

    /// Returns `true` if there is a charge to use.
    #[must_use]
    pub fn is_ready(&self, now: Duration) -> bool {
        self.remaining(now).is_zero()
    }

    /// Returns the number of charges that are available.
    #[must_use]
    pub fn charges(&self, now: Duration) -> u32 {
        let missing = self.missing(now).as_nanos();
        // Only a cooldown of zero length has a duration of zero, and it never misses anything.
        let missing = missing.div_ceil(self.duration().as_nanos().max(1));
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        self.max_charges.get().saturating_sub(missing)
    }

    /// Returns the time until there is a charge to use, or zero if there is one.
    #[must_use]
    pub fn remaining(&self, now: Duration) -> Duration {
        self.missing(now).saturating_sub(self.other_charges())
    }

    /// Returns the progress of the next charge from 0 to 1, for a progress bar.
    ///
    /// The progress is 1 when all charges are back.
    #[must_use]
    pub fn fraction(&self, now: Duration) -> f32 {
        let next = self.next_charge_in(now).as_nanos();
        if next == 0 {
            return 1.0;
        }
        1.0 - (next as f64 / self.duration().as_nanos() as f64) as f32
    }

    /// Returns the time at which the cooldown became or will become ready, on the clock you use it
    /// with. If that clock is set back later, the time stays the same.
    #[must_use]
    pub fn ready_at(&self) -> Duration {
        self.full_at.saturating_sub(self.other_charges())
    }

    /// Returns the time at which the next charge is back, or `None` if all are back.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::{Cooldown, Timer};
    /// let mut dash = Cooldown::new(5.0).with_charges(2);
    /// let now = Duration::from_secs(60);
    /// assert!(dash.try_use(now));
    /// let charged = dash.next_charge_at(now).map(Timer::at);
    /// assert_eq!(charged, Some(Timer::at(Duration::from_secs(65))));
    /// ```
    #[must_use]
    pub fn next_charge_at(&self, now: Duration) -> Option<Duration> {
        let next = self.next_charge_in(now);
        (!next.is_zero()).then(|| now.saturating_add(next))
    }

    /// Returns a timer that fires when the cooldown is ready, or in the next run if it is ready
    /// now.
    ///
    /// Put the timer on the clock you use the cooldown with. If that clock may have been set back, arm
    /// a timer at [`next_charge_at`](Self::next_charge_at) instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Clocks, prelude::*, timer::Keyed};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn fire_cannon(
    ///     mut cannons: Query<(Entity, &mut Cooldown)>,
    ///     clocks: Clocks,
    ///     mut commands: Commands,
    /// ) -> Result {
    ///     let now = clocks.now(ClockId::Virtual)?;
    ///     for (cannon, mut cooldown) in &mut cannons {
    ///         if cooldown.try_use(now) {
    ///             let reloaded = (OwnedBy(cannon), Keyed::new("reloaded"), cooldown.ready_timer());
    ///             commands.spawn(reloaded).observe(|_: On<TimerFired>| println!("Ready again"));
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # bevy_ecs::schedule::Schedule::default().add_systems(fire_cannon);
    /// ```
    #[must_use]
    pub fn ready_timer(&self) -> Timer {
        Timer::at(self.ready_at())
    }

    /// Gives back up to `charges` charges, as a refund. The next charge keeps its progress.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Cooldown;
    /// let now = Duration::from_secs(60);
    /// let mut bow = Cooldown::new(8.0);
    /// assert!(bow.try_use(now));
    /// bow.add_charges(1); // A kill resets the bow.
    /// assert!(bow.is_ready(now));
    /// ```
    #[doc(alias = "refund")]
    pub fn add_charges(&mut self, charges: u32) {
        self.reduce_by(self.duration().saturating_mul(charges));
    }

    /// Shortens the time until the next charge by `by`. Any excess counts for the charge after it.
    ///
    /// # Panics
    ///
    /// Panics if `by` is a negative, infinite or invalid number.
    #[track_caller]
    pub fn reduce_by(&mut self, by: impl IntoDuration) {
        self.full_at = self.full_at.saturating_sub(by.into_duration());
    }

    /// Makes all charges available.
    pub fn reset(&mut self) {
        self.start(Duration::ZERO, Duration::ZERO);
    }

    /// Moves the cooldown from a clock that shows `there` to one that shows `here`, after `passed` on the
    /// way.
    #[cfg(feature = "serialize")]
    pub(crate) fn carry(&mut self, there: Duration, here: Duration, passed: Duration) {
        let missing = self.missing(there).saturating_sub(passed);
        self.start(here, missing);
    }

    /// Notes a use: all charges are back after `missing`.
    fn start(&mut self, now: Duration, missing: Duration) {
        self.full_at = now.saturating_add(missing);
        self.used_at = now;
    }

    /// Returns the time until the next charge is back, or zero if all are back.
    pub(super) fn next_charge_in(&self, now: Duration) -> Duration {
        let missing = self.missing(now).as_nanos();
        let Some(rest) = missing.checked_sub(1) else {
            return Duration::ZERO;
        };
        Duration::from_nanos_u128(rest % self.duration().as_nanos() + 1)
    }

    /// Returns the time until all charges are back.
    fn missing(&self, now: Duration) -> Duration {
        if now < self.used_at {
            return Duration::ZERO;
        }
        let missing = self.full_at.saturating_sub(now);
        // There may be fewer charges than at the last use.
        missing.min(self.full_duration())
    }

    fn full_duration(&self) -> Duration {
        self.duration().saturating_mul(self.max_charges.get())
    }

    /// Returns the time that all charges but one take to come back.
    fn other_charges(&self) -> Duration {
        self.duration().saturating_mul(self.max_charges.get() - 1)
    }
}

/// A cooldown of zero, which is always ready.
impl Default for Cooldown {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

/// The longest duration of a cooldown.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

fn capped(duration: Duration) -> Duration {
    duration.min(LONGEST)
}

#[cfg(feature = "serialize")]
fn deserialize_duration<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let duration: Duration = serde::Deserialize::deserialize(deserializer)?;
    if duration > LONGEST {
        let error = format_args!("a cooldown takes at most {LONGEST:?}, got {duration:?}");
        return Err(serde::de::Error::custom(error));
    }
    Ok(duration)
}
