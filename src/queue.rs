//! The queue of timers: what comes out is in exact (deadline, sequence) order.
//!
//! It knows no Bevy and reads no clock, so it can be tested, measured and used without an ECS.
//! A deadline is a plain `u64` on a time line of the caller's choice: the timers of this crate
//! count nanoseconds, a turn-based game may count turns. The order is exact in any unit; the sizes
//! inside are made for a great many timers in nanoseconds, and for two thousand in any unit.
//!
//! ```
//! use bevy_due::queue::TimerQueue;
//!
//! let mut queue = TimerQueue::new();
//! queue.insert(30, "lunch");
//! let tea = queue.insert(10, "tea");
//! queue.insert(10, "cake");
//! queue.insert(20, "walk");
//!
//! assert_eq!(queue.cancel(tea), Some("tea"));
//!
//! let mut now_due = Vec::new();
//! while let Some(due) = queue.pop_due(20) {
//!     now_due.push(*due);
//! }
//! assert_eq!(now_due, ["cake", "walk"]);
//! assert_eq!(queue.next_deadline(), Some(30));
//! ```

mod bucket;
mod due;
mod heap;
mod near;
#[cfg(test)]
mod oracle;
mod pages;
mod slots;
mod wheel;

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

pub use due::Due;
use heap::Entry;
use near::{First, Near};
pub use slots::TimerKey;
use slots::{Place, Slots};
use wheel::{Shape, Wheel};

/// The deadline that is never reached: the end of every time line.
///
/// Arithmetic on deadlines saturates here. In nanoseconds it lies 584 years after the clock's
/// start.
pub const NEVER: u64 = u64::MAX;

/// Buckets of 16.8 ms in a ring of 68.7 s, if deadlines count nanoseconds, and levels of 256 above.
const SHAPE: Shape = Shape {
    width_bits: 24,
    ring_bits: 12,
    level_bits: 8,
    heap_only: 2048,
};

/// Timers, each with a value, popped in exact (deadline, sequence) order.
///
/// A timer stays in the queue from [`insert`](Self::insert) or
/// [`insert_parked`](Self::insert_parked) until it is [cancelled](Self::cancel), or popped and not
/// re-armed. In between it is either waiting for its deadline or idle: parked, or armed for
/// [`NEVER`].
///
/// The sequence is given at `insert` or `insert_parked` and kept through every re-arming, so timers
/// that share a deadline come out in the order in which they came in, always.
///
/// # What is inside
///
/// Two thousand timers wait in a min-heap. When there are more, the heap keeps only what is near;
/// what is far waits in buckets by time, unsorted, for one append each, and comes near as its time
/// comes. Buckets that are very far are wide, and are moved into narrower ones a few entries at a
/// time, ahead of need. A cancelled timer leaves the heap at once and its bucket with a few others;
/// in the bucket whose time it is, it is skipped. So while time goes on by frames, no frame does
/// more than its share: there is no cascade, no sweep over all that waits, and no growth that
/// copies it. A jump moves what it has jumped into, a whole wide bucket if need be; and if `now`
/// goes back while something is far, what is armed for before the buckets begin stays on the heap
/// until the time is made up or nothing is far.
///
/// A timer takes 64 bytes if its value is no larger than 40 (with the [`Option`] around it), and
/// about nine in its bucket.
pub struct TimerQueue<T> {
    slots: Slots<T>,
    near: Near,
    far: Option<Box<Wheel>>,
    /// What is due from here on belongs into the wheel: [`NEVER`] as long as there is none.
    far_from: u64,
    shape: Shape,
    next_sequence: u64,
    /// That of the last [`pop_due`](Self::pop_due).
    now: u64,
    touched: u64,
}

impl<T> TimerQueue<T> {
    /// Creates an empty queue. It does not allocate until something is put in.
    #[must_use]
    pub fn new() -> Self {
        Self::with_shape(SHAPE)
    }

    fn with_shape(shape: Shape) -> Self {
        Self {
            slots: Slots::new(),
            near: Near::new(),
            far: None,
            far_from: NEVER,
            shape,
            next_sequence: 0,
            now: 0,
            touched: 0,
        }
    }

