//! Random numbers: delays and intervals that differ from timer to timer.

use core::num::NonZeroU64;

/// The golden ratio, as a part of all numbers.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The numbers of a world. Equal seeds give equal numbers.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct Numbers {
    seed: u64,
    /// How many were drawn so far.
    drawn: u64,
}

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// Draws a random number: `SplitMix64` (Steele, Lea and Flood, 2014).
    pub(super) fn random(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        mix(self.seed.wrapping_add(self.drawn.wrapping_mul(GOLDEN)))
    }

    /// Draws a number that is far from the ones before it: multiples of the golden ratio fill a range
    /// evenly, however many there are.
    pub(super) fn even(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        self.drawn.wrapping_mul(GOLDEN)
    }
}

/// The random intervals of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub(crate) struct RandomInterval {
    /// The difference between the longest and the shortest interval.
    pub(super) span: u64,
    /// The state of the random numbers.
    pub(super) state: u64,
}

impl RandomInterval {
    pub(super) fn draw(&mut self, shortest: NonZeroU64) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        let extra = scale(mix(self.state), self.span);
        shortest.get().saturating_add(extra)
    }

    /// Returns the average interval.
    pub(super) fn average(&self, shortest: NonZeroU64) -> u64 {
        shortest.get().saturating_add(self.span / 2)
    }
}

/// Scales a random number to `0..=max`.
pub(super) fn scale(random: u64, max: u64) -> u64 {
    ((u128::from(random) * (u128::from(max) + 1)) >> 64) as u64
}

/// Returns the random number of a state of `SplitMix64`.
fn mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
