//! The timers of each clock: in the queue, added since the last run, or paused.

mod undo;

use alloc::{collections::BTreeSet, vec::Vec};
use core::{
    mem,
    num::{NonZeroU32, NonZeroU64},
};

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    Arms, Kind, Timer, TimerFired,
    armed::{ArmedTimer, Reaction, Served},
    budget::Spent,
    cancellations::Cancellations,
    deferrable::DeferrableTimers,
    ended::EndedTimers,
    modifiers::Modifiers,
    pending::{PendingTimers, resumed},
    place::Place,
    random_interval::RandomInterval,
    saving::{Progress, sheet::Written},
    slack::{SlackTimers, Window},
    stats::{RunStats, TimerStats},
};
use crate::{
    clock::{Age, Cadence, ClockKey, ClockTable, GameTime, PackedClockId, Reading, Scope},
    double_buffer::DoubleBuffer,
    journal::WatchedMap,
    queue::{First, Key, NEVER, TimerQueue},
};
pub(crate) use undo::{LinesJournal, LinesMark};

/// The timers of a world, one line per clock.
#[derive(Resource, Debug)]
pub(crate) struct TimerLines {
    /// Indexed by clock key. A line outlives its clock, so that no timer key is ever reused.
    lines: Vec<TimerLine>,
    pub(super) pending: PendingTimers,
    /// The clocks whose lines may have changed since their last run, each once.
    touched: Vec<ClockKey>,
    /// Kept for its memory: the clocks with due timers in a run.
    due: Vec<(Age, ClockKey)>,
    pub(super) cancelled: Cancellations,
    pub(super) ended: EndedTimers,
    /// The states that were written out for serialization, until the next run.
    pub(super) written: Option<Written>,
    pub(super) stats: TimerStats,
    /// The number of random numbers drawn so far.
    draws: u64,
    /// The number of timers armed since the last run.
    armed: u64,
    /// What the deferrable timers of this frame have used of the budget.
    pub(super) spent: Spent,
    /// The components that change how a timer is armed.
    pub(super) modifiers: Modifiers,
    pub(super) game_time: GameTime,
    /// Creates the line of a clock.
    new_line: fn() -> TimerLine,
}

/// The timers of one clock.
#[derive(Debug, Default)]
pub(crate) struct TimerLine {
    pub(crate) queue: TimerQueue<ArmedTimer>,
    added: DoubleBuffer<Key>,
    /// The paused timers, and the reading of the clock when they were paused.
    ///
    /// A tree grows a little at a time. A hash map would move all its entries in one frame.
    paused: WatchedMap<Key, u64>,
    /// The timers of entities that are moving to or from another world. Their time goes on.
    in_transit: WatchedMap<Key, ()>,
    /// The waits of timers whose deadlines were moved.
    rescheduled: WatchedMap<Key, Rescheduled>,
    /// The intervals of timers that draw them.
    random: WatchedMap<Key, RandomInterval>,
    slack: SlackTimers,
    pub(super) deferrable: DeferrableTimers,
    /// The timers in the middle of a burst.
    bursting: Vec<Key>,
    /// The number of lifetimes in the queue.
    lifetimes: usize,
    /// Whether the line is among the touched ones.
    is_touched: bool,
}

/// What keeps a timer from firing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halt {
    /// The reading of the clock at the start of a pause. The pause moves the deadline.
    pub(super) paused_at: Option<u64>,
    /// Whether the entity is moving to or from another world.
    pub(super) is_in_transit: bool,
}

/// The limits for the firings of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) burst: NonZeroU32,
    /// Whether deferrable timers wait for the budget.
    pub(super) defers: bool,
}

/// What few timers have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extras {
    pub(super) random: Option<RandomInterval>,
    pub(super) window: Option<Window>,
    pub(super) priority: Option<i32>,
    /// The difference between the time that the clock shows and the time passed.
    pub(super) offset: i128,
}

