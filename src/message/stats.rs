//! Counters of messages.

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

/// Counts the messages of this world, from its start to the end of the last delivery.
///
/// # Examples
///
/// ```
/// use bevy_due::MessageStats;
/// use bevy_ecs::prelude::*;
///
/// fn print_lost(stats: Res<MessageStats>) {
///     if stats.is_changed() && stats.undeliverable > 0 {
///         println!("{} messages without a recipient", stats.undeliverable);
///     }
/// }
/// # bevy_ecs::system::assert_is_system(print_lost);
/// ```
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub struct MessageStats {
    /// The number of times that a callback was called with a message.
    pub delivered: u64,
    /// The number of messages without a recipient: the entity is gone, is disabled or does not
    /// follow the message, or no entity follows it.
    pub undeliverable: u64,
    /// The number of replies and [`NoAnswer`](super::NoAnswer)s to requests that were already
    /// complete or withdrawn.
    pub late: u64,
}
