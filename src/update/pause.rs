//! Pausing functions that are called in every frame.

use bevy_ecs::component::Component;
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

/// Pauses the [`UpdateComponent`](crate::UpdateComponent) of this entity, and those of which it is
/// the [owner](crate::UpdateOf).
///
/// From the moment when it is inserted they are not called, not even later in the same frame. When
/// it is removed, they go on in their old place.
///
/// To pause a character with all that it is up to, insert [`TimersPaused`](crate::TimersPaused) as
/// well; to pause everything on a clock, [pause the clock](crate::Clock::pause).
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct UpdatesPaused;
