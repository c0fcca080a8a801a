//! The timers of one clock.

use core::num::NonZeroU32;

use bevy_ecs::entity::Entity;
use bevy_platform::collections::HashMap;

use super::{
    ArmedTimer, TimerFired,
    armed::Firing,
    timelines::{Age, ClockKey},
};
use crate::{
    clock::{Reading, shift},
    deferred::Deferred,
    queue::{NEVER, TimerKey, TimerQueue},
};

/// What drives a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Source {
    Real,
    Virtual,
    Frames,
    Fixed,
    /// Another clock, which is older.
    Clock(ClockKey),
    /// Nothing: its parent is unknown, or gone.
    #[default]
    Nothing,
}

/// The timers of one clock: those in the queue, those added since, those that are paused, and what
/// the clock says in this run.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The entity with the [`Clock`](crate::Clock), or `None` if the place is vacant.
    pub(crate) clock: Option<Entity>,
    pub(crate) age: Age,
    pub(crate) source: Source,
    /// Whether it runs in the fixed schedule.
    pub(crate) is_fixed: bool,
    pub(crate) reading: Reading,
    /// How much has passed between this run and the one before.
    pub(crate) delta: u64,
    /// What it said in the last run. A fast-forward is none.
    pub(crate) last_run: u64,
    /// What its source showed when the clock was read last.
    pub(crate) seen: u64,
    pub(crate) queue: TimerQueue<ArmedTimer>,
    added: Deferred<TimerKey>,
    /// The paused timers, and what the clock said when they were paused.
    paused: HashMap<TimerKey, u64>,
    rescheduled: HashMap<TimerKey, Rescheduled>,
}

/// A deadline that somebody has moved.
#[derive(Debug)]
struct Rescheduled {
    /// How often the timer had fired.
    count: u64,
    /// How long it was to wait.
    wait: u64,
}

impl Timeline {
    /// Takes a timer in, to be armed with the next swap, or when it is resumed.
    pub(super) fn add(
        &mut self,
        deadline: u64,
        timer: ArmedTimer,
        paused_at: Option<u64>,
    ) -> TimerKey {
        let key = self.queue.insert_parked(deadline, timer);
        match paused_at {
            None => self.added.push(key),
            Some(now) => {
                self.paused.insert(key, now);
            }
        }
        key
    }

    /// Arms what has been added since the last time, and says how many.
    pub(crate) fn swap_added(&mut self) -> u64 {
        self.added.swap();
        let mut armed = 0;
        for key in self.added.drain() {
            // What has been cancelled meanwhile is not there any more.
            if !self.paused.contains_key(&key) && self.queue.release(key) {
                armed += 1;
            }
        }
        armed
    }

    /// Takes a timer out, if there is something to cancel.
    pub(super) fn cancel(&mut self, key: TimerKey) -> Option<ArmedTimer> {
        let cancelled = self.queue.cancel(key)?;
        self.forget(key);
        Some(cancelled)
    }

    /// Stops a timer, or lets it go on from where it was. A pause moves the deadline by as long as
    /// it lasts.
    pub(super) fn set_paused(&mut self, key: TimerKey, paused: bool, now: u64) {
        let Some(deadline) = self.queue.deadline(key) else {
            return;
        };
        self.end_burst(key);
        if paused {
            self.paused.entry(key).or_insert_with(|| {
                self.queue.park(key, deadline);
                now
            });
        } else if let Some(paused_at) = self.paused.remove(&key) {
            self.queue.park(key, resumed(deadline, paused_at, now));
            self.added.push(key);
        }
    }

    /// What is moved to another run begins a burst of its own there.
    fn end_burst(&mut self, key: TimerKey) {
        if let Some(timer) = self.queue.get_mut(key) {
            timer.burst = 0;
        }
    }

    /// What is still due when the clock is stopped in the middle of a run is left for another.
    pub(crate) fn end_bursts(&mut self) {
        for key in self.queue.waiting_until(self.reading.now) {
            self.end_burst(key);
        }
    }

