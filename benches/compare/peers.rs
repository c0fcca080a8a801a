//! The queues: this crate's queue, and the shapes of others, each written as well as that
//! shape allows.

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

/// What a timer carries. A queue keeps it where its shape keeps the record of a timer, so that
/// nothing has to be looked up when it fires.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    pub id: u32,
    pub period: u64,
}

/// A queue of timers. Times are nanoseconds, and begin at zero.
pub trait Queue: 'static {
    /// What the one who armed a timer keeps, to cancel it.
    type Key;

    /// Whether what is due comes out in exact (deadline, order of arming).
    const EXACT: bool = true;
    /// A queue that will hold about `n` timers at a time.
    fn new(n: usize) -> Self;

    fn arm(&mut self, deadline: u64, payload: Payload) -> Self::Key;

    /// Takes out a timer that has been armed and has not fired.
    fn cancel(&mut self, key: Self::Key);

    /// Fires all that is due at `now`. What `fire` returns is the next deadline of the timer, which
    /// is later than the last; it is gone if there is none.
    fn expire(&mut self, now: u64, fire: &mut impl FnMut(u64, &Payload) -> Option<u64>);

    /// The most frames of a turn with `n` timers that it gets through in a second or so, if it is
    /// slow; none if it is too slow.
    fn most_frames(_n: usize, _cancelling: bool) -> usize {
        usize::MAX
    }
}

/// A timer that waits on a heap.
trait Waiting {
    /// Its deadline, then its place in the order of arming.
    fn key(&self) -> (u64, u64);
}

/// Compares greater the sooner it is due, for `std`'s heap has the greatest first.
struct Soonest<T>(T);

impl<T: Waiting> PartialEq for Soonest<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<T: Waiting> Eq for Soonest<T> {}

impl<T: Waiting> PartialOrd for Soonest<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Waiting> Ord for Soonest<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.key().cmp(&self.0.key())
    }
}
