//! The queues: this crate's own, and other designs, each implemented as well as the design allows.

mod bevy_due;
mod bigworld;
mod binary_heap;
mod btree_map;
mod cocos;
mod delay_queue;
mod framework;
mod hash_wheel;
mod skynet;
mod trinity;

use core::cmp::Ordering;

pub use self::{
    bigworld::BigWorld, binary_heap::StdBinaryHeap, btree_map::StdBTreeMap, cocos::Cocos,
    delay_queue::DelayQueue, framework::Framework, hash_wheel::HashWheel, skynet::Skynet,
    trinity::Trinity,
};

/// The data of a timer. A queue stores it where its design stores a timer, so that an expiry needs no
/// extra lookup.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    pub id: u32,
    pub period: u64,
}

/// A queue of timers. Times are nanoseconds and start at zero.
pub trait Queue: 'static {
    /// The handle that cancels a timer.
    type Key;

    /// Whether timers expire in exact order: by deadline, then in arming order.
    const EXACT: bool = true;

    /// Creates a queue for about `n` timers.
    fn new(n: usize) -> Self;

    /// Adds a timer.
    fn arm(&mut self, deadline: u64, payload: Payload) -> Self::Key;

    /// Removes a timer that has not fired yet.
    fn cancel(&mut self, key: Self::Key);

    /// Fires all timers that are due at `now`.
    ///
    /// `fire` returns the next deadline of the timer, which is later than the last one, or `None` if the
    /// timer ends.
    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>);

    /// Returns the most frames with `n` timers that fit into a turn of about a second, or zero if the
    /// queue is too slow to measure.
    fn max_frames(_n: usize, _cancelling: bool) -> usize {
        usize::MAX
    }
}

/// An entry of a heap.
trait HeapEntry {
    /// Returns the deadline, and the place in the arming order.
    fn key(&self) -> (u64, u64);
}

/// Orders timers by deadline, the soonest as the greatest: `BinaryHeap` pops the greatest first.
struct Soonest<T>(T);

impl<T: HeapEntry> PartialEq for Soonest<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<T: HeapEntry> Eq for Soonest<T> {}

impl<T: HeapEntry> PartialOrd for Soonest<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: HeapEntry> Ord for Soonest<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}
