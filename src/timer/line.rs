//! The timers of one clock: in the queue, added since the last run, or paused.

use alloc::{collections::BTreeSet, vec::Vec};
use core::num::{NonZeroU32, NonZeroU64};

use super::{
    Kind, armed::ArmedTimer, deferrable::DeferrableTimers, pending::resumed,
    random_interval::RandomInterval, saving::Progress, slack::SlackTimers,
};
use crate::{
    clock::Reading,
    double_buffer::DoubleBuffer,
    journal::WatchedMap,
    queue::{Key, NEVER, TimerQueue},
};

/// The timers of one clock.
#[derive(Debug, Default)]
pub(crate) struct TimerLine {
    pub(crate) queue: TimerQueue<ArmedTimer>,
    pub(super) added: DoubleBuffer<Key>,
    /// The paused timers, and the reading of the clock when they were paused.
    ///
    /// A tree grows a little at a time. A hash map would move all its entries in one frame.
    pub(super) paused: WatchedMap<Key, u64>,
    /// The timers of entities that are moving to or from another world. Their time goes on.
    pub(super) in_transit: WatchedMap<Key, ()>,
    /// The waits of timers whose deadlines were moved.
    pub(super) rescheduled: WatchedMap<Key, Rescheduled>,
    /// The intervals of timers that draw them.
    pub(super) random: WatchedMap<Key, RandomInterval>,
    pub(super) slack: SlackTimers,
    pub(super) deferrable: DeferrableTimers,
    /// The timers in the middle of a burst.
    pub(super) bursting: Vec<Key>,
    /// The number of lifetimes in the queue.
    pub(super) lifetimes: usize,
    /// Whether the line is among the touched ones.
    pub(super) is_touched: bool,
}

/// The wait for a deadline that was moved.
#[derive(Clone, Debug)]
pub(super) struct Rescheduled {
    /// The number of firings at the time of the move.
    pub(super) count: u64,
    pub(super) wait: u64,
}

impl TimerLine {
    pub(super) fn add(&mut self, deadline: u64, timer: ArmedTimer) -> Key {
        let key = self.queue.insert_parked(deadline, timer);
        self.push_added(key);
        key
    }

    pub(super) fn add_paused(&mut self, deadline: u64, timer: ArmedTimer, now: u64) -> Key {
        let key = self.queue.insert_parked(deadline, timer);
        self.paused.insert(key, now);
        key
    }

    /// Returns the number of timers, without lifetimes.
    pub(super) fn count(&self) -> usize {
        self.queue.len() - self.lifetimes
    }

    /// Adds a timer for the next swap.
    fn push_added(&mut self, key: Key) {
        // Until the next swap, a timer that is cancelled, rescheduled, or paused and resumed leaves
        // an entry. Their order does not matter: the queue orders by deadline and sequence.
        if self.added.waiting() > 2 * self.queue.len() + 16 {
            self.added.tidy(|&key| self.queue.get(key).is_some());
        }
        self.added.push(key);
    }

    pub(super) fn swap(&mut self) -> u64 {
        self.added.swap();
        let mut armed = 0;
        for key in self.added.drain() {
            // A timer that was cancelled in the meantime is no longer in the queue.
            let is_halted = self.paused.contains_key(key) || self.in_transit.contains_key(key);
            if !is_halted && self.queue.release(key) {
                armed += 1;
            }
        }
        armed
    }

    pub(super) fn cancel(&mut self, key: Key) -> bool {
        self.leave_waiting(key);
        let cancelled = self.queue.cancel(key);
        if let Some(timer) = &cancelled {
            self.lifetimes -= usize::from(timer.kind() == Kind::Lifetime);
            self.forget(key);
        }
        cancelled.is_some()
    }

    pub(super) fn set_paused(&mut self, key: Key, paused: bool, reading: Reading) {
        let Some(deadline) = self.queue.deadline(key) else {
            return;
        };
        self.end_burst(key);
        if paused {
            if !self.is_paused(key) {
                self.leave_waiting(key);
                self.queue.park(key, deadline);
                self.slack.leave(key);
                self.paused.insert(key, reading.now);
            }
        } else if let Some(paused_at) = self.paused.remove(key) {
            self.slack.set_offset(reading.offset);
            self.wait_until(key, resumed(deadline, paused_at, reading.now), false);
        }
    }

