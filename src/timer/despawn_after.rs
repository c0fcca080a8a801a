//! The lifetime of an entity.

use core::{fmt, time::Duration};

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{IntoDuration, Timer, arm, cancel};

/// Despawns the entity after a delay.
///
/// The delay counts on the entity's clock, as the delay of a [`Timer`](crate::Timer) without a clock
/// does, and stops while the entity or one of its owners is [paused](crate::Paused). The entity can also
/// carry a [`Timer`](crate::Timer). Cancelling the entity's timers does not affect its lifetime. Insert
/// the component again to start over, or remove it to let the entity live. If the clock is gone, the
/// component is removed.
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
    reflect(opaque, from_reflect = false),
    reflect(
        Component,
        Clone(Self::detached),
        Debug,
        Default,
        FromReflect,
        PartialEq
    )
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Deserialize),
    serde(from = "super::saving::LifetimeData")
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

    /// Returns the delay from insertion to the despawn, at most `u64::MAX` nanoseconds.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.0.delay()
    }

    #[cfg(feature = "bevy_reflect")]
    fn detached(&self) -> Self {
        Self(self.0.detached())
    }
}

/// A lifetime that never ends.
impl Default for DespawnAfter {
    fn default() -> Self {
        Self::new(Duration::MAX)
    }
}

#[cfg(feature = "bevy_reflect")]
impl FromReflect for DespawnAfter {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        reflect.try_downcast_ref().map(Self::detached)
    }
}

impl fmt::Debug for DespawnAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DespawnAfter").field(&self.delay()).finish()
    }
}