    /// Puts `value` in, due at `deadline`. One that is due at [`NEVER`] stays until it is
    /// cancelled or armed again.
    ///
    /// # Panics
    ///
    /// Panics if the queue holds 2^30 timers.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::queue::TimerQueue;
    /// let mut queue = TimerQueue::new();
    /// let key = queue.insert(5, 'a');
    /// assert_eq!(queue.get(key), Some(&'a'));
    /// assert_eq!(queue.deadline(key), Some(5));
    /// ```
    pub fn insert(&mut self, deadline: u64, value: T) -> TimerKey {
        let key = self.insert_parked(deadline, value);
        self.attach(key.index(), deadline);
        key
    }

    /// Puts `value` in, due at `deadline`, but parked: it gets its key and its sequence, and is not
    /// popped before it is [released](Self::release).
    ///
    /// For a caller that collects what is added and arms all of it later, as this crate does
    /// between two frames: the timer can be looked up and cancelled from now on, and keeps its
    /// place in the order of equal deadlines.
    ///
    /// # Panics
    ///
    /// Panics if the queue holds 2^30 timers.
    ///
    /// # Time complexity
    ///
    /// *O*(1), amortised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::queue::TimerQueue;
    /// let mut queue = TimerQueue::new();
    /// let early_bird = queue.insert_parked(5, "early bird");
    /// queue.insert(5, "late riser");
    /// queue.release(early_bird);
    /// assert_eq!(*queue.pop_due(5).unwrap(), "early bird");
    /// ```
    pub fn insert_parked(&mut self, deadline: u64, value: T) -> TimerKey {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.slots.insert(sequence, deadline, value)
    }

    /// Returns the key that the next timer to be put in will have.
    #[must_use]
    pub(crate) fn next_key(&self) -> TimerKey {
        self.slots.next_key()
    }

    /// Parks the timer behind `key`, whatever it was doing: it is due at `deadline`, and is not
    /// popped before it is [released](Self::release). Says whether there is such a timer.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::queue::TimerQueue;
    /// let mut queue = TimerQueue::new();
    /// let paused = queue.insert(5, "paused");
    /// queue.park(paused, 8);
    /// assert!(queue.pop_due(10).is_none());
    /// assert_eq!(queue.deadline(paused), Some(8));
    /// queue.release(paused);
    /// assert_eq!(queue.pop_due(10).unwrap().deadline(), 8);
    /// ```
    pub fn park(&mut self, key: TimerKey, deadline: u64) -> bool {
        let known = self.slots.get(key).is_some();
        if known {
            self.detach(key.index());
            self.slots.at_mut(key.index()).deadline = deadline;
        }
        known
    }

