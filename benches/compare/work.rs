//! The numbers of the workloads, equal in every run and for every peer.

pub const SECOND: u64 = 1_000_000_000;
pub const FRAMES_PER_SECOND: usize = 60;
pub const FRAME: u64 = SECOND / FRAMES_PER_SECOND as u64;

/// Returns the n-th pseudo-random number.
pub fn random(n: u64) -> u64 {
    let n = (n ^ n >> 31)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Returns a period from one second up to `seconds`, in nanoseconds. The periods of all ids are spread
/// evenly, in no particular order.
pub fn period_up_to(seconds: u64, id: u64) -> u64 {
    SECOND + random(id) % ((seconds - 1) * SECOND)
}

/// Returns the first deadline of a timer that starts at a random point of its period.
pub fn first_deadline(id: u32, period: u64) -> u64 {
    1 + random(u64::from(id) + 7) % period
}
