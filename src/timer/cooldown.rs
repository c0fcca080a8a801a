//! Cooldowns, with charges.

use core::{num::NonZeroU32, time::Duration};

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::Timer;
use crate::clock::saturating_nanos;

/// A cooldown of a spell, a weapon, or a dash with two charges.
///
/// A cooldown is a plain value that stores a time. Nothing ticks it, and it costs nothing until you
/// query it. Methods that depend on the current time take it as an argument. You choose the clock,
/// but always use the same one. Use [`Clock::now`] of a clock from [`Clocks`]. `Time::elapsed` also
/// works as long as you never change or fast-forward the `Clock` of
/// [`ClockId::Virtual`](crate::ClockId::Virtual).
///
/// A new cooldown is ready. With [charges](Self::with_charges), one charge comes back after each
/// `duration`.
///
/// [`Paused`](crate::Paused) does not stop a cooldown. To be able to stop one, use it with a
/// [`Clock`](crate::Clock) on the entity, and pause that clock.
///
/// To react when the cooldown becomes ready, arm a [`ready_timer`](Self::ready_timer), or a timer
/// [at the next charge](Self::next_charge_at).
///
/// [`Clock::now`]: crate::Clock::now
/// [`Clocks`]: crate::Clocks
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::Cooldown;
/// # fn secs(secs: u64) -> Duration { Duration::from_secs(secs) }
///
/// let mut dash = Cooldown::secs(5.0).with_charges(2);
/// assert!(dash.try_use(secs(0)));
/// assert!(dash.try_use(secs(1)));
/// assert!(!dash.try_use(secs(2)), "both charges are used");
/// assert_eq!(dash.remaining(secs(2)), secs(3));
/// assert_eq!(dash.charges(secs(5)), 1);
/// assert_eq!(dash.charges(secs(10)), 2);
/// ```
///
/// A throttle is a cooldown too: it does something at most once per duration.
///
/// ```
/// use bevy_due::Cooldown;
/// use bevy_ecs::prelude::*;
/// use bevy_time::Time;
///
/// #[derive(Component)]
/// struct Footsteps(Cooldown);
///
/// fn step(mut walkers: Query<&mut Footsteps>, time: Res<Time>) {
///     for mut footsteps in &mut walkers {
///         if footsteps.0.try_use(time.elapsed()) {
///             // Play a sound.
///         }
///     }
/// }
/// # bevy_ecs::system::assert_is_system(step);
/// ```
///
/// A debounce is a [keyed](crate::Keyed) timer: it does something once nothing has happened for a
/// while.
///
/// ```
/// use bevy_due::{Keyed, Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// fn typed(search_box: Entity, mut commands: Commands) {
///     let search = (OwnedBy(search_box), Keyed::new("search"), Timer::after_secs(0.3));
///     commands.spawn(search).observe(|_: On<TimerFired>| { /* Search now. */ });
/// }
/// # let _ = typed;
/// ```
#[doc(alias("throttle", "charges", "debounce"))]
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Cooldown {
    duration: Duration,
    max_charges: NonZeroU32,
    /// The time at which all charges are back.
    full_at: Duration,
}

impl Cooldown {
    /// Creates a ready cooldown that takes `duration` after each use.
    ///
    /// The duration is at most `u64::MAX` nanoseconds. A cooldown of zero is always ready.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self {
            duration: Duration::from_nanos(saturating_nanos(duration)),
            max_charges: NonZeroU32::MIN,
            full_at: Duration::ZERO,
        }
    }

    /// Creates a ready cooldown with a duration in seconds.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number.
    #[must_use]
    #[track_caller]
    pub fn secs(secs: f64) -> Self {
        Self::new(Timer::after_secs(secs).delay())
    }

    /// Sets the number of charges, one by default.
    ///
    /// Each use takes a charge. A new cooldown has all of them.
    ///
    /// # Panics
    ///
    /// Panics if `charges` is zero.
    #[must_use]
    #[track_caller]
    pub fn with_charges(mut self, charges: u32) -> Self {
        match NonZeroU32::new(charges) {
            Some(charges) => self.max_charges = charges,
            None => panic!("a cooldown needs at least one charge, got 0"),
        }
        self
    }

    /// Returns the time that a charge takes to come back.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
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
            self.full_at = self.full_at.max(now).saturating_add(self.duration);
        }
        is_ready
    }

    /// Returns `true` if there is a charge to use.
    #[must_use]
    pub fn is_ready(&self, now: Duration) -> bool {
        self.remaining(now) == Duration::ZERO
    }

    /// Returns the number of charges that are available.
    #[must_use]
    pub fn charges(&self, now: Duration) -> u32 {
        let missing = self.full_at.saturating_sub(now).as_nanos();
        let missing = match self.duration.as_nanos() {
            0 => 0,
            duration => missing.div_ceil(duration),
        };
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        self.max_charges.get().saturating_sub(missing)
    }

    /// Returns the time until there is a charge to use, or zero if there is one.
    #[must_use]
    pub fn remaining(&self, now: Duration) -> Duration {
        self.ready_at().saturating_sub(now)
    }

    /// Returns the progress of the next charge from 0 to 1, for a progress bar.
    ///
    /// The progress is 1 when all charges are back.
    #[must_use]
    pub fn fraction(&self, now: Duration) -> f32 {
        let missing = self.full_at.saturating_sub(now).as_nanos();
        match self.duration.as_nanos() {
            0 => 1.0,
            _ if missing == 0 => 1.0,
            duration => {
                let next = (missing - 1) % duration + 1;
                1.0 - (next as f64 / duration as f64) as f32
            }
        }
    }

    /// Returns the time at which the cooldown became or will become ready, on the clock you use it
    /// with.
    #[must_use]
    pub fn ready_at(&self) -> Duration {
        let others = self.duration.saturating_mul(self.max_charges.get() - 1);
        self.full_at.saturating_sub(others)
    }

    /// Returns the time at which the next charge is back, or `None` if all are back.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::{Cooldown, Timer};
    /// let mut dash = Cooldown::secs(5.0).with_charges(2);
    /// let now = Duration::from_secs(60);
    /// assert!(dash.try_use(now));
    /// let charged = dash.next_charge_at(now).map(Timer::at);
    /// assert_eq!(charged, Some(Timer::at(Duration::from_secs(65))));
    /// ```
    #[must_use]
    pub fn next_charge_at(&self, now: Duration) -> Option<Duration> {
        let missing = self.max_charges.get() - self.charges(now);
        let others = self.duration.saturating_mul(missing.checked_sub(1)?);
        Some(self.full_at.saturating_sub(others))
    }

    /// Returns a timer that fires when the cooldown is ready, or in the next run if it is ready
    /// now.
    ///
    /// Put the timer on the clock you use the cooldown with.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Clocks, Keyed, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn fire_cannon(
    ///     mut cannons: Query<(Entity, &mut Cooldown)>,
    ///     clocks: Clocks,
    ///     mut commands: Commands,
    /// ) -> Result {
    ///     let now = clocks.get(ClockId::Virtual)?.now();
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

    /// Makes all charges available.
    pub fn reset(&mut self) {
        self.full_at = Duration::ZERO;
    }
}
