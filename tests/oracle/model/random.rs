//! Random delays.

/// The step between two states of `SplitMix64` (Steele, Lea and Flood, 2014).
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the random number of a state of `SplitMix64`.
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Scales a random number to `0..=max`.
pub(super) fn scale(random: u64, max: u64) -> u64 {
    ((u128::from(random) * (u128::from(max) + 1)) >> 64) as u64
}
