//! The contenders: this crate's queue, and the shapes of others, each written as well as that
//! shape allows.

mod bevy_due;
mod bigworld;
mod binary_heap;
mod cocos;
mod framework;
mod skynet;
mod trinity;

pub use bevy_due::BevyDue;
pub use bigworld::BigWorld;
pub use binary_heap::StdBinaryHeap;
pub use cocos::Cocos;
pub use framework::Framework;
pub use skynet::Skynet;
pub use trinity::Trinity;

/// A queue of timers that are known by small numbers. Times are nanoseconds.
pub trait Queue {
    /// Whether what is due comes out in exact (deadline, order of arming).
    const EXACT: bool = true;
    /// The most timers with which it gets through the workloads.
    const MOST: usize = usize::MAX;

    /// The most frames of a turn.
    const MOST_FRAMES: usize = 20_000;

    /// A queue for the timers 0 to `ids`.
    fn new(ids: usize) -> Self;
    fn arm(&mut self, id: u32, deadline: u64);
    fn cancel(&mut self, id: u32);
    /// Fires all that is due at `now`; what `fire` returns is the next deadline of the timer.
    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u32, u64) -> Option<u64>);
}
