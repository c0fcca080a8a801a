//! The timers of each clock: in the queue, added since the last run, or paused.

use alloc::{collections::BTreeMap, vec::Vec};
use core::{mem, num::NonZeroU32};

use bevy_ecs::{component::ComponentId, prelude::*, world::DeferredWorld};

use super::{
    Arms, Kind, Timer, TimerFired,
    armed::{ArmedTimer, Reaction, Served},
    cancellations::Cancellations,
    ended::EndedTimers,
    pending::{PendingTimers, resumed},
    place::Place,
    random_interval::RandomInterval,
    stats::{RunStats, TimerStats},
};
use crate::{
    clock::{ClockKey, ClockTable, PackedClockId, Reading, Scope},
    double_buffer::DoubleBuffer,
    queue::{Key, NEVER, TimerQueue},
};

/// The timers of a world, one line per clock.
#[derive(Resource, Debug)]
pub(crate) struct TimerLines {
    /// Indexed by clock key. A line outlives its clock, so that no timer key is ever reused.
    lines: Vec<TimerLine>,
    pub(super) pending: PendingTimers,
    pub(super) cancelled: Cancellations,
    pub(super) ended: EndedTimers,
    pub(super) stats: TimerStats,
    /// The number of random numbers drawn so far.
    draws: u64,
    /// The number of timers armed since the last run.
    armed: u64,
    /// The components that change how a timer is armed.
    modifiers: [ComponentId; 7],
}

/// The timers of one clock.
#[derive(Debug, Default)]
pub(crate) struct TimerLine {
    pub(crate) queue: TimerQueue<ArmedTimer>,
    added: DoubleBuffer<Key>,
    /// The paused timers, and the reading of the clock when they were paused.
    ///
    /// A tree grows a little at a time. A hash map would move all its entries in one frame.
    paused: BTreeMap<Key, u64>,
    /// The waits of timers whose deadlines were moved.
    rescheduled: BTreeMap<Key, Rescheduled>,
    /// The intervals of timers that draw them.
    random: BTreeMap<Key, RandomInterval>,
    /// The timers in the middle of a burst.
    bursting: Vec<Key>,
    /// The number of lifetimes in the queue.
    lifetimes: usize,
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
    pub(crate) key: Key,
    pub(super) reaction: Reaction,
}

