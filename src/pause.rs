//! Pausing an entity. `timer/hold.rs` pauses its timers, and `update/run.rs` its update callbacks.

use bevy_ecs::{entity_disabling::Disabled, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

/// Pauses the timers, update callbacks and request time-outs on this entity and on the entities
/// that [belong to it](crate::OwnedBy).
///
/// As soon as this component is inserted, the timers do not fire and the callbacks are not called,
/// not even later in the same run. Messages and replies still arrive. When the component is
/// removed, each timer continues with its remaining time, exact to the nanosecond. Timers keep
/// their place among equal deadlines, and callbacks keep their place in the order. A timer that is
/// armed during the pause keeps its full delay until the pause ends.
///
/// A timer or a callback is paused while its entity or its owner has this component or is
/// [`Disabled`]. To pause everything on a clock, [pause the clock](crate::Clock::pause).
///
/// A [`Cooldown`](crate::Cooldown) or a [`Clock`](crate::Clock) on the same entity does not stop.
/// To be able to stop a cooldown, use it with a clock on the entity, and pause that clock.
///
/// Do not let the paused entity own the timer that ends the pause: it would be paused too.
///
/// # Time complexity
///
/// Inserting and removing are *O*(*n*) in the number of the entity's timers, amortized.
///
/// # Examples
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// /// The delayed command that ends a stun.
/// #[derive(Component)]
/// struct WakeUp(Entity);
///
/// /// Stuns a character for two seconds from now, even if it is stunned already.
/// fn stun(character: Entity, stunned: Query<&WakeUp>, mut commands: Commands) {
///     if let Ok(&WakeUp(earlier)) = stunned.get(character) {
///         commands.entity(earlier).try_despawn();
///     }
///     let wake_up = commands.after_secs(2.0).queue(move |commands| {
///         commands.entity(character).try_remove::<(Paused, WakeUp)>();
///     });
///     let wake_up = wake_up.id();
///     commands.entity(character).insert((Paused, WakeUp(wake_up)));
/// }
///
/// fn prepare(mut commands: Commands) {
///     // Spawned paused.
///     commands.spawn((Timer::after_secs(3.0), Paused));
/// }
/// # let _ = stun;
/// # bevy_ecs::system::assert_is_system(prepare);
/// ```
#[doc(alias("TimersPaused", "UpdatesPaused", "stun", "freeze"))]
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Paused;

/// Returns `true` if an entity or its owner pauses the timer and callback on the entity.
pub(crate) fn is_paused(world: &DeferredWorld, entity: EntityRef, owner: Entity) -> bool {
    let pauses = |entity: EntityRef| entity.contains::<Paused>() || entity.contains::<Disabled>();
    pauses(entity) || owner != entity.id() && world.get_entity(owner).is_ok_and(pauses)
}
