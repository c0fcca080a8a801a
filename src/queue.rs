//! A timer queue that pops timers in exact (deadline, sequence) order.
//!
//! The queue knows no entities and reads no clock, so it can be tested, measured and used without an
//! ECS. A deadline is a plain `u64` on a time line of the caller's choice. The timers of
//! this crate count nanoseconds; a turn-based game might count turns. The order is exact in any
//! unit. The bucket widths suit nanoseconds, but they matter only in a queue of more than two
//! thousand timers.
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
//! let mut expired = Vec::new();
//! while let Some(due) = queue.pop_due(20) {
//!     expired.push(*due);
//! }
//! assert_eq!(expired, ["cake", "walk"]);
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
#[cfg(test)]
mod tests;
mod trim;
mod vacant;
mod wheel;

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, iter};

pub use due::Due;
use heap::Entry;
pub(crate) use near::First;
use near::Near;
pub use slots::Key;
pub(crate) use slots::prefetch;
use slots::{Place, Slot, Slots};
use trim::Trim;
pub(crate) use trim::shrink;
use wheel::{Shape, Wheel};

/// The deadline that is never reached: the end of every time line.
///
/// Arithmetic on deadlines saturates here. A time line in nanoseconds ends 584 years after zero.
pub const NEVER: u64 = u64::MAX;

/// For deadlines in nanoseconds: buckets of 16.8 ms, a ring of 68.7 s, and levels of 256 buckets
/// above it.
const SHAPE: Shape = Shape {
    width_bits: 24,
    ring_bits: 12,
    level_bits: 8,
    wheel_threshold: 2048,
};

/// A queue of timers, each with a value, popped in exact (deadline, sequence) order.
///
/// A timer enters the queue with [`insert`](Self::insert) or
/// [`insert_parked`](Self::insert_parked). It stays until it is [cancelled](Self::cancel), or
/// popped and not re-armed. Until then it either waits for its deadline or is idle. A timer is idle
/// if it is parked or armed for [`NEVER`].
///
/// A timer gets its sequence number when it is inserted, and keeps this number whenever it is
/// re-armed. Timers with equal deadlines therefore always pop in the order in which they were
/// inserted.
///
/// # Implementation
///
/// Up to two thousand timers wait in a min-heap. In a larger queue the heap holds only the near
/// timers. Far timers wait unsorted in buckets by deadline. Adding a timer to a bucket is one
/// append, and the bucket is sorted when its time comes. Buckets in the far future are wide. Their
/// entries move to narrower buckets a few at a time, ahead of need.
///
/// Cancelling a timer removes it from the heap immediately, and from its bucket in a small batch.
/// If the timer's bucket has already been sorted, its entry is skipped when it is reached.
///
/// No frame does more than its share of the work as long as time advances frame by frame. The queue
/// never cascades, never sweeps all waiting timers, and never copies them to grow. Two cases cost
/// more. A jump forward moves every bucket that it reaches, including a whole wide bucket if the
/// jump ends inside it. After `now` goes back, timers armed before the start of the buckets wait in
/// the heap until time catches up or the buckets are empty.
///
/// A timer takes 64 bytes if an [`Option`] of its value takes at most 40, plus about nine bytes in
/// its bucket. [`trim`](Self::trim) gives the memory of timers that are gone back, a little per frame. A
/// timer does not move in memory, so one that lasts holds the room for two thousand.
pub struct TimerQueue<T> {
    slots: Slots<T>,
    near: Near,
    wheel: Option<Box<Wheel>>,
    /// Timers with a deadline from here on wait in the wheel. [`NEVER`] while there is no wheel.
    wheel_start: u64,
    shape: Shape,
    next_sequence: u64,
    /// The latest `now`.
    now: u64,
    /// The number of entries put on the heap.
    touched: u64,
    trim: Trim,
}

