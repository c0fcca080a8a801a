//! The lifetime of an entity.

use core::{fmt, time::Duration};

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{IntoDuration, Timer, arm, cancel};
use crate::clock::Reading;

/// Despawns the entity after a delay.
///
/// The delay counts on the entity's clock, as the delay of a [`Timer`](crate::Timer) without a clock
/// does, and stops while the entity or one of its owners is [paused](crate::Paused). The entity can also
/// carry a [`Timer`](crate::Timer). Cancelling the entity's timers does not affect its lifetime. Insert
/// the component again to start over, or remove it to let the entity live. If the clock is gone, the
/// component is removed. If the entity is a [pause](crate::timer::Pauses) or a
/// [`SpeedModifier`](crate::clock::SpeedModifier), it despawns.
///
/// The end of a lifetime keeps its place among the firings of the clock: after all timers with the same deadline,
/// so a timer on the entity fires its last tick. No event is triggered, and
/// no message is written.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Component)]
/// struct Bullet;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default())).insert_resource(
///     TimeUpdateStrategy::ManualDuration(core::time::Duration::from_millis(250)),
/// );
/// let bullet = app.world_mut().spawn((Bullet, DespawnAfter::new(1.0))).id();
/// for _ in 0..4 {
///     app.update();
/// }
/// assert!(app.world().get_entity(bullet).is_ok());
/// app.update();
/// assert!(app.world().get_entity(bullet).is_err());
/// ```
#[doc(alias("lifetime", "ttl"))]
#[derive(Component, MapEntities, Clone, PartialEq, Eq)]
#[component(immutable, on_insert = arm::on_insert_lifetime, on_discard = cancel::on_discard_lifetime)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque, Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(
        from = "super::saving::LifetimeData",
        into = "super::saving::LifetimeData"
    )
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct DespawnAfter(#[entities] pub(crate) Timer);

impl DespawnAfter {
    /// Creates a lifetime: a [`Duration`], or a number of seconds.
    ///
    /// # Panics
    ///
    /// Panics if `delay` is a negative, infinite or invalid number. Use
    /// [`IntoDuration::try_into_duration`](crate::timer::IntoDuration::try_into_duration) for numbers that
    /// come from data.
    #[must_use]
    #[track_caller]
    pub fn new(delay: impl IntoDuration) -> Self {
        Self(Timer::after(delay))
    }

    /// Counts the delay from `time` on the clock, instead of from insertion.
    ///
    /// Use this for an effect that a handler starts. It then counts from the deadline that was just reached, not from
    /// the end of the frame in which it was handled, and is as long in a long frame as in a short one. It may be over
    /// already.
    ///
    /// `time` is what the clock of this lifetime shows, so a [deadline](crate::TimerFired::deadline) fits if that timer
    /// is on the same clock. Effects count on the [parent](crate::DuePlugin#effects) of their target's clock.
    ///
    /// [`Timer::since`](crate::Timer::since) does the same for a timer.
    ///
    /// # Panics
    ///
    /// Panics if `time` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{clock::SpeedModifier, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Monster;
    ///
    /// /// Slows the monsters. The trap is on the game clock, as are the slows: it is the parent of the monsters' clocks.
    /// fn spring(trap: On<TimerFired>, monsters: Query<Entity, With<Monster>>, mut commands: Commands) {
    ///     for monster in &monsters {
    ///         let slow = DespawnAfter::new(1.0).since(trap.deadline());
    ///         commands.spawn((SpeedModifier::new(monster, 0.5), slow));
    ///     }
    /// }
    /// # World::new().add_observer(spring);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn since(self, time: impl IntoDuration) -> Self {
        Self(self.0.since(time))
    }

    /// Returns the delay from insertion or from [`since`](Self::since) to the despawn, at most `u64::MAX` nanoseconds.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.0.delay()
    }

    /// Returns how much of the lifetime would be left now if it were inserted.
    pub(super) fn left(&self, now: Option<Reading>) -> Duration {
        let Some((since, now)) = self.0.options().since.zip(now) else {
            return self.delay();
        };
        let end = now.passed(Duration::from_nanos(since).saturating_add(self.delay()));
        Duration::from_nanos(end.saturating_sub(now.now))
    }
}

/// A [`Duration`], or a number of seconds.
impl<T: IntoDuration> From<T> for DespawnAfter {
    /// Creates a lifetime, as [`new`](Self::new) does.
    ///
    /// # Panics
    ///
    /// Panics if `delay` is a negative, infinite or invalid number.
    #[track_caller]
    fn from(delay: T) -> Self {
        Self::new(delay)
    }
}

/// A lifetime that never ends.
impl Default for DespawnAfter {
    fn default() -> Self {
        Self::new(Duration::MAX)
    }
}

impl fmt::Debug for DespawnAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delay = self.delay();
        match self.0.options().since.map(Duration::from_nanos) {
            None => write!(f, "DespawnAfter({delay:?})"),
            Some(since) => write!(f, "DespawnAfter({delay:?}, since: {since:?})"),
        }
    }
}
