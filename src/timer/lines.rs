//! The timers of each clock: in the queue, added since the last run, or paused.

use alloc::{collections::BTreeMap, vec::Vec};
use core::num::NonZeroU32;

use bevy_ecs::{component::ComponentId, prelude::*, world::DeferredWorld};

use super::{
    Timer, TimerFired,
    armed::{ArmedTimer, Served},
    cancelled::Cancellations,
    ended::EndedTimers,
    stats::{RunStats, TimerStats},
};
use crate::{
    clock::{ClockKey, ClockTable, Reading, Scope, shift},
    double_buffer::DoubleBuffer,
    queue::{NEVER, TimerKey, TimerQueue},
};

/// The timers of a world, one line per clock.
#[derive(Resource, Debug)]
pub(crate) struct TimerLines {
    /// Indexed by clock key. A line outlives its clock, so that no timer key is ever reused.
    lines: Vec<TimerLine>,
    pub(super) cancelled: Cancellations,
    pub(super) ended: EndedTimers,
    pub(super) stats: TimerStats,
    /// The number of timers armed so far.
    armed: u64,
    /// The components that change how a timer is armed.
    modifiers: [ComponentId; 6],
}

/// The timers of one clock.
#[derive(Debug, Default)]
pub(crate) struct TimerLine {
    pub(crate) queue: TimerQueue<ArmedTimer>,
    added: DoubleBuffer<TimerKey>,
    /// The paused timers, and the reading of the clock when they were paused.
    ///
    /// A tree grows a little at a time. A hash map would move all its entries in one frame.
    paused: BTreeMap<TimerKey, u64>,
    /// The waits of timers whose deadlines were moved.
    rescheduled: BTreeMap<TimerKey, Rescheduled>,
    /// The timers in the middle of a burst.
    bursting: Vec<TimerKey>,
}

/// The wait for a deadline that was moved.
#[derive(Debug)]
struct Rescheduled {
    /// The number of firings at the time of the move.
    count: u64,
    wait: u64,
}

/// A timer that has fired. It is re-armed, or no longer in the queue if this was its last firing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) event: TimerFired,
    pub(crate) clock: ClockKey,
    pub(crate) key: TimerKey,
    /// Whether the timer has an action.
    pub(crate) acts: bool,
}

impl TimerLines {
    pub(crate) fn new(modifiers: [ComponentId; 6]) -> Self {
        Self {
            lines: Vec::new(),
            cancelled: Cancellations::default(),
            ended: EndedTimers::default(),
            stats: TimerStats::default(),
            armed: 0,
            modifiers,
        }
    }

    pub(crate) fn get(&self, clock: ClockKey) -> Option<&TimerLine> {
        self.lines.get(clock as usize)
    }

    pub(crate) fn get_mut(&mut self, clock: ClockKey) -> Option<&mut TimerLine> {
        self.lines.get_mut(clock as usize)
    }

    /// Adds a timer. The next swap arms it. If it is paused, the first swap after it resumes does.
    pub(super) fn add(
        &mut self,
        clock: ClockKey,
        deadline: u64,
        timer: ArmedTimer,
        paused_at: Option<u64>,
    ) -> TimerKey {
        self.armed = self.armed.wrapping_add(1);
        let clock = clock as usize;
        if self.lines.len() <= clock {
            self.lines.resize_with(clock + 1, TimerLine::default);
        }
        self.lines[clock].add(deadline, timer, paused_at)
    }

    pub(super) fn timer_mut(&mut self, clock: ClockKey, key: TimerKey) -> Option<&mut ArmedTimer> {
        self.get_mut(clock)?.queue.get_mut(key)
    }

    /// Removes a timer, and returns `true` if it was armed or paused.
    pub(super) fn cancel(&mut self, clock: ClockKey, key: TimerKey) -> bool {
        let line = self.get_mut(clock);
        line.is_some_and(|line| line.cancel(key))
    }

    /// Returns the number of timers armed so far.
    pub(super) fn armed(&self) -> u64 {
        self.armed
    }

    pub(super) fn modifiers(&self) -> &[ComponentId] {
        &self.modifiers
    }

    /// Starts a run on the clocks of a scope: arms the timers that were added since the previous
    /// run. Returns `true` if there are timers to fire or to end, or cancellations to write.
    pub(super) fn begin_run(&mut self, table: &ClockTable, scope: Scope) -> bool {
        let (mut armed, mut is_due) = (0, false);
        let clocks = table.iter().filter(|(_, row)| table.is_in(row, scope));
        for (key, row) in clocks {
            if let Some(line) = self.get_mut(key) {
                armed += line.swap();
                is_due |= line.has_due(row.reading);
            }
        }
        let cancelled = self.cancelled.len();
        *self.stats.get_mut(scope) = RunStats {
            armed,
            cancelled,
            ..RunStats::default()
        };
        let has_ended = match scope {
            Scope::Of(cadence) => !self.ended.is_empty(cadence),
            Scope::Under(_) => false,
        };
        is_due || has_ended || cancelled > 0
    }

    /// Returns the timers of a clock, and the statistics of the run that fires them.
    pub(super) fn firing(
        &mut self,
        clock: ClockKey,
        scope: Scope,
    ) -> Option<(&mut TimerLine, &mut RunStats)> {
        let line = self.lines.get_mut(clock as usize)?;
        Some((line, self.stats.get_mut(scope)))
    }
}

