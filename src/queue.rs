//! The queue of timers: what comes out is in exact (deadline, sequence) order.
//!
//! It knows no Bevy and reads no clock, so it can be tested, measured and used without an ECS.
//! A deadline is a plain `u64` on a time line of the caller's choice: the timers of this crate
//! count nanoseconds, a turn-based game may count turns.
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
//!     now_due.push(due.into_value());
//! }
//! assert_eq!(now_due, ["cake", "walk"]);
//! assert_eq!(queue.next_deadline(), Some(30));
//! ```

mod slots;

use alloc::collections::BinaryHeap;
use core::{
    cmp::Reverse,
    fmt,
    ops::{Deref, DerefMut},
};

use slots::Slots;
pub use slots::TimerKey;

/// The deadline that is never reached: the end of every time line.
///
/// Arithmetic on deadlines saturates here. In nanoseconds it lies 584 years after the clock's
/// start.
pub const NEVER: u64 = u64::MAX;

/// A min-heap of timers, each with a value, popped in exact (deadline, sequence) order.
///
/// A timer stays in the queue from [`insert`](Self::insert) or [`insert_idle`](Self::insert_idle) until
/// it is [cancelled](Self::cancel), or popped and not re-armed. In between it is either waiting
/// for its deadline or idle: not yet armed, armed for [`NEVER`], or popped and in
/// the hands of the caller.
///
/// The sequence is given at `insert` or `insert_idle` and kept through every re-arming, so timers
/// that share a deadline come out in the order in which they came in, always.
///
/// Cancelling leaves a dead entry behind, which is dropped when it surfaces, or in one sweep
/// when more than half of the entries are dead; the sweep is paid for by the cancels before it.
pub struct TimerQueue<T> {
    slots: Slots<T>,
    /// Its top is alive, so that the next deadline can be read without touching anything.
    heap: BinaryHeap<Reverse<Entry>>,
    dead: usize,
    next_sequence: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline: u64,
    sequence: u64,
    index: u32,
    /// Which arming of this timer the entry stands for; the others are dead.
    arming: u32,
}