/// The wait for a deadline that was moved.
#[derive(Clone, Debug)]
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
    pub(crate) fn new(modifiers: Modifiers, game_time: GameTime) -> Self {
        Self {
            lines: Vec::new(),
            pending: PendingTimers::default(),
            touched: Vec::new(),
            due: Vec::new(),
            cancelled: Cancellations::default(),
            ended: EndedTimers::default(),
            written: None,
            stats: TimerStats::default(),
            draws: 0,
            armed: 0,
            spent: Spent::default(),
            modifiers,
            game_time,
            new_line: TimerLine::default,
        }
    }

    pub(crate) fn get(&self, clock: ClockKey) -> Option<&TimerLine> {
        self.lines.get(clock as usize)
    }

    /// Returns the lines of all clocks. The line of a clock that is gone is empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TimerLine> {
        self.lines.iter()
    }

    pub(crate) fn get_mut(&mut self, clock: ClockKey) -> Option<&mut TimerLine> {
        self.touch(clock);
        self.lines.get_mut(clock as usize)
    }

    fn touch(&mut self, clock: ClockKey) {
        if let Some(line) = self.lines.get_mut(clock as usize)
            && !line.is_touched
        {
            line.is_touched = true;
            self.touched.push(clock);
        }
    }

    /// Arms a timer, unless it is halted. Outside a run, the next run arms it.
    pub(super) fn insert(
        &mut self,
        clock: ClockKey,
        deadline: u64,
        timer: ArmedTimer,
        Halt {
            paused_at,
            is_in_transit,
        }: Halt,
        Extras {
            random,
            window,
            priority,
            offset,
        }: Extras,
        is_in_run: bool,
    ) -> Key {
        let is_in_run = is_in_run && !is_in_transit;
        let key = match (paused_at, window) {
            (None, None) => self.insert_plain(clock, deadline, timer, is_in_run),
            (None, Some(_)) => {
                self.armed += u64::from(is_in_run);
                self.line_for(clock, &timer)
                    .queue
                    .insert_parked(deadline, timer)
            }
            (Some(now), _) => self
                .line_for(clock, &timer)
                .add_paused(deadline, timer, now),
        };
        let line = &mut self.lines[clock as usize];
        if is_in_transit {
            line.in_transit.insert(key, ());
        }
        if let Some(random) = random {
            line.random.insert(key, random);
        }
        if let Some(priority) = priority {
            line.deferrable.insert(key, priority);
        }
        if let Some(window) = window {
            line.slack.set_offset(offset);
            line.slack.insert(clock, key, window);
            line.wait_until(key, deadline, is_in_run);
        }
        key
    }

    /// Arms a timer that nothing halts. Outside a run, the next run arms it.
    #[inline]
    pub(super) fn insert_plain(
        &mut self,
        clock: ClockKey,
        deadline: u64,
        timer: ArmedTimer,
        is_in_run: bool,
    ) -> Key {
        self.armed += u64::from(is_in_run);
        let line = self.line_for(clock, &timer);
        match is_in_run {
            true => line.queue.insert(deadline, timer),
            false => line.add(deadline, timer),
        }
    }

    /// Returns the line of a clock, to which a timer is added.
    #[inline]
    fn line_for(&mut self, clock: ClockKey, timer: &ArmedTimer) -> &mut TimerLine {
        let index = clock as usize;
        if self.lines.len() <= index {
            self.lines.resize_with(index + 1, self.new_line);
        }
        self.get_mut(clock);
        let line = &mut self.lines[index];
        line.lifetimes += usize::from(timer.kind() == Kind::Lifetime);
        line
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
    pub(super) fn set_paused(
        &mut self,
        place: Place,
        delay: u64,
        is_paused: bool,
        reading: Reading,
    ) {
        match place {
            Place::Pending(index) => {
                self.pending
                    .set_paused(index, delay, is_paused, reading.now);
            }
            Place::Armed(clock, key) => {
                if let Some(line) = self.get_mut(clock) {
                    line.set_paused(key, is_paused, reading);
                }
            }
            Place::Nowhere | Place::Reported(_) => {}
        }
    }

    /// Halts a timer while its entity is in transit. The deadline stays.
    pub(super) fn set_in_transit(&mut self, place: Place, is_in_transit: bool) {
        if let Place::Armed(clock, key) = place
            && let Some(line) = self.lines.get(clock as usize)
            && line.is_in_transit(key) != is_in_transit
            && let Some(line) = self.get_mut(clock)
        {
            line.set_in_transit(key, is_in_transit);
        }
    }

    /// Moves a timer from a clock at `now` to one with another reading, and returns its new key. It
    /// keeps its remaining time, its count and its pause.
    pub(super) fn move_to(
        &mut self,
        (from, key): (ClockKey, Key),
        first_wait: u64,
        now: u64,
        (to, there): (ClockKey, Reading),
    ) -> Option<Key> {
        let line = self.get_mut(from)?;
        let wait = line.wait(key, first_wait)?;
        let deadline = line.deadline(key, now)?;
        let halt = Halt {
            paused_at: line.is_paused(key).then_some(there.now),
            is_in_transit: line.is_in_transit(key),
        };
        let shift = line.slack.shift(key).unwrap_or(0);
        let extras = Extras {
            random: line.random.get(key).copied(),
            window: line.slack.remove(key),
            priority: line.deferrable.priority(key),
            offset: there.offset,
        };
        line.leave_waiting(key);
        let mut timer = line.queue.cancel(key)?;
        line.forget(key);
        timer.burst = 0;
        let count = timer.count();
        let deadline = resumed(deadline.saturating_sub(shift), now, there.now);
        let key = self.insert(to, deadline, timer, halt, extras, false);
        let wait = wait.saturating_sub(shift);
        let moved = Rescheduled { count, wait };
        self.get_mut(to)?.rescheduled.insert(key, moved);
        Some(key)
    }

    /// Counts a random number, and returns its index.
    pub(super) fn next_draw(&mut self) -> u64 {
        let draw = self.draws;
        self.draws = draw.wrapping_add(1);
        draw
    }

    /// Returns the number of random numbers drawn so far.
    #[cfg(feature = "serialize")]
    pub(crate) fn draws(&self) -> u64 {
        self.draws
    }

    #[cfg(feature = "serialize")]
    pub(crate) fn set_draws(&mut self, draws: u64) {
        self.draws = draws;
    }

    /// Starts a run on the clocks of a scope: arms the timers that were added since the previous
    /// run. Returns `true` if there are timers to fire or to end, or cancellations to write.
    pub(super) fn begin_run(&mut self, table: &ClockTable, scope: Scope) -> bool {
        if scope == Scope::Of(Cadence::Frame) {
            self.spent = Spent::default();
        }
        let armed = mem::take(&mut self.armed) + self.swap(table, scope);
        let due = self.find_due(table, scope);
        let is_due = !due.is_empty();
        self.put_back(due);
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

    /// Arms the timers that were added on the clocks of a scope, and returns their number.
    fn swap(&mut self, table: &ClockTable, scope: Scope) -> u64 {
        let mut armed = 0;
        let lines = &mut self.lines;
        self.touched.retain(|&clock| {
            let line = &mut lines[clock as usize];
            if table.id(clock).is_some() && !table.is_in(clock, scope) {
                return true;
            }
            line.is_touched = false;
            if let Some(now) = table.run_time(clock) {
                // The queue may not have been checked for a long time: advance it first.
                line.queue.has_due(now);
            }
            armed += line.swap();
            table.set_deadline(clock, line.first_armed_look());
            false
        });
        armed
    }

    /// Returns the clocks of a scope on which timers are due, in the order in which they run.
    pub(super) fn find_due(&mut self, table: &ClockTable, scope: Scope) -> Vec<(Age, ClockKey)> {
        let mut due = mem::take(&mut self.due);
        table.find_due(scope, &mut due);
        due.retain(|&(age, clock)| self.has_due(table, clock, age, scope));
        due
    }

    /// Takes back the memory of [`find_due`](Self::find_due).
    pub(super) fn put_back(&mut self, due: Vec<(Age, ClockKey)>) {
        self.due = due;
    }

    /// Returns `true` if a timer is due on a clock that is not stopped. Otherwise tells the table
    /// when to look again.
    pub(super) fn has_due(
        &mut self,
        table: &ClockTable,
        clock: ClockKey,
        age: Age,
        scope: Scope,
    ) -> bool {
        let Some(line) = self.lines.get_mut(clock as usize) else {
            return false;
        };
        let Some(reading) = table.reading(clock, age, scope) else {
            return false;
        };
        let is_due = line.queue.has_due(reading.now) || line.deferrable.is_anyone_waiting();
        if !is_due {
            table.set_deadline(clock, line.queue.first_look());
        }
        is_due
    }

    /// Tells the table when to look at the touched clocks of a scope again.
    pub(super) fn plan_touched(&self, table: &ClockTable, scope: Scope) {
        let touched = self.touched.iter().copied();
        for clock in touched.filter(|&clock| table.is_in(clock, scope)) {
            table.set_deadline(clock, self.get(clock).and_then(TimerLine::first_look));
        }
    }

    /// Returns the time on `root` until a timer on it or its descendants is due.
    pub(super) fn until_next(&mut self, table: &ClockTable, root: ClockKey) -> Option<u64> {
        self.plan_touched(table, Scope::Under(root));
        loop {
            let (clock, span) = table.next_due(root)?;
            let deadline = self.get(clock).and_then(TimerLine::next_deadline);
            // So far the table may have known an earlier time, at which the queue must be checked.
            if !table.set_deadline(clock, deadline) {
                return Some(span);
            }
            // That time still counts: the next run tells the table again.
            self.touch(clock);
        }
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
            let is_halted = self.paused.contains_key(key) || self.in_transit.contains_key(key);
            if !is_halted && self.queue.release(key) {
                armed += 1;
            }
        }
        armed
    }

    fn cancel(&mut self, key: Key) -> bool {
        self.leave_waiting(key);
        let cancelled = self.queue.cancel(key);
        if let Some(timer) = &cancelled {
            self.lifetimes -= usize::from(timer.kind() == Kind::Lifetime);
            self.forget(key);
        }
        cancelled.is_some()
    }

    fn set_paused(&mut self, key: Key, paused: bool, reading: Reading) {
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

    fn set_in_transit(&mut self, key: Key, is_in_transit: bool) {
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
    fn wait_until(&mut self, key: Key, deadline: u64, is_in_run: bool) {
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
    fn first_look(&self) -> Option<u64> {
        let armed = self.first_armed_look().into_iter();
        armed.chain(self.added_deadlines()).min()
    }

    /// Returns the time at which a run must look at the queue, or a time in the past if a timer waits
    /// for the budget.
    fn first_armed_look(&self) -> Option<u64> {
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

    /// Takes a timer out of those that wait for the budget. Its deadline must still be the same.
    fn leave_waiting(&mut self, key: Key) {
        if self.deferrable.is_anyone_waiting()
            && let (Some(deadline), Some(sequence)) =
                (self.queue.deadline(key), self.queue.sequence(key))
        {
            self.deferrable.leave(key, deadline, sequence);
        }
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
        match next {
            Some(next) if next <= reading.now => self.defer(key, next),
            Some(next) => _ = self.queue.arm(key, next),
            None => {
                self.queue.cancel(key);
                self.forget(key);
            }
        }
        self.note_burst(key);
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
        match next {
            Some(next) => due.rearm(next),
            None => {
                drop(due);
                self.lifetimes -= usize::from(fired.reaction == Reaction::EndLife);
                self.forget(key);
            }
        }
        self.note_burst(key);
        fired
    }

    /// Notes that a timer is in the middle of a burst, if it is.
    fn note_burst(&mut self, key: Key) {
        if self.queue.get(key).is_some_and(|timer| timer.burst == 1) {
            self.bursting.push(key);
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

    fn forget(&mut self, key: Key) {
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
    // The next window counts from this one.
    let start = deadline.saturating_sub(slack.shift(key).unwrap_or(0));
    let Served { missed, next } = match random {
        Some(random) => timer.fire_random(start, reading.now, burst_limit.get(), random),
        None => timer.fire(start, reading.now, burst_limit.get()),
    };
    let next = match timer.has_slack() {
        true => {
            slack.set_offset(reading.offset);
            next.map(|next| slack.choose_next(key, next))
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

/// Returns `true` if the timer of `C` on an entity is pending, armed or paused.
pub(crate) fn is_armed<C: Arms>(world: &World, entity: Entity) -> bool {
    let place = world.get::<C>(entity).map(|timer| timer.seat().place());
    let lines = world.get_resource::<TimerLines>();
    let (Some(place), Some(lines)) = (place, lines) else {
        return false;
    };
    lines.is_at(place)
}