impl TimerLines {
    pub(crate) fn new(modifiers: [ComponentId; 7]) -> Self {
        Self {
            lines: Vec::new(),
            pending: PendingTimers::default(),
            cancelled: Cancellations::default(),
            ended: EndedTimers::default(),
            stats: TimerStats::default(),
            draws: 0,
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

    /// Arms a timer, unless it is paused. Outside a run, the next run arms it.
    pub(super) fn insert(
        &mut self,
        clock: ClockKey,
        deadline: u64,
        timer: ArmedTimer,
        paused_at: Option<u64>,
        random: Option<RandomInterval>,
        is_in_run: bool,
    ) -> Key {
        let clock = clock as usize;
        if self.lines.len() <= clock {
            self.lines.resize_with(clock + 1, TimerLine::default);
        }
        let line = &mut self.lines[clock];
        line.lifetimes += usize::from(timer.kind() == Kind::Lifetime);
        let key = match paused_at {
            None if is_in_run => {
                self.armed += 1;
                line.queue.insert(deadline, timer)
            }
            None => line.add(deadline, timer),
            Some(now) => line.add_paused(deadline, timer, now),
        };
        if let Some(random) = random {
            line.random.insert(key, random);
        }
        key
    }

    pub(super) fn timer_mut(&mut self, clock: ClockKey, key: Key) -> Option<&mut ArmedTimer> {
        self.get_mut(clock)?.queue.get_mut(key)
    }

    /// Removes a timer from its place, and returns `true` if it was pending, armed or paused.
    pub(super) fn leave(&mut self, place: Place) -> bool {
        match place {
            Place::Pending(index) => self.pending.cancel(index),
            Place::Armed(clock, key) => {
                let line = self.get_mut(clock);
                line.is_some_and(|line| line.cancel(key))
            }
            Place::Nowhere | Place::Reported(_) => false,
        }
    }

    /// Returns `true` if there is a pending, armed or paused timer at a place.
    pub(super) fn is_at(&self, place: Place) -> bool {
        match place {
            Place::Pending(index) => self.pending.get(index).is_some(),
            Place::Armed(clock, key) => {
                let line = self.get(clock);
                line.is_some_and(|line| line.queue.get(key).is_some())
            }
            Place::Nowhere | Place::Reported(_) => false,
        }
    }

    /// Pauses or resumes the timer at a place. A pause moves the deadline by its length.
    pub(super) fn set_paused(&mut self, place: Place, is_paused: bool, now: u64) {
        match place {
            Place::Pending(index) => {
                let start = self.pending.get_mut(index);
                if let Some(start) = start.and_then(|pending| pending.start.as_mut()) {
                    start.set_paused(is_paused, now);
                }
            }
            Place::Armed(clock, key) => {
                if let Some(line) = self.get_mut(clock) {
                    line.set_paused(key, is_paused, now);
                }
            }
            Place::Nowhere | Place::Reported(_) => {}
        }
    }

    /// Counts a random number, and returns its index.
    pub(super) fn next_draw(&mut self) -> u64 {
        let draw = self.draws;
        self.draws = draw.wrapping_add(1);
        draw
    }

    pub(super) fn modifiers(&self) -> &[ComponentId] {
        &self.modifiers
    }

    /// Starts a run on the clocks of a scope: arms the timers that were added since the previous
    /// run. Returns `true` if there are timers to fire or to end, or cancellations to write.
    pub(super) fn begin_run(&mut self, table: &ClockTable, scope: Scope) -> bool {
        let (mut armed, mut is_due) = (mem::take(&mut self.armed), false);
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
    fn add(&mut self, deadline: u64, timer: ArmedTimer) -> Key {
        let key = self.queue.insert_parked(deadline, timer);
        self.push_added(key);
        key
    }

    fn add_paused(&mut self, deadline: u64, timer: ArmedTimer, now: u64) -> Key {
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

    fn cancel(&mut self, key: Key) -> bool {
        let cancelled = self.queue.cancel(key);
        if let Some(timer) = &cancelled {
            self.lifetimes -= usize::from(timer.kind() == Kind::Lifetime);
            self.forget(key);
        }
        cancelled.is_some()
    }

    fn set_paused(&mut self, key: Key, paused: bool, now: u64) {
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

    pub(crate) fn is_paused(&self, key: Key) -> bool {
        self.paused.contains_key(&key)
    }

    /// Moves the deadline of a timer as if it had just been armed.
    pub(super) fn reschedule(&mut self, key: Key, deadline: u64, wait: u64, now: u64) {
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
    pub(crate) fn wait(&self, key: Key, first_wait: u64) -> Option<u64> {
        let timer = self.queue.get(key)?;
        let rescheduled = self.rescheduled.get(&key);
        let rescheduled = rescheduled.filter(|moved| moved.count == timer.count());
        Some(match (rescheduled, timer.interval) {
            (Some(moved), _) => moved.wait,
            (None, Some(interval)) if timer.count() > 0 => {
                let random = self.random.get(&key);
                random.map_or(interval.get(), |random| random.wait)
            }
            (None, _) => first_wait,
        })
    }

    /// Returns the deadline of a timer. For a paused timer, this is the deadline it would have if
    /// it resumed now.
    pub(crate) fn deadline(&self, key: Key, now: u64) -> Option<u64> {
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
        (clock, id): (ClockKey, PackedClockId),
        reading: &Reading,
        burst_limit: NonZeroU32,
    ) -> Option<Fired> {
        let now = reading.now;
        let mut due = self.queue.pop_due(now)?;
        let key = due.key();
        let deadline = due.deadline();
        let timer = &mut *due;
        let random = match timer.is_random() {
            true => self.random.get_mut(&key),
            false => None,
        };
        let Served { missed, next } = match random {
            Some(random) => timer.fire_random(deadline, now, burst_limit.get(), random),
            None => timer.fire(deadline, now, burst_limit.get()),
        };
        let fired = Fired {
            event: TimerFired::of(timer, (id, reading), deadline, missed, next.is_none()),
            clock,
            key,
            reaction: timer.reaction,
        };
        let begins_burst = timer.burst == 1;
        match next {
            Some(next) => due.rearm(next),
            None => {
                drop(due);
                self.lifetimes -= usize::from(fired.reaction == Reaction::EndLife);
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

    fn end_burst(&mut self, key: Key) {
        if let Some(timer) = self.queue.get_mut(key) {
            timer.burst = 0;
        }
    }

    fn forget(&mut self, key: Key) {
        if !self.paused.is_empty() {
            self.paused.remove(&key);
        }
        if !self.rescheduled.is_empty() {
            self.rescheduled.remove(&key);
        }
        if !self.random.is_empty() {
            self.random.remove(&key);
        }
    }
}

/// Changes the queue's copy of the timer of `entity`, if it is armed or paused.
pub(super) fn change_armed(
    world: &mut DeferredWorld,
    entity: Entity,
    change: impl FnOnce(&mut ArmedTimer),
) {
    if let Some((clock, key)) = world
        .get::<Timer>(entity)
        .and_then(|timer| timer.seat().armed())
        && let Some(mut lines) = world.get_resource_mut::<TimerLines>()
        && let Some(timer) = lines.timer_mut(clock, key)
    {
        change(timer);
    }
}

/// Returns `true` if the timer of an entity is pending, armed or paused.
pub(crate) fn is_armed(world: &World, entity: Entity) -> bool {
    let place = world.get::<Timer>(entity).map(|timer| timer.seat().place());
    let lines = world.get_resource::<TimerLines>();
    let (Some(place), Some(lines)) = (place, lines) else {
        return false;
    };
    lines.is_at(place)
}
