//! The settings of the plugin that timers use.

use core::num::NonZeroU32;

use bevy_ecs::prelude::*;

#[derive(Resource, Clone, Copy, Debug)]
pub(crate) struct TimerSettings {
    pub(crate) burst_limit: NonZeroU32,
    pub(crate) delay_seed: u64,
}

/// Returns the `nth` random number of a world: `SplitMix64` (Steele, Lea and Flood, 2014).
pub(super) fn random(world: &World, nth: u64) -> u64 {
    let settings = world.get_resource::<TimerSettings>();
    let seed = settings.map_or(0, |settings| settings.delay_seed);
    mix(seed.wrapping_add(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Returns the random number of a state of `SplitMix64`.
pub(super) fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