impl<T> TimerQueue<T> {
    /// Creates an empty queue.
    ///
    /// The queue does not allocate until the first timer is inserted.
    #[must_use]
    pub fn new() -> Self {
        Self::with_shape(SHAPE)
    }

    fn with_shape(shape: Shape) -> Self {
        Self {
            slots: Slots::new(),
            near: Near::new(),
            wheel: None,
            wheel_start: NEVER,
            shape,
            next_sequence: 0,
            now: 0,
            touched: 0,
            trim: Trim::default(),
        }
    }

    /// Inserts `value`, due at `deadline`, and returns its key.
    ///
    /// A timer due at [`NEVER`] stays idle until it is re-armed or cancelled.
    ///
    /// # Panics
    ///
    /// Panics if the queue already holds 2^30 timers.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortized.
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
    #[inline]
    pub fn insert(&mut self, deadline: u64, value: T) -> Key {
        let sequence = self.take_sequence();
        let (key, slot) = self.slots.insert(sequence, deadline, value);
        if (self.wheel_start..NEVER).contains(&deadline)
            && let Some(wheel) = &mut self.wheel
        {
            wheel.insert(slot, key.index());
        } else {
            self.attach_near(key.index(), deadline);
        }
        key
    }

    /// Inserts `value` as a parked timer, due at `deadline`, and returns its key.
    ///
    /// A parked timer does not pop until it is [released](Self::release).
    ///
    /// Use this to collect new timers and arm all of them later, as this crate does between two
    /// frames. A parked timer already has its key and its sequence number. It can be looked up and
    /// cancelled, and it keeps its place among equal deadlines.
    ///
    /// # Panics
    ///
    /// Panics if the queue already holds 2^30 timers.
    ///
    /// # Time complexity
    ///
    /// *O*(1), amortized.
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
    pub fn insert_parked(&mut self, deadline: u64, value: T) -> Key {
        let sequence = self.take_sequence();
        self.slots.insert(sequence, deadline, value).0
    }

    /// Parks the timer with this `key` and sets its deadline. Returns `true` if there is such a
    /// timer.
    ///
    /// A parked timer does not pop until it is [released](Self::release). The timer may be waiting,
    /// idle or parked already.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortized.
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
    pub fn park(&mut self, key: Key, deadline: u64) -> bool {
        let known = self.slots.get(key).is_some();
        if known {
            self.detach(key.index());
            self.slots.at_mut(key.index()).deadline = deadline;
        }
        known
    }

    /// Inserts `value` as [`insert_parked`](Self::insert_parked) does, with a sequence number of the
    /// caller. Several queues may share these numbers.
    #[inline]
    pub(crate) fn insert_parked_at(&mut self, sequence: u64, deadline: u64, value: T) -> Key {
        self.slots.insert(sequence, deadline, value).0
    }

    /// Gives a parked timer another place among equal deadlines.
    pub(crate) fn set_sequence(&mut self, key: Key, sequence: u64) {
        if self.slots.get(key).is_some() {
            self.slots.at_mut(key.index()).sequence = sequence;
        }
    }

    /// Arms the timer with this `key` for its deadline if it is idle, and returns `true` if it
    /// was.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortized.
    pub fn release(&mut self, key: Key) -> bool {
        self.release_if(key, |_| true)
    }

