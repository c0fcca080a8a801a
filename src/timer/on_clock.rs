//! The clock for all timers of an entity.

use bevy_ecs::component::Component;
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use crate::clock::ClockId;

/// The clock of this entity's timers: its own, and those of which it is the owner, unless they are
/// put [on another one](crate::Timer::on).
///
/// It is looked up when a timer is armed. Those that are armed already stay where they are, also
/// when it is changed or removed; to slow them down, give each entity a clock of its own from the
/// start, and slow that down. An entity that carries a
/// [`Clock`](crate::Clock) needs no `OnClock`: its timers are on that one.
///
/// # Examples
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Monster;
///
/// fn enter_dungeon(mut commands: Commands) {
///     let dungeon = commands.spawn(Clock::new()).id();
///     commands.spawn((
///         Monster,
///         OnClock::new(dungeon),
///         related!(Timers[Timer::every_secs(1.0), Timer::after_secs(60.0)]),
///     ));
/// }
/// # bevy_ecs::system::assert_is_system(enter_dungeon);
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct OnClock(#[entities] pub ClockId);

impl OnClock {
    /// Chooses a clock: one of [`ClockId`], or an entity with a [`Clock`](crate::Clock).
    #[must_use]
    pub fn new(clock: impl Into<ClockId>) -> Self {
        Self(clock.into())
    }
}