    /// Lets go of what is kept for few timers, if it is kept for this one.
    fn forget(&mut self, key: TimerKey) {
        if !self.paused.is_empty() {
            self.paused.remove(&key);
        }
        if !self.rescheduled.is_empty() {
            self.rescheduled.remove(&key);
        }
    }

    /// Gives a timer another deadline, as if it had just been armed, and notes how long it is to
    /// wait in all.
    pub(super) fn reschedule(&mut self, key: TimerKey, deadline: u64, wait: u64, now: u64) {
        let Some(timer) = self.queue.get(key) else {
            return;
        };
        let count = timer.count();
        self.rescheduled.insert(key, Rescheduled { count, wait });
        self.end_burst(key);
        self.queue.park_anew(key, deadline);
        match self.paused.get_mut(&key) {
            Some(paused_at) => *paused_at = now,
            None => self.added.push(key),
        }
    }

    /// Returns how long a timer waits in all for its next deadline.
    pub(crate) fn wait(&self, key: TimerKey, first_wait: u64) -> Option<u64> {
        let timer = self.queue.get(key)?;
        let rescheduled = self.rescheduled.get(&key);
        let rescheduled = rescheduled.filter(|moved| moved.count == timer.count());
        Some(match (rescheduled, timer.interval) {
            (Some(moved), _) => moved.wait,
            (None, Some(interval)) if timer.count() > 0 => interval.get(),
            (None, _) => first_wait,
        })
    }

    pub(crate) fn is_paused(&self, key: TimerKey) -> bool {
        self.paused.contains_key(&key)
    }

    /// Returns the deadline of a timer; of one that is paused, what it would be if it were resumed
    /// now.
    pub(crate) fn deadline(&self, key: TimerKey, now: u64) -> Option<u64> {
        let deadline = self.queue.deadline(key)?;
        Some(match self.paused.get(&key) {
            Some(&paused_at) => resumed(deadline, paused_at, now),
            None => deadline,
        })
    }

    /// Returns the earliest deadline that is waited for, also by what has just been added.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let waiting = self.queue.next_deadline().into_iter();
        waiting.chain(self.added_deadlines()).min()
    }

    /// Returns how far the clock has to go until something is due.
    pub(crate) fn until_next(&self) -> Option<u64> {
        let next = self.next_deadline()?;
        Some(next.saturating_sub(self.reading.now))
    }

    /// Whether there is no timer, and none to forget.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.added.pending().next().is_none()
    }

    fn added_deadlines(&self) -> impl Iterator<Item = u64> {
        let added = self.added.pending().filter(|&&key| !self.is_paused(key));
        let deadlines = added.filter_map(|&key| self.queue.deadline(key));
        deadlines.filter(|&deadline| deadline != NEVER)
    }

    /// Whether there is nothing that drives it.
    pub(crate) fn is_orphan(&self) -> bool {
        self.source == Source::Nothing
    }

    /// Whether something may be due.
    pub(super) fn may_fire(&self) -> bool {
        !self.reading.stopped && self.queue.may_be_due(self.reading.now)
    }

    /// Fires the first timer that is due, if any is, and gives back its key. It is re-armed, or out
    /// of the queue if this was its last time.
    ///
    /// The queue is whole and up to date when this returns, so handlers can run and do anything.
    #[inline]
    pub(crate) fn fire(&mut self, burst_limit: NonZeroU32) -> Option<(TimerFired, TimerKey, bool)> {
        let Reading { now, stopped, .. } = self.reading;
        if stopped {
            return None;
        }
        let mut due = self.queue.pop_due(now)?;
        let key = due.key();
        let deadline = due.deadline();
        let timer = &mut *due;
        let Firing { missed, next } = timer.fire(deadline, now, burst_limit.get());
        let acts = timer.acts;
        let fired = TimerFired::new(timer, self.reading, deadline, missed, next.is_none());
        match next {
            Some(next) => due.rearm(next),
            None => {
                drop(due);
                self.forget(key);
            }
        }
        Some((fired, key, acts))
    }
}

fn resumed(deadline: u64, paused_at: u64, now: u64) -> u64 {
    shift(deadline, i128::from(now) - i128::from(paused_at))
}