impl<T> TimerQueue<T> {
    /// Creates an empty queue. It does not allocate until something is put in.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: Slots::new(),
            heap: BinaryHeap::new(),
            dead: 0,
            next_sequence: 0,
        }
    }

    /// Puts `value` in, due at `deadline`. One that is due at [`NEVER`] stays until it is
    /// cancelled or armed again.
    ///
    /// # Panics
    ///
    /// Panics if the queue holds 2^32 - 1 timers.
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
        let key = self.insert_idle(value);
        self.arm(key, deadline);
        key
    }

    /// Puts `value` in without a deadline: it gets its key and its sequence, and is idle.
    ///
    /// For a caller that collects what is added and arms all of it later, as this crate does
    /// between two frames: the timer can be looked up and cancelled from now on, and keeps its
    /// place in the order of equal deadlines.
    ///
    /// # Panics
    ///
    /// Panics if the queue holds 2^32 - 1 timers.
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
    /// let early_bird = queue.insert_idle("early bird");
    /// queue.insert(5, "late riser");
    /// queue.arm(early_bird, 5);
    /// assert_eq!(*queue.pop_due(5).unwrap(), "early bird");
    /// ```
    pub fn insert_idle(&mut self, value: T) -> TimerKey {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.slots.insert(sequence, value)
    }

    /// Sets the deadline of the timer behind `key`, whatever it was doing, and says whether
    /// there is such a timer.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    pub fn arm(&mut self, key: TimerKey, deadline: u64) -> bool {
        let Some(slot) = self.slots.get_mut(key) else {
            return false;
        };
        let was_waiting = slot.deadline != NEVER;
        slot.deadline = deadline;
        slot.arming = slot.arming.wrapping_add(1);
        if deadline != NEVER {
            self.heap.push(Reverse(Entry {
                deadline,
                sequence: slot.sequence,
                index: key.index(),
                arming: slot.arming,
            }));
        }
        if was_waiting {
            self.bury_one();
        }
        true
    }

    /// Takes the timer behind `key` out, and hands its value back.
    ///
    /// Cancelling twice is harmless: the key of a timer that is gone gives `None`, and is never
    /// the key of another timer of this queue. Keys of other queues are not told apart.
    ///
    /// # Time complexity
    ///
    /// *O*(1), amortised: one cancel in *n* sweeps the dead entries out.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        let slot = self.slots.remove(key)?;
        if slot.deadline != NEVER {
            self.bury_one();
        }
        Some(slot.value)
    }

    /// Takes the earliest timer whose deadline is at or before `now`, or `None` if nothing is
    /// due. Dropping what is returned lets the timer go.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised; *O*(1) when nothing is due.
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
    #[expect(clippy::missing_panics_doc, reason = "the top of the heap is alive")]
    pub fn pop_due(&mut self, now: u64) -> Option<Due<'_, T>> {
        let Reverse(first) = *self.heap.peek()?;
        if first.deadline > now {
            return None;
        }
        self.heap.pop();
        self.drop_dead_top();
        let (key, slot) = self
            .slots
            .occupied_mut(first.index)
            .expect("the top of the heap is alive");
        slot.deadline = NEVER;
        Some(Due {
            key,
            deadline: first.deadline,
            rearmed: false,
            queue: self,
        })
    }

    /// Returns the earliest deadline that anything is waiting for.
    ///
    /// # Time complexity
    ///
    /// *O*(1).
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(first)| first.deadline)
    }

    /// Returns the deadline of the timer behind `key`, [`NEVER`] if it is idle, or `None` if it
    /// is not in this queue.
    #[must_use]
    pub fn deadline(&self, key: TimerKey) -> Option<u64> {
        self.slots.get(key).map(|slot| slot.deadline)
    }

    /// Returns the value of the timer behind `key`, or `None` if it is not in this queue.
    #[must_use]
    pub fn get(&self, key: TimerKey) -> Option<&T> {
        self.slots.get(key).map(|slot| &slot.value)
    }

    /// Returns the value of the timer behind `key` for changing, or `None` if it is not in this
    /// queue.
    #[must_use]
    pub fn get_mut(&mut self, key: TimerKey) -> Option<&mut T> {
        self.slots.get_mut(key).map(|slot| &mut slot.value)
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

    fn is_alive(slots: &Slots<T>, entry: &Entry) -> bool {
        slots.occupied(entry.index).is_some_and(|slot| {
            slot.sequence == entry.sequence
                && slot.arming == entry.arming
                && slot.deadline == entry.deadline
        })
    }

    /// Counts one more dead entry, and sweeps when they are the majority.
    fn bury_one(&mut self) {
        self.dead += 1;
        if self.dead > self.heap.len() / 2 {
            let slots = &self.slots;
            self.heap
                .retain(|Reverse(entry)| Self::is_alive(slots, entry));
            self.dead = 0;
        }
        self.drop_dead_top();
    }

    fn drop_dead_top(&mut self) {
        while let Some(Reverse(first)) = self.heap.peek()
            && !Self::is_alive(&self.slots, first)
        {
            self.heap.pop();
            self.dead -= 1;
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

/// A timer that has just been popped: re-arm it, or let it go.
///
/// It dereferences to the timer's value. Dropping it takes the timer out of the queue, as does
/// [`into_value`](Self::into_value); [`rearm`](Self::rearm) keeps it, with its key and sequence.
#[must_use = "dropping it takes the timer out of the queue"]
pub struct Due<'a, T> {
    queue: &'a mut TimerQueue<T>,
    key: TimerKey,
    deadline: u64,
    rearmed: bool,
}

impl<T> Due<'_, T> {
    /// Returns the key of this timer.
    #[must_use]
    pub fn key(&self) -> TimerKey {
        self.key
    }

    /// Returns the deadline that was reached.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Puts the timer back, due at `deadline`. One already past is popped again before anything
    /// later.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortised.
    pub fn rearm(mut self, deadline: u64) {
        self.rearmed = self.queue.arm(self.key, deadline);
    }

    /// Takes the timer out of the queue for its value.
    #[expect(clippy::missing_panics_doc, reason = "a popped timer has a value")]
    #[must_use]
    pub fn into_value(self) -> T {
        self.queue.cancel(self.key).expect(POPPED)
    }
}

const POPPED: &str = "a popped timer keeps its slot until it is re-armed or let go";

impl<T> Deref for Due<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.queue.get(self.key).expect(POPPED)
    }
}

impl<T> DerefMut for Due<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.queue.get_mut(self.key).expect(POPPED)
    }
}

impl<T> Drop for Due<'_, T> {
    fn drop(&mut self) {
        if !self.rearmed {
            self.queue.cancel(self.key);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Due<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due")
            .field("key", &self.key)
            .field("deadline", &self.deadline)
            .field("value", &**self)
            .finish()
    }
}
