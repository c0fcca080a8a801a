//! Random delays that are the same on every run.

use bevy_ecs::{resource::Resource, world::World};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectResource,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

/// The seed of the random delays of this world, as of
/// [`Timer::after_between`](crate::Timer::after_between); zero unless set otherwise.
///
/// What a timer draws depends on this seed and on how many timers were armed before it, and on
/// nothing else: the same game gives the same delays.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Resource, Clone, Debug, Default, PartialEq)
)]
pub struct DelaySeed(pub u64);

/// Returns the `nth` random number of a world: `SplitMix64`, of Steele, Lea and Flood (2014).
pub(super) fn random(world: &World, nth: u64) -> u64 {
    let DelaySeed(seed) = world.get_resource().copied().unwrap_or_default();
    let mut z = seed.wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
