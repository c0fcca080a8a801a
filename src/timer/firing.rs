//! One firing: the first due timer leaves the queue, or goes to its next deadline.

use core::num::NonZeroU32;

use super::{
    MissedTicks, TimerFired,
    armed::{ArmedTimer, Reaction, Served},
    line::TimerLine,
    random_interval::RandomInterval,
    slack::SlackTimers,
    stats::RunStats,
};
use crate::{
    clock::{ClockKey, PackedClockId, Reading},
    journal::WatchedMap,
    queue::{First, Key},
};

/// The limits for the firings of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) burst: NonZeroU32,
    /// Whether deferrable timers wait for the budget.
    pub(super) defers: bool,
}

/// A timer that has fired. It is re-armed, or no longer in the queue if this was its last firing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) event: TimerFired,
    pub(crate) clock: ClockKey,
    pub(crate) key: Key,
    pub(super) reaction: Reaction,
}

impl TimerLine {
    /// Fires the first due timer, if any.
    ///
    /// The queue is consistent when this returns, so handlers may do anything.
    #[inline]
    pub(super) fn fire(
        &mut self,
        (clock, id): (ClockKey, PackedClockId),
        reading: &Reading,
        limits: Limits,
        stats: &mut RunStats,
    ) -> Option<Fired> {
        loop {
            let mut due = self.queue.pop_due(reading.now)?;
            let deadline = due.deadline();
            let (key, timer) = due.key_and_value();
            let Some(next) = timer.fire_on_time(deadline, reading.now) else {
                let is_deferred = limits.defers && timer.is_deferrable();
                let first = due.put_back();
                if is_deferred {
                    self.defer(key, deadline);
                    continue;
                }
                let fired = self.fire_any(first, (clock, id), reading, limits.burst);
                stats.count(&fired.event);
                return Some(fired);
            };
            let fired = Fired {
                event: TimerFired::of(timer, (id, reading), deadline),
                clock,
                key,
                reaction: timer.reaction,
            };
            due.rearm(next);
            stats.fired += 1;
            return Some(fired);
        }
    }

    /// Lets a due timer wait for the budget.
    fn defer(&mut self, key: Key, deadline: u64) {
        self.queue.park(key, deadline);
        let sequence = self.queue.sequence(key).unwrap_or(0);
        self.deferrable.push(key, deadline, sequence);
    }

    /// Arms the timers that wait for the budget. They are due.
    pub(super) fn release_waiting(&mut self) {
        while let Some(key) = self.deferrable.pop() {
            self.queue.release(key);
        }
    }

    /// Fires the first timer that waits for the budget, if any. If its next deadline has passed, too, it
    /// waits again.
    pub(super) fn fire_waiting(
        &mut self,
        clock: (ClockKey, PackedClockId),
        reading: &Reading,
        limits: Limits,
        stats: &mut RunStats,
    ) -> Option<Fired> {
        let key = self.deferrable.pop()?;
        let deadline = self.queue.deadline(key)?;
        let timer = self.queue.get_mut(key)?;
        let rhythm = (&mut self.random, &mut self.slack);
        let (fired, next) = fire(timer, (key, deadline), clock, reading, limits.burst, rhythm);
        if timer.burst == 1 {
            self.bursting.push(key);
        }
        match next {
            Some(next) if next <= reading.now => self.defer(key, next),
            Some(next) => _ = self.queue.arm(key, next),
            None => {
                self.queue.cancel(key);
                self.forget(key);
            }
        }
        stats.count(&fired.event);
        Some(fired)
    }

    /// Fires the first due timer, which may end, be late or choose its deadlines.
    #[inline(never)]
    fn fire_any(
        &mut self,
        first: First,
        clock: (ClockKey, PackedClockId),
        reading: &Reading,
        burst_limit: NonZeroU32,
    ) -> Fired {
        let mut due = self.queue.pop_again(first);
        let deadline = due.deadline();
        let (key, timer) = due.key_and_value();
        let rhythm = (&mut self.random, &mut self.slack);
        let (fired, next) = fire(timer, (key, deadline), clock, reading, burst_limit, rhythm);
        if timer.burst == 1 {
            self.bursting.push(key);
        }
        match next {
            Some(next) => due.rearm(next),
            None => {
                drop(due);
                self.lifetimes -= usize::from(fired.reaction == Reaction::EndLife);
                self.forget(key);
            }
        }
        fired
    }
}

/// Counts a firing, and returns it with the next deadline.
fn fire(
    timer: &mut ArmedTimer,
    (key, deadline): (Key, u64),
    (clock, id): (ClockKey, PackedClockId),
    reading: &Reading,
    burst_limit: NonZeroU32,
    (random, slack): (&mut WatchedMap<Key, RandomInterval>, &mut SlackTimers),
) -> (Fired, Option<u64>) {
    let random = match timer.is_random() {
        true => random.get_mut(key),
        false => None,
    };
    // A choice is no lateness, so the timer fires as if its window had begun at the deadline.
    let shift = match timer.has_slack() {
        true => slack.shift(key).unwrap_or(0),
        false => 0,
    };
    let burst = timer.burst;
    let [start, now] = [deadline, reading.now].map(|time| time.saturating_sub(shift));
    let Served { missed, next } = match random {
        Some(random) => timer.fire_random(start, now, burst_limit.get(), random),
        None => timer.fire(start, now, burst_limit.get()),
    };
    let next = match timer.has_slack() {
        true => {
            slack.set_offset(reading.offset);
            let next = next.map(|next| slack.choose_next(key, next, deadline));
            let is_late = next.is_some_and(|next| next <= reading.now);
            timer.burst = match timer.missed_ticks {
                MissedTicks::Burst if is_late => burst.saturating_add(1).min(burst_limit.get()),
                _ => 0,
            };
            next
        }
        false => next,
    };
    let event = TimerFired::of(timer, (id, reading), deadline);
    let fired = Fired {
        event: event.with_missed(missed).with_last(next.is_none()),
        clock,
        key,
        reaction: timer.reaction,
    };
    (fired, next)
}