    pub(super) fn set_in_transit(&mut self, key: Key, is_in_transit: bool) {
        let Some(deadline) = self.queue.deadline(key) else {
            return;
        };
        self.end_burst(key);
        if is_in_transit {
            self.leave_waiting(key);
            self.in_transit.insert(key, ());
            self.queue.park(key, deadline);
            self.slack.leave(key);
        } else {
            self.in_transit.remove(key);
            self.wait_until(key, deadline, false);
        }
    }

    /// Lets a timer wait for its deadline, unless it is halted. Outside a run, the next run arms it.
    pub(super) fn wait_until(&mut self, key: Key, deadline: u64, is_in_run: bool) {
        if self.is_halted(key) {
            self.queue.park(key, deadline);
            return;
        }
        let deadline = self.slack.enter(key, deadline);
        match is_in_run {
            true => _ = self.queue.arm(key, deadline),
            false => {
                self.queue.park(key, deadline);
                self.push_added(key);
            }
        }
    }

    pub(crate) fn is_paused(&self, key: Key) -> bool {
        self.paused.contains_key(key)
    }

    pub(super) fn is_in_transit(&self, key: Key) -> bool {
        self.in_transit.contains_key(key)
    }

    /// Returns `true` if a timer is paused or in transit, so that it does not fire.
    fn is_halted(&self, key: Key) -> bool {
        self.is_paused(key) || self.is_in_transit(key)
    }

    /// Moves the deadline of a timer as if it had just been armed. With slack, this is the start of its
    /// window.
    pub(super) fn reschedule(&mut self, key: Key, deadline: u64, wait: u64, reading: Reading) {
        let Some(timer) = self.queue.get(key) else {
            return;
        };
        let count = timer.count();
        self.rescheduled.insert(key, Rescheduled { count, wait });
        self.end_burst(key);
        self.leave_waiting(key);
        self.slack.reset(key);
        self.queue.park_anew(key, deadline);
        if let Some(paused_at) = self.paused.get_mut(key) {
            *paused_at = reading.now;
        }
        self.slack.set_offset(reading.offset);
        self.wait_until(key, deadline, false);
    }

    /// Sets the interval from the next deadline on. The current wait stays what it is.
    pub(super) fn set_interval(&mut self, key: Key, interval: Option<NonZeroU64>, first_wait: u64) {
        let wait = self.planned_wait(key, first_wait);
        if let (Some(wait), Some(timer)) = (wait, self.queue.get_mut(key)) {
            timer.set_interval(interval);
            let count = timer.count();
            self.rescheduled.insert(key, Rescheduled { count, wait });
        }
    }

    /// Lets a timer that was just inserted go on from a saved state.
    pub(super) fn resume_from(&mut self, key: Key, progress: &Progress, first_wait: u64) {
        let length = progress.wait.length;
        if let Some(timer) = self.queue.get_mut(key) {
            timer.set_count(progress.count);
            timer.set_interval(progress.interval);
            timer.set_random(progress.random.is_some_and(|random| random.is_on));
            timer.set_left(progress.left.map(NonZeroU32::get));
            let count = timer.count();
            if self.planned_wait(key, first_wait) != Some(length) {
                let wait = length;
                self.rescheduled.insert(key, Rescheduled { count, wait });
            }
        }
    }

    /// Returns the random intervals of a timer, if it has any.
    pub(super) fn random(&self, key: Key) -> Option<RandomInterval> {
        self.random.get(key).copied()
    }

    /// Returns the time from the start of a timer's window to its deadline, if it has chosen one.
    pub(super) fn shift(&self, key: Key) -> Option<u64> {
        self.slack.shift(key)
    }

    /// Returns the length of the wait for the next deadline of a timer.
    pub(crate) fn wait(&self, key: Key, first_wait: u64) -> Option<u64> {
        Some(self.slack.wait(key, self.planned_wait(key, first_wait)?))
    }