impl TimerLine {
    fn add(&mut self, deadline: u64, timer: ArmedTimer, paused_at: Option<u64>) -> TimerKey {
        let key = self.queue.insert_parked(deadline, timer);
        match paused_at {
            None => self.push_added(key),
            Some(now) => {
                self.paused.insert(key, now);
            }
        }
        key
    }

    /// Adds a timer for the next swap.
    fn push_added(&mut self, key: TimerKey) {
        // Until the next swap, a timer that is cancelled, rescheduled, or paused and resumed leaves
        // an entry. Their order does not matter: the queue orders by deadline and sequence.
        if self.added.waiting() > 2 * self.queue.len() + 16 {
            self.added.tidy(|&key| self.queue.get(key).is_some());
        }
        self.added.push(key);
    }

    fn swap(&mut self) -> u64 {
        self.added.swap();
        let mut armed = 0;
        for key in self.added.drain() {
            // A timer that was cancelled in the meantime is no longer in the queue.
            if !self.paused.contains_key(&key) && self.queue.release(key) {
                armed += 1;
            }
        }
        armed
    }

    fn cancel(&mut self, key: TimerKey) -> bool {
        let is_cancelled = self.queue.cancel(key).is_some();
        if is_cancelled {
            self.forget(key);
        }
        is_cancelled
    }

    /// Pauses or resumes a timer. A pause moves the deadline by its length.
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
            self.push_added(key);
        }
    }

    pub(crate) fn is_paused(&self, key: TimerKey) -> bool {
        self.paused.contains_key(&key)
    }

    /// Moves the deadline of a timer as if it had just been armed.
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
            None => self.push_added(key),
        }
    }

    /// Returns the length of the wait for the next deadline of a timer.
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

    /// Returns the deadline of a timer. For a paused timer, this is the deadline it would have if
    /// it resumed now.
    pub(crate) fn deadline(&self, key: TimerKey, now: u64) -> Option<u64> {
        let deadline = self.queue.deadline(key)?;
        Some(match self.paused.get(&key) {
            Some(&paused_at) => resumed(deadline, paused_at, now),
            None => deadline,
        })
    }

    /// Advances the queue to the reading of the clock. Returns `true` if a timer is due and the
    /// clock is not stopped.
    pub(super) fn has_due(&mut self, reading: Reading) -> bool {
        !reading.stopped && self.queue.has_due(reading.now)
    }

    /// Returns the earliest deadline, including the timers added since the last swap.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let added = self.added.pending().filter(|&&key| !self.is_paused(key));
        let added = added.filter_map(|&key| self.queue.deadline(key));
        let added = added.filter(|&deadline| deadline != NEVER);
        self.queue.next_deadline().into_iter().chain(added).min()
    }

    /// Fires the first due timer, if any.
    ///
    /// The queue is consistent when this returns, so handlers may do anything.
    #[inline]
    pub(super) fn fire(
        &mut self,
        clock: ClockKey,
        reading: &Reading,
        burst_limit: NonZeroU32,
    ) -> Option<Fired> {
        let now = reading.now;
        let mut due = self.queue.pop_due(now)?;
        let key = due.key();
        let deadline = due.deadline();
        let timer = &mut *due;
        let Served { missed, next } = timer.fire(deadline, now, burst_limit.get());
        let fired = Fired {
            event: TimerFired::of(timer, reading, deadline, missed, next.is_none()),
            clock,
            key,
            acts: timer.acts,
        };
        let begins_burst = timer.burst == 1;
        match next {
            Some(next) => due.rearm(next),
            None => {
                drop(due);
                self.forget(key);
            }
        }
        if begins_burst {
            self.bursting.push(key);
        }
        Some(fired)
    }

    /// Ends the run of this line. Unfinished bursts continue as new bursts in the next run.
    pub(crate) fn end_bursts(&mut self) {
        while let Some(key) = self.bursting.pop() {
            self.end_burst(key);
        }
    }

    fn end_burst(&mut self, key: TimerKey) {
        if let Some(timer) = self.queue.get_mut(key) {
            timer.burst = 0;
        }
    }

    fn forget(&mut self, key: TimerKey) {
        if !self.paused.is_empty() {
            self.paused.remove(&key);
        }
        if !self.rescheduled.is_empty() {
            self.rescheduled.remove(&key);
        }
    }
}

fn resumed(deadline: u64, paused_at: u64, now: u64) -> u64 {
    shift(deadline, i128::from(now) - i128::from(paused_at))
}

/// Changes the queue's copy of the timer of `entity`, if it is armed or paused.
pub(super) fn change_armed(
    world: &mut DeferredWorld,
    entity: Entity,
    change: impl FnOnce(&mut ArmedTimer),
) {
    if let Some((clock, key)) = world.get::<Timer>(entity).and_then(Timer::seat)
        && let Some(mut lines) = world.get_resource_mut::<TimerLines>()
        && let Some(timer) = lines.timer_mut(clock, key)
    {
        change(timer);
    }
}

/// Returns `true` if the timer of an entity is armed or paused.
pub(crate) fn is_armed(world: &World, entity: Entity) -> bool {
    let seat = world.get::<Timer>(entity).and_then(Timer::seat);
    let lines = world.get_resource::<TimerLines>();
    let (Some((clock, key)), Some(lines)) = (seat, lines) else {
        return false;
    };
    let line = lines.get(clock);
    line.is_some_and(|line| line.queue.get(key).is_some())
}
