//! The numbers of the workloads: the same on every run and for all.

pub const SECOND: u64 = 1_000_000_000;
pub const FRAME: u64 = SECOND / 60;

pub fn random(n: u64) -> u64 {
    let n = (n ^ n >> 31)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 8
}

/// Once in so many seconds, from one second on, spread evenly but in no order.
pub fn every_second_up_to(seconds: u64, id: u64) -> u64 {
    SECOND + random(id) % ((seconds - 1) * SECOND)
}

/// When a timer is first due that is somewhere in its period at time zero.
pub fn first_deadline(id: u32, period: u64) -> u64 {
    1 + random(u64::from(id) + 7) % period
}
