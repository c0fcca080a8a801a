//! Entities that live for a while.

use core::time::Duration;

use bevy_ecs::{component::Component, lifecycle::HookContext, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use {bevy_ecs::reflect::ReflectComponent, bevy_reflect::Reflect};

use super::{
    InvalidTimer, SurvivesCancelAll, Timer, TimerAction, TimerEntityCommandsExt,
    builder::{nanos_from_secs, or_panic},
    events::Unannounced,
};

/// Despawns the entity after a while.
///
/// It is short for a timer of the entity that does so, on the entity's clock, under a key of its
/// own: the entity can have another [`Timer`] beside, and cancelling all its timers spares it. Inserting it again starts anew; removing it
/// lets the entity live. That timer is an entity of its own: for bullets by the thousand, a
/// [`Timer`] with [`TimerAction::despawn`] on the bullet itself is cheaper.
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
/// app.add_plugins((TimePlugin, DuePlugin)).insert_resource(
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
    /// Despawns the entity after a number of seconds.
    ///
    /// # Panics
    ///
    /// Panics if `secs` is negative, infinite or not a number. See
    /// [`try_secs`](Self::try_secs) for seconds that come from data.
    #[must_use]
    #[track_caller]
    pub fn secs(secs: f64) -> Self {
        or_panic(Self::try_secs(secs))
    }

    /// Despawns the entity after a number of seconds that may be bad.
    ///
    /// # Errors
    ///
    /// [`InvalidTimer::Seconds`] if `secs` is negative, infinite or not a number.
    pub fn try_secs(secs: f64) -> Result<Self, InvalidTimer> {
        Ok(Self(Duration::from_nanos(nanos_from_secs(secs)?)))
    }
}

fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(&DespawnAfter(delay)) = world.get(entity) {
        let despawn = TimerAction::despawn().on_owner();
        let mut commands = world.commands();
        let mut entity = commands.entity(entity);
        entity.set_timer(
            KEY,
            (Timer::after(delay), despawn, SurvivesCancelAll, Unannounced),
        );
    }
}

fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    world.commands().entity(entity).cancel_timer(KEY);
}
