//! Something that can be used again after a while.

use core::{fmt, num::NonZeroU32, time::Duration};

use bevy_ecs::component::Component;
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use super::Timer;
use crate::clock::saturating_nanos;

/// Something that can be used again after a while: a spell, a weapon, a dash with two charges.
///
/// It is a plain value that remembers a time. Nothing ticks it, and it costs nothing while nobody
/// asks: the questions take the time of a clock of your choice, always the same, such as
/// [`Clock::now`](crate::Clock::now) of one that [`Clocks`](crate::Clocks) finds. (`Time::elapsed`
/// will do as long as you neither shift, pause nor fast-forward the clock of the game's timers.) It
/// is ready at the start. With
/// [charges](Self::with_charges), one comes back after each `duration`, one after the other.
///
/// To hear when it is ready again, arm [`ready_timer`](Self::ready_timer); for each charge, a timer
/// [at the next one](Self::next_charge_at).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_due::Cooldown;
/// # fn secs(secs: u64) -> Duration { Duration::from_secs(secs) }
///
/// let mut dash = Cooldown::secs(5.0).with_charges(2);
/// assert!(dash.try_use(secs(0)).is_ok());
/// assert!(dash.try_use(secs(1)).is_ok());
/// let not_ready = dash.try_use(secs(2)).unwrap_err();
/// assert_eq!(not_ready.remaining, secs(3));
/// assert_eq!(dash.charges(secs(5)), 1);
/// assert_eq!(dash.charges(secs(10)), 2);
/// ```
///
/// A throttle is nothing else: do something at most once in a while.
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
///         if footsteps.0.try_use(time.elapsed()).is_ok() {
///             // Play a sound.
///         }
///     }
/// }
/// # bevy_ecs::system::assert_is_system(step);
/// ```
///
/// And a debounce is a timer under a [key](crate::Keyed): do something when nothing has happened
/// for a while.
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// fn typed(search_box: Entity, mut commands: Commands) {
///     commands
///         .entity(search_box)
///         .set_timer("search", Timer::after_secs(0.3))
///         .observe(|_: On<TimerFired>| { /* Search now. */ });
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
    /// When all charges are there.
    full_at: Duration,
}

/// It can't be used yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReady {
    /// How long until it can.
    pub remaining: Duration,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not ready for another {:?}", self.remaining)
    }
}

impl core::error::Error for NotReady {}

impl Cooldown {
    /// Creates a cooldown that is ready, and that takes `duration` after each use, at most
    /// `u64::MAX` nanoseconds. One of zero is always ready.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self {
            duration: Duration::from_nanos(saturating_nanos(duration)),
            max_charges: NonZeroU32::MIN,
            full_at: Duration::ZERO,
        }
    }

    /// Creates a cooldown that is ready, and that takes a number of seconds after each use.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number.
    #[must_use]
    #[track_caller]
    pub fn secs(secs: f64) -> Self {
        Self::new(Timer::after_secs(secs).delay())
    }

    /// Lets it be used so many times in a row. All charges are there at the start.
    ///
    /// # Panics
    ///
    /// Panics if `charges` is zero.
    #[must_use]
    #[track_caller]
    pub fn with_charges(mut self, charges: u32) -> Self {
        match NonZeroU32::new(charges) {
            Some(charges) => self.max_charges = charges,
            None => panic!("a cooldown needs a charge to use, got 0"),
        }
        self
    }

    /// Returns how long a charge takes to come back.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the most charges that it has.
    #[must_use]
    pub fn max_charges(&self) -> u32 {
        self.max_charges.get()
    }

    /// Uses it if it is ready, and takes a charge.
    ///
    /// # Errors
    ///
    /// [`NotReady`] with the remaining time if it isn't. Nothing changes then.
    pub fn try_use(&mut self, now: Duration) -> Result<(), NotReady> {
        let remaining = self.remaining(now);
        if remaining > Duration::ZERO {
            return Err(NotReady { remaining });
        }
        self.full_at = self.full_at.max(now).saturating_add(self.duration);
        Ok(())
    }

    /// Returns `true` if it can be used.
    #[must_use]
    pub fn is_ready(&self, now: Duration) -> bool {
        self.remaining(now) == Duration::ZERO
    }

    /// Returns how many times in a row it can be used.
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

    /// Returns how long until it can be used: zero if it is ready.
    #[must_use]
    pub fn remaining(&self, now: Duration) -> Duration {
        self.ready_at().saturating_sub(now)
    }

    /// Returns how far the charge that comes back next has come, from 0 to 1: for a progress bar.
    /// It is 1 when all charges are there.
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

    /// Returns when it can be used, or could be for the first time, on the clock that it was asked
    /// by.
    #[must_use]
    pub fn ready_at(&self) -> Duration {
        let others = self.duration.saturating_mul(self.max_charges.get() - 1);
        self.full_at.saturating_sub(others)
    }

    /// Returns when the next charge is back, or `None` if all of them are there. For a cooldown
    /// without charges that is when it is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::{Cooldown, Timer};
    /// let mut dash = Cooldown::secs(5.0).with_charges(2);
    /// let now = Duration::from_secs(60);
    /// dash.try_use(now)?;
    /// let charged = dash.next_charge_at(now).map(Timer::at);
    /// assert_eq!(charged, Some(Timer::at(Duration::from_secs(65))));
    /// # Ok::<(), bevy_due::NotReady>(())
    /// ```
    #[must_use]
    pub fn next_charge_at(&self, now: Duration) -> Option<Duration> {
        let missing = self.max_charges.get() - self.charges(now);
        let others = self.duration.saturating_mul(missing.checked_sub(1)?);
        Some(self.full_at.saturating_sub(others))
    }

    /// Returns a timer that fires when it is ready, at once if it is. Put it on the clock that the
    /// cooldown is asked by.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Cooldown, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn fire_cannon(
    ///     mut cannons: Query<(Entity, &mut Cooldown)>,
    ///     clocks: Clocks,
    ///     mut commands: Commands,
    /// ) -> Result {
    ///     let now = clocks.get(ClockId::Virtual)?.now();
    ///     for (cannon, mut cooldown) in &mut cannons {
    ///         if cooldown.try_use(now).is_ok() {
    ///             commands
    ///                 .entity(cannon)
    ///                 .set_timer("reloaded", cooldown.ready_timer())
    ///                 .observe(|_: On<TimerFired>| println!("Ready again"));
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

    /// Makes it ready, with all charges.
    pub fn reset(&mut self) {
        self.full_at = Duration::ZERO;
    }
}
