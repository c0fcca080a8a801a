//! The lifetime of an entity.

use core::time::Duration;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{
    InvalidTimer, Keyed, SurvivesCancelAll, Timer, TimerAction,
    build::{nanos_from_secs, or_panic},
    events::Unannounced,
    keyed::cancel_keyed,
};
use crate::owner::OwnedBy;

/// Despawns the entity after a delay.
///
/// This sets a keyed timer, on the entity's clock, that despawns the entity. The entity can also
/// carry a [`Timer`]. Its lifetime continues when all its timers are cancelled. Insert the
/// component again to start over, or remove it to let the entity live.
///
/// The keyed timer is a separate entity. For thousands of bullets, a [`Timer`] with
/// [`TimerAction::despawn`] on the bullet itself is cheaper.
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
/// let bullet = app.world_mut().spawn((Bullet, DespawnAfter::secs(1.0))).id();
/// for _ in 0..4 {
///     app.update();
/// }
/// assert!(app.world().get_entity(bullet).is_ok());
/// app.update();
/// assert!(app.world().get_entity(bullet).is_err());
/// ```
#[doc(alias("lifetime", "ttl"))]
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = on_insert, on_remove = on_remove)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct DespawnAfter(pub Duration);

const KEY: &str = "bevy_due::DespawnAfter";

impl DespawnAfter {
    /// Creates a lifetime in seconds.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number. Use [`try_secs`](Self::try_secs) for
    /// numbers that come from data.
    #[must_use]
    #[track_caller]
    pub fn secs(secs: f64) -> Self {
        or_panic(Self::try_secs(secs))
    }

    /// Creates a lifetime in seconds, or returns an error if the number is invalid.
    ///
    /// # Errors
    ///
    /// Returns [`InvalidTimer::Seconds`] if `secs` is negative, infinite or not a number.
    pub fn try_secs(secs: f64) -> Result<Self, InvalidTimer> {
        Ok(Self(Duration::from_nanos(nanos_from_secs(secs)?)))
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(&DespawnAfter(delay)) = world.get(entity) {
        let despawn = TimerAction::despawn_owner();
        world.commands().spawn((
            (OwnedBy(entity), Keyed::new(KEY)),
            (Timer::after(delay), despawn, SurvivesCancelAll, Unannounced),
        ));
    }
}

fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    world.commands().queue(move |world: &mut World| {
        cancel_keyed(world, entity, KEY);
    });
}