    /// Parks the timer behind `key` as if it had just been put in: due at `deadline`, with a new
    /// sequence. Says whether there is such a timer.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    pub(crate) fn park_anew(&mut self, key: TimerKey, deadline: u64) -> bool {
        let known = self.park(key, deadline);
        if known {
            self.slots.at_mut(key.index()).sequence = self.next_sequence;
            self.next_sequence += 1;
        }
        known
    }

    /// Lets the timer behind `key` wait for its deadline if it is parked, and says whether it was.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    pub fn release(&mut self, key: TimerKey) -> bool {
        let slot = self.slots.get(key);
        let Some(slot) = slot.filter(|slot| slot.place() == Place::Idle) else {
            return false;
        };
        self.attach(key.index(), slot.deadline);
        true
    }

    /// Sets the deadline of the timer behind `key`, whatever it was doing, and says whether
    /// there is such a timer.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    pub fn arm(&mut self, key: TimerKey, deadline: u64) -> bool {
        let known = self.slots.get(key).is_some();
        if known {
            self.detach(key.index());
            self.attach(key.index(), deadline);
        }
        known
    }

    /// Takes the timer behind `key` out, and hands its value back.
    ///
    /// Cancelling twice is harmless: the key of a timer that is gone gives `None`, and is never
    /// the key of another timer of this queue. Keys of other queues are not told apart.
    ///
    /// # Time complexity
    ///
    /// *O*(1) for what is far, *O*(log *n*) for what is near, amortised.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let value = self.slots.take(key)?;
        let index = key.index();
        let slot = self.slots.at(index);
        match (slot.place(), &mut self.far) {
            (Place::Bucket(_), Some(far)) if slot.deadline >= self.far_from => {
                far.defer_removal(&mut self.slots, index);
            }
            _ => {
                self.detach(index);
                self.slots.vacate(index);
            }
        }
        Some(value)
    }

    /// Takes the earliest timer whose deadline is at or before `now`, or `None` if nothing is
    /// due. Dropping what is returned lets the timer go.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised; *O*(1), amortised, when nothing is due.
    ///
    /// # Examples
    ///
    /// A timer that repeats is put back where it was, between the others, in the same loop:
    ///
    /// ```
    /// # use bevy_due::queue::TimerQueue;
    /// let mut queue = TimerQueue::new();
    /// queue.insert(10, ("every 10", 10));
    /// queue.insert(15, ("every 15", 15));
    ///
    /// let mut fired = Vec::new();
    /// while let Some(due) = queue.pop_due(30) {
    ///     let (deadline, (name, interval)) = (due.deadline(), *due);
    ///     fired.push((deadline, name));
    ///     due.rearm(deadline + interval);
    /// }
    /// assert_eq!(
    ///     fired,
    ///     [
    ///         (10, "every 10"),
    ///         (15, "every 15"),
    ///         (20, "every 10"),
    ///         (30, "every 10"),
    ///         (30, "every 15"),
    ///     ]
    /// );
    /// ```
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<Due<'_, T>> {
        self.now = now;
        let first = loop {
            let first = self.near.first(&self.slots);
            let until = first.map_or(now, |first| first.deadline.min(now));
            if !self.load(until) {
                break first.filter(|first| first.deadline <= now)?;
            }
        };
        if self.near.prefetch(&self.slots)
            && let Some(far) = &mut self.far
        {
            far.prefetch();
        }
        // It stays where it is until it is known what becomes of it.
        Some(Due::new(self, first))
    }

    /// Whether [`pop_due`](Self::pop_due) may find something. It is cheaper to ask.
    pub(crate) fn may_be_due(&self, now: u64) -> bool {
        let is_near = |first: First| first.deadline <= now;
        self.far_from <= now || self.near.first(&self.slots).is_some_and(is_near)
    }

    /// Returns the earliest deadline that anything is waiting for.
    ///
    /// # Time complexity
    ///
    /// *O*(*k*) in the number of timers in the first bucket of each width; *O*(1) for two thousand
    /// timers in all.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let near = self.near.first(&self.slots).map(|first| first.deadline);
        let far = self.far.as_ref();
        let far = far.and_then(|far| far.next_deadline(&self.slots));
        near.into_iter().chain(far).min()
    }

    /// Returns the deadline of the timer behind `key`, also if it is parked, or `None` if it is
    /// not in this queue.
    #[must_use]
    pub fn deadline(&self, key: TimerKey) -> Option<u64> {
        self.slots.get(key).map(|slot| slot.deadline)
    }

    /// Returns the value of the timer behind `key`, or `None` if it is not in this queue.
    #[must_use]
    pub fn get(&self, key: TimerKey) -> Option<&T> {
        self.slots.value(key)
    }

    /// Returns the value of the timer behind `key` for changing, or `None` if it is not in this
    /// queue.
    #[must_use]
    pub fn get_mut(&mut self, key: TimerKey) -> Option<&mut T> {
        self.slots.value_mut(key)
    }

    /// Returns the timers in the queue, waiting and idle, with their keys and deadlines, in no
    /// particular order.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the most timers that there ever were.
    pub fn iter(&self) -> impl Iterator<Item = (TimerKey, u64, &T)> {
        self.slots.iter()
    }

    /// Returns the keys of the timers that wait for a deadline up to `until`, in the order in which
    /// they are due.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the most timers that there ever were, and *O*(*k* log *k*) in those returned.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::queue::TimerQueue;
    /// let mut queue = TimerQueue::new();
    /// let later = queue.insert(20, ());
    /// let sooner = queue.insert(10, ());
    /// queue.insert(30, ());
    /// assert_eq!(queue.waiting_until(20), [sooner, later]);
    /// ```
    #[must_use]
    pub fn waiting_until(&self, until: u64) -> Vec<TimerKey> {
        let mut waiting = self.slots.waiting_until(until);
        waiting.sort_unstable();
        waiting.into_iter().map(|(.., key)| key).collect()
    }

    /// Returns how many timers are in the queue, waiting or idle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if no timer is in the queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many entries the queue has put somewhere, moved or taken out since it was
    /// created: its work, counted rather than timed. What is done to the heap counts as one, and
    /// sorting a bucket and reading ahead do not count.
    #[must_use]
    pub fn touched(&self) -> u64 {
        self.touched + self.far.as_ref().map_or(0, |far| far.touched())
    }

    /// Lets an idle timer wait for `deadline`.
    #[inline]
    fn attach(&mut self, index: u32, deadline: u64) {
        let slot = self.slots.at_mut(index);
        slot.deadline = deadline;
        if let Some(far) = &mut self.far
            && (self.far_from..NEVER).contains(&deadline)
        {
            return far.insert(slot, index);
        }
        if deadline == NEVER {
            return slot.set_place(Place::Idle);
        }
        // What is left of the run is told apart by lying before `far_from`.
        if let Some(far) = &mut self.far
            && far.is_ahead_of(self.now)
            && self.near.has_run_out()
            && far.rebase_if_empty(&mut self.slots, self.now)
        {
            self.far_from = far.begins();
            return self.attach(index, deadline);
        }
        let entry = Entry { deadline, index };
        self.near.heap.push(&mut self.slots, entry);
        self.touched += 1;
        if self.far.is_none() && self.near.heap.len() >= self.shape.heap_only {
            let far = self.far.insert(Box::new(Wheel::new(self.shape, self.now)));
            self.far_from = far.begins();
        }
    }

    /// Makes a timer idle.
    fn detach(&mut self, index: u32) {
        let slot = self.slots.at(index);
        let (place, deadline) = (slot.place(), slot.deadline);
        self.slots.make_idle(index);
        match (place, &mut self.far) {
            (Place::Idle, _) => {}
            (Place::Bucket(address), Some(far)) if deadline >= self.far_from => {
                far.remove(&mut self.slots, address);
            }
            (Place::Bucket(_), _) => {
                self.touched += 1 + self.near.note_dead(&self.slots) as u64;
            }
            (Place::Heap(position), _) => {
                self.touched += 1;
                self.near.heap.remove(&mut self.slots, position as usize);
            }
        }
    }

    /// Does what `Due` was told to do with the first of what is near.
    #[inline]
    fn settle(&mut self, first: First, rearm: Option<u64>) {
        self.touched += 1;
        let First { index, in_heap, .. } = first;
        let deadline = rearm.unwrap_or(NEVER);
        if in_heap && deadline < self.far_from {
            self.slots.at_mut(index).deadline = deadline;
            let entry = Entry { deadline, index };
            return self.near.heap.replace_first(&mut self.slots, entry);
        }
        if in_heap {
            self.near.heap.remove(&mut self.slots, 0);
        } else {
            self.touched += self.near.pop_run(&self.slots) as u64;
        }
        self.attach(index, deadline);
    }

    /// Brings the next bucket near whose time begins at or before `until`, and says whether there
    /// was one.
    #[inline]
    fn load(&mut self, until: u64) -> bool {
        match &mut self.far {
            Some(far) if until >= self.far_from => {
                let found = far.advance(&mut self.slots, until, &mut self.near);
                self.far_from = far.begins();
                found
            }
            _ => false,
        }
    }
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TimerQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerQueue")
            .field("len", &self.len())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}
