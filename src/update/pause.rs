//! Pausing functions that are called in every frame.

use bevy_ecs::{component::Component, resource::Resource};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::{ReflectComponent, ReflectResource},
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

/// Pauses every [`UpdateComponent`](crate::UpdateComponent) of this priority or a higher one, as
/// long as it is so: those that come later in the frame, also ones that are inserted meanwhile.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
///
/// /// What is less urgent than that stops while a menu is open.
/// const GAME: i32 = 100;
///
/// fn open_menu(mut paused: ResMut<UpdatesPausedFrom>) {
///     paused.0 = Some(GAME);
/// }
///
/// fn close_menu(mut paused: ResMut<UpdatesPausedFrom>) {
///     paused.0 = None;
/// }
/// # bevy_ecs::system::assert_is_system(open_menu);
/// # bevy_ecs::system::assert_is_system(close_menu);
/// ```
#[doc(alias = "pauseAllTargetsWithMinPriority")]
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub struct UpdatesPausedFrom(pub Option<i32>);