    /// Returns the length of the wait without the choices of a timer with slack.
    fn planned_wait(&self, key: Key, first_wait: u64) -> Option<u64> {
        let timer = self.queue.get(key)?;
        let rescheduled = self.rescheduled.get(key);
        let rescheduled = rescheduled.filter(|moved| moved.count == timer.count());
        Some(match (rescheduled, timer.interval) {
            (Some(moved), _) => moved.wait,
            (None, Some(interval)) if timer.count() > 0 => {
                let random = self.random.get(key).filter(|_| timer.is_random());
                random.map_or(interval.get(), |random| random.wait)
            }
            (None, _) => first_wait,
        })
    }

    /// Returns the deadline of a timer. For a paused timer, this is the deadline it would have if
    /// it resumed now.
    pub(crate) fn deadline(&self, key: Key, now: u64) -> Option<u64> {
        let deadline = self.queue.deadline(key)?;
        Some(match self.paused.get(key) {
            Some(&paused_at) => resumed(deadline, paused_at, now),
            None => deadline,
        })
    }

    /// Returns the earliest deadline, including the timers added since the last swap.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let armed = self.queue.next_deadline().into_iter();
        let waiting = self.deferrable.waiting();
        let waiting = waiting.filter_map(|key| self.queue.deadline(key));
        armed.chain(waiting).chain(self.added_deadlines()).min()
    }

    /// Returns the time at which a run must look at the queue, including the timers added since the
    /// last swap.
    pub(super) fn first_look(&self) -> Option<u64> {
        let armed = self.first_armed_look().into_iter();
        armed.chain(self.added_deadlines()).min()
    }

    /// Returns the time at which a run must look at the queue, or a time in the past if a timer waits
    /// for the budget.
    pub(super) fn first_armed_look(&self) -> Option<u64> {
        match self.deferrable.is_anyone_waiting() {
            true => Some(0),
            false => self.queue.first_look(),
        }
    }

    fn added_deadlines(&self) -> impl Iterator<Item = u64> {
        let added = self.added.pending().filter(|&&key| !self.is_halted(key));
        let added = added.filter_map(|&key| self.queue.deadline(key));
        added.filter(|&deadline| deadline != NEVER)
    }

    /// Returns the timers that are due at or before `until`, in order, including those added since
    /// the last swap.
    pub(super) fn due_until(&self, until: u64) -> Vec<Key> {
        let added = self.added.pending().filter(|&&key| !self.is_halted(key));
        let waiting = self.deferrable.waiting();
        let parked: BTreeSet<Key> = added.copied().chain(waiting).collect();
        let counts = |key| parked.contains(&key);
        self.queue.waiting_or_idle_until(until, counts)
    }

    /// Takes a timer out of those that wait for the budget. Its deadline must still be the same.
    pub(super) fn leave_waiting(&mut self, key: Key) {
        if self.deferrable.is_anyone_waiting()
            && let (Some(deadline), Some(sequence)) =
                (self.queue.deadline(key), self.queue.sequence(key))
        {
            self.deferrable.leave(key, deadline, sequence);
        }
    }

    /// Ends the run of this line. Unfinished bursts continue as new bursts in the next run.
    pub(crate) fn end_bursts(&mut self) {
        while let Some(key) = self.bursting.pop() {
            self.end_burst(key);
        }
    }

    fn end_burst(&mut self, key: Key) {
        if let Some(timer) = self.queue.get_mut(key) {
            timer.burst = 0;
        }
    }

    pub(super) fn forget(&mut self, key: Key) {
        if !self.paused.is_empty() {
            self.paused.remove(key);
        }
        if !self.in_transit.is_empty() {
            self.in_transit.remove(key);
        }
        if !self.rescheduled.is_empty() {
            self.rescheduled.remove(key);
        }
        if !self.random.is_empty() {
            self.random.remove(key);
        }
        self.slack.remove(key);
        self.deferrable.remove(key);
    }
}
