//! The guard of a popped timer.

use core::{
    fmt,
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
};

use super::{Key, NEVER, TimerQueue, near::First, slots::Slot};

/// A timer that has just been popped. Re-arm it or drop it.
///
/// A `Due` dereferences to the timer's value. Dropping it removes the timer from the queue, as does
/// [`into_value`](Self::into_value). [`rearm`](Self::rearm) keeps the timer, with its key and its
/// sequence number.
#[must_use = "dropping it takes the timer out of the queue"]
pub struct Due<'a, T> {
    queue: &'a mut TimerQueue<T>,
    first: First,
}

impl<'a, T> Due<'a, T> {
    pub(super) fn new(queue: &'a mut TimerQueue<T>, first: First) -> Self {
        Self { queue, first }
    }

    /// Returns the key of this timer.
    #[must_use]
    pub fn key(&self) -> Key {
        let index = self.first.index;
        self.queue.slots.at(index).key(index)
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.queue.slots.at(self.first.index).sequence
    }

    /// Returns the deadline that was reached.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.first.deadline
    }

    /// Re-arms the timer for `deadline`.
    ///
    /// If `deadline` has also passed, the timer pops again before all later timers.
    ///
    /// # Time complexity
    ///
    /// *O*(log *n*), amortized.
    #[inline]
    pub fn rearm(self, deadline: u64) {
        let mut due = ManuallyDrop::new(self);
        let first = due.first;
        due.queue.rearm_first(first, deadline);
    }

    /// Returns the key and the value of this timer.
    #[inline]
    pub(crate) fn key_and_value(&mut self) -> (Key, &mut T) {
        let index = self.first.index;
        let slot = self.queue.slots.at_mut(index);
        (slot.key(index), slot.timer_mut())
    }

    /// Removes the timer from the queue and returns its value.
    #[expect(clippy::missing_panics_doc, reason = "a popped timer has a value")]
    #[must_use]
    pub fn into_value(self) -> T {
        let value = ManuallyDrop::new(self).remove(|slot| slot.value.take());
        value.flatten().expect("a popped timer has a value")
    }

    fn remove<Out>(&mut self, read: impl FnOnce(&mut Slot<T>) -> Out) -> Option<Out> {
        let (key, first) = (self.key(), self.first);
        self.queue.rearm_first(first, NEVER);
        let taken = self.queue.slots.take(key, read);
        let out = taken.map(|(out, _)| out);
        self.queue.slots.vacate(first.index);
        out
    }
}

impl<T> Deref for Due<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.queue.slots.at(self.first.index).timer()
    }
}

impl<T> DerefMut for Due<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.queue.slots.at_mut(self.first.index).timer_mut()
    }
}

impl<T> Drop for Due<'_, T> {
    fn drop(&mut self) {
        self.remove(|_| ());
    }
}

impl<T: fmt::Debug> fmt::Debug for Due<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due")
            .field("key", &self.key())
            .field("deadline", &self.first.deadline)
            .field("value", &**self)
            .finish()
    }
}
