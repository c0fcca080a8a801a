//! The lifetime of an entity.

use alloc::boxed::Box;
use core::{fmt, time::Duration};

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{
    FromReflect, PartialReflect, Reflect, ReflectFromReflect, std_traits::ReflectDefault,
};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{
    Arms, IntoDuration, Kind, arm,
    place::{Place, TimerSeat},
    queued::ArmedTimer,
    random::Numbers,
    saving::{Loaded, TimerState},
};
use crate::clock::{ClockId, Reading, saturating_nanos};

/// Despawns the entity after a delay.
///
/// The delay counts on the entity's clock, as the delay of a [`Timer`](crate::Timer) without a clock
/// does, and stops while the entity or its owner is [paused](crate::Paused). The entity can also
/// carry a [`Timer`](crate::Timer). Its lifetime continues when all its timers are cancelled. Insert
/// the component again to start over, or remove it to let the entity live. If the clock is gone, the
/// component is removed.
///
/// The end of a lifetime keeps its place among the firings of the clock. No event is triggered, and
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
#[derive(Component)]
#[component(immutable, map_entities, on_insert = arm::on_insert::<Self>, on_discard = arm::on_discard_silently::<Self>)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque, from_reflect = false),
    reflect(
        Component,
        Clone(Arms::detached),
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
pub struct DespawnAfter {
    delay: u64,
    loaded: Option<Box<Loaded>>,
    seat: TimerSeat,
}

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
        Self {
            delay: saturating_nanos(delay.into_duration()),
            loaded: None,
            seat: TimerSeat::default(),
        }
    }

    /// Returns the delay from insertion to the despawn, at most `u64::MAX` nanoseconds.
    #[must_use]
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay)
    }
}

/// A lifetime that never ends.
impl Default for DespawnAfter {
    fn default() -> Self {
        Self::new(Duration::MAX)
    }
}

impl Arms for DespawnAfter {
    const KIND: Kind = Kind::Lifetime;
    const NAME: &'static str = "a `DespawnAfter`";

    fn seat(&self) -> &TimerSeat {
        &self.seat
    }

    fn is_plain(&self) -> bool {
        self.loaded.is_none()
    }

    fn chosen_clock(&self) -> Option<ClockId> {
        self.loaded()?.clock()
    }

    fn loaded(&self) -> Option<&TimerState> {
        self.loaded.as_deref()?.state()
    }

    fn load(&mut self, state: TimerState) {
        self.loaded = Some(Box::new(Loaded::new(state)));
    }

    fn use_loaded(&self) {
        if let Some(loaded) = &self.loaded {
            loaded.use_up();
        }
    }

    fn delay(&self) -> u64 {
        self.delay
    }

    fn timer(&self, entity: Entity) -> ArmedTimer {
        ArmedTimer::lifetime(entity)
    }

    fn copy(&self) -> Self {
        Self {
            delay: self.delay,
            loaded: self.loaded.clone(),
            seat: self.seat.copy(),
        }
    }

    fn start(&self, reading: Reading, _: &mut Numbers) -> (u64, u64) {
        (reading.now.saturating_add(self.delay), self.delay)
    }
}

impl PartialEq for DespawnAfter {
    fn eq(&self, other: &Self) -> bool {
        self.delay == other.delay
    }
}

impl Eq for DespawnAfter {}

impl From<Duration> for DespawnAfter {
    fn from(delay: Duration) -> Self {
        Self::new(delay)
    }
}

impl From<DespawnAfter> for Duration {
    fn from(lifetime: DespawnAfter) -> Self {
        lifetime.delay()
    }
}

impl MapEntities for DespawnAfter {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        if let Some(loaded) = &mut self.loaded {
            loaded.state_mut().map_entities(mapper);
        }
    }
}

/// Clones the delay. The clone starts over when it is inserted, unless it was loaded and has not been
/// inserted yet.
impl Clone for DespawnAfter {
    fn clone(&self) -> Self {
        let is_inserted = !matches!(self.seat.place(), Place::Nowhere);
        Self {
            delay: self.delay,
            loaded: self.loaded.clone().filter(|_| !is_inserted),
            seat: TimerSeat::default(),
        }
    }
}

#[cfg(feature = "bevy_reflect")]
impl FromReflect for DespawnAfter {
    fn from_reflect(reflect: &dyn PartialReflect) -> Option<Self> {
        reflect.try_downcast_ref().map(Arms::saved_or_clone)
    }
}

impl fmt::Debug for DespawnAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DespawnAfter").field(&self.delay()).finish()
    }
}