    /// Releases a timer as [`release`](Self::release) does, if `decide` agrees, which may change the value.
    #[inline]
    pub(crate) fn release_if(&mut self, key: Key, decide: impl FnOnce(&mut T) -> bool) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        let (deadline, is_idle) = (slot.deadline, slot.place() == Place::Idle);
        if !decide(slot.timer_mut()) || !is_idle {
            return false;
        }
        self.attach(key.index(), deadline);
        true
    }

    /// Arms the timer with this `key` for `deadline`, and returns `true` if there is such a timer.
    ///
    /// The timer may be waiting, idle or parked. It keeps its sequence number.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortized.
    pub fn arm(&mut self, key: Key, deadline: u64) -> bool {
        let known = self.slots.get(key).is_some();
        if known {
            self.detach(key.index());
            self.attach(key.index(), deadline);
        }
        known
    }

    /// Removes the timer with this `key` and returns its value, or `None` if there is no such
    /// timer.
    ///
    /// Cancelling twice is harmless: the queue never uses a key for a second timer. It cannot
    /// detect a key that belongs to another queue.
    ///
    /// # Time complexity
    ///
    /// *O*(1) for a far timer, *O*(log *n*) for a near one, amortized.
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        self.remove(key, |slot| slot.value.take())?
    }

    /// Removes the timer with this `key` after `read` has seen its deadline and its value, which does not
    /// move.
    #[inline]
    pub(crate) fn cancel_after<Out>(
        &mut self,
        key: Key,
        read: impl FnOnce(u64, &mut T) -> Out,
    ) -> Option<Out> {
        self.remove(key, |slot| read(slot.deadline, slot.timer_mut()))
    }

    #[inline]
    fn remove<Out>(&mut self, key: Key, read: impl FnOnce(&mut Slot<T>) -> Out) -> Option<Out> {
        let (out, slot) = self.slots.take(key, read)?;
        let index = key.index();
        if matches!(slot.place(), Place::Bucket(_))
            && slot.deadline >= self.wheel_start
            && let Some(wheel) = &mut self.wheel
        {
            wheel.defer_removal(&mut self.slots, index);
        } else {
            self.remove_near(index);
        }
        Some(out)
    }

    #[inline(never)]
    fn remove_near(&mut self, index: u32) {
        self.detach(index);
        self.slots.vacate(index);
    }

    /// Pops the earliest timer whose deadline is at or before `now`, or returns `None` if no timer
    /// is due.
    ///
    /// Dropping the returned [`Due`] removes the timer. [`Due::rearm`] keeps it.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortized; *O*(1), amortized, if no timer is due.
    ///
    /// # Examples
    ///
    /// A periodic timer that is re-armed in the loop takes its place among the other timers:
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
    #[inline(always)]
    pub fn pop_due(&mut self, now: u64) -> Option<Due<'_, T>> {
        let first = self.first_due(now)?;
        self.near.prefetch_if_due(&self.slots);
        // The timer keeps its place until `Due` removes or re-arms it.
        Some(Due::new(self, first))
    }

    /// Fires the due timers that come next on the sorted list of near timers, and re-arms each.
    ///
    /// The iterator ends at a timer for which `fire` returns `None`, which must not have changed, and at
    /// a timer that is not on the list.
    #[inline]
    pub(crate) fn rearm_listed<Out>(
        &mut self,
        now: u64,
        mut fire: impl FnMut(u64, &mut T) -> Option<(u64, Out)>,
    ) -> impl Iterator<Item = Out> {
        let first = self.first_due(now).filter(|first| !first.in_heap);
        let mut until = first.and_then(|_| self.near.list_until(now));
        iter::from_fn(move || {
            let first = self.near.first_listed(&self.slots, until?)?;
            let slot = self.slots.at_mut(first.index);
            let (deadline, out) = fire(first.deadline, slot.timer_mut())?;
            if (self.wheel_start..NEVER).contains(&deadline)
                && let Some(wheel) = &mut self.wheel
            {
                slot.deadline = deadline;
                wheel.insert(slot, first.index);
                self.near.advance_list(&self.slots);
            } else {
                self.rearm_first(first, deadline);
                until = self.near.list_until(now);
            }
            Some(out)
        })
    }

    /// Prefetches where the heap and the timers start. Then the cache misses of several queues overlap.
    #[inline]
    pub(crate) fn prefetch_start(&self) {
        prefetch((self.wheel_start, self.near.is_list_exhausted()));
        prefetch(self.near.heap.first().map(|first| first.deadline));
        prefetch(self.slots.find(0).map(|slot| slot.sequence));
    }

    /// Prefetches the first timers on the heap, which move when one of them is re-armed. Returns the value of the
    /// earliest near timer.
    #[inline]
    pub(crate) fn prefetch_first(&self) -> Option<&T> {
        self.near.heap.prefetch(&self.slots);
        let first = self.near.first(&self.slots);
        (first.deadline != NEVER).then(|| self.slots.at(first.index).timer())
    }

    /// Advances to `now`, so that the first deadline is near.
    pub(crate) fn advance_to(&mut self, now: u64) {
        self.first_due(now);
    }

    /// Returns the earliest timer that is due at `now`, if any.
    #[inline]
    fn first_due(&mut self, now: u64) -> Option<First> {
        self.now = now;
        loop {
            let first = self.near.first(&self.slots);
            let until = first.deadline.min(now);
            if until < self.wheel_start || !self.load_next_bucket(until) {
                let is_due = first.deadline <= now && first.deadline != NEVER;
                return is_due.then_some(first);
            }
        }
    }

    /// Returns the earliest deadline of all waiting timers.
    ///
    /// # Time complexity
    ///
    /// *O*(1) if the heap holds the earliest timer, or if the queue holds at most two thousand
    /// timers. Otherwise *O*(*k*) in the number of timers in the first bucket of each width.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let near = self.near.first_deadline(&self.slots);
        if near.is_some_and(|near| near < self.wheel_start) {
            return near;
        }
        let wheel = self.wheel.as_ref();
        let far = wheel.and_then(|wheel| wheel.next_deadline(&self.slots));
        near.into_iter().chain(far).min()
    }

    /// Returns the time at which the queue has something to do: a time at or before the earliest
    /// deadline of all waiting timers. Visits no timers.
    pub(crate) fn first_look(&self) -> Option<u64> {
        let near = self.near.first_deadline(&self.slots);
        let far = self.wheel.as_ref().and_then(|wheel| wheel.first_step());
        near.into_iter().chain(far).min()
    }

    /// Returns the deadline of the timer with this `key`, even if the timer is parked, or `None` if
    /// there is no such timer.
    #[must_use]
    pub fn deadline(&self, key: Key) -> Option<u64> {
        self.slots.get(key).map(|slot| slot.deadline)
    }

    /// Returns a reference to the value of the timer with this `key`, or `None` if there is no such
    /// timer.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.slots.get(key)?.value.as_ref()
    }

    /// Returns a mutable reference to the value of the timer with this `key`, or `None` if there is
    /// no such timer.
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        Some(self.slots.get_mut(key)?.timer_mut())
    }

    /// Returns an iterator over the keys, deadlines and values of all timers, waiting or idle, in
    /// no particular order.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the largest number of timers the queue has held since it was [trimmed](Self::trim).
    pub fn iter(&self) -> impl Iterator<Item = (Key, u64, &T)> {
        self.slots.iter()
    }

    /// Returns the keys of all timers that wait for a deadline at or before `until`, in the order
    /// in which they are due.
    ///
    /// # Time complexity
    ///
    /// *O*(*n* + *k* log *k*), where *n* is the largest number of timers the queue has held since it was
    /// [trimmed](Self::trim), and *k* the number of returned keys.
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
    pub fn waiting_until(&self, until: u64) -> Vec<Key> {
        self.waiting_or_idle_until(until, |_| false)
    }

    /// Returns the same as [`waiting_until`](Self::waiting_until), with the idle timers that count
    /// as waiting.
    pub(crate) fn waiting_or_idle_until(
        &self,
        until: u64,
        counts: impl Fn(Key) -> bool,
    ) -> Vec<Key> {
        let mut waiting = self.slots.waiting_until(until, counts);
        waiting.sort_unstable();
        waiting.into_iter().map(|(.., key)| key).collect()
    }

    /// Returns the number of timers in the queue, waiting or idle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if the queue holds no timer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the place of a timer among equal deadlines.
    pub(crate) fn sequence(&self, key: Key) -> Option<u64> {
        self.slots.get(key).map(|slot| slot.sequence)
    }

    /// Returns how many entries the queue has inserted and moved.
    ///
    /// This measures the work of a queue in a number that is the same on every machine. Each entry
    /// leaves once, so removals do not count.
    #[cfg(test)]
    fn touched(&self) -> u64 {
        self.touched + self.wheel.as_ref().map_or(0, |wheel| wheel.touched())
    }

    fn take_sequence(&mut self) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }

    /// Makes the idle timer at `index` wait for `deadline`.
    #[inline]
    fn attach(&mut self, index: u32, deadline: u64) {
        let slot = self.slots.at_mut(index);
        slot.deadline = deadline;
        if (self.wheel_start..NEVER).contains(&deadline)
            && let Some(wheel) = &mut self.wheel
        {
            wheel.insert(slot, index);
        } else {
            self.attach_near(index, deadline);
        }
    }

    /// Makes the timer at `index` wait on the heap, or lets it be idle.
    #[inline(never)]
    fn attach_near(&mut self, index: u32, deadline: u64) {
        if deadline == NEVER {
            return self.slots.at_mut(index).set_place(Place::Idle);
        }
        // Entries of the sorted list are recognized by a deadline before `wheel_start`, so the wheel may
        // only be rebased once that list is exhausted.
        if let Some(wheel) = &mut self.wheel
            && wheel.is_ahead_of(self.now)
            && self.near.is_list_exhausted()
            && wheel.rebase_if_empty(&mut self.slots, self.now)
        {
            self.wheel_start = wheel.start();
            return self.attach(index, deadline);
        }
        let entry = Entry { deadline, index };
        self.near.heap.push(&mut self.slots, entry);
        self.touched += 1;
        if self.wheel.is_none() && self.near.heap.len() >= self.shape.wheel_threshold {
            let wheel = Wheel::new(self.shape, self.now);
            self.wheel_start = wheel.start();
            self.wheel = Some(Box::new(wheel));
        }
    }

    /// Makes the timer at `index` idle, wherever it waits.
    fn detach(&mut self, index: u32) {
        let slot = self.slots.at_mut(index);
        let (place, deadline) = (slot.place(), slot.deadline);
        slot.deadline = NEVER;
        slot.set_place(Place::Idle);
        match (place, &mut self.wheel) {
            (Place::Idle, _) => {}
            (Place::Bucket(address), Some(wheel)) if deadline >= self.wheel_start => {
                wheel.remove(&mut self.slots, address);
            }
            (Place::Bucket(_), _) => self.near.count_stale(&self.slots),
            (Place::Heap(position), _) => {
                self.near.heap.remove(&mut self.slots, position as usize);
            }
        }
    }

    /// Moves `first`, the earliest near timer, to `deadline`. [`NEVER`] makes it idle.
    #[inline]
    fn rearm_first(&mut self, first: First, deadline: u64) {
        let First { index, in_heap, .. } = first;
        if in_heap && deadline < self.wheel_start {
            self.touched += 1;
            self.slots.at_mut(index).deadline = deadline;
            let entry = Entry { deadline, index };
            return self.near.heap.replace_first(&mut self.slots, entry);
        }
        if in_heap {
            self.near.heap.remove(&mut self.slots, 0);
        } else {
            self.near.advance_list(&self.slots);
        }
        self.attach(index, deadline);
    }

    /// Loads the next occupied bucket that starts at or before `until`, and returns `true` if there
    /// was one.
    #[inline(never)]
    fn load_next_bucket(&mut self, until: u64) -> bool {
        let Some(wheel) = &mut self.wheel else {
            return false;
        };
        let found = wheel.advance(&mut self.slots, until, &mut self.near);
        self.wheel_start = wheel.start();
        found
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
