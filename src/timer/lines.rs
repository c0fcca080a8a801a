//! The timers of all clocks.

mod changed;
mod undo;

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    Arms, Kind, Timer,
    armed::ArmedTimer,
    budget::Spent,
    cancellations::Cancellations,
    ended::EndedTimers,
    line::{Rescheduled, TimerLine},
    modifiers::Modifiers,
    pending::{PendingTimers, resumed},
    place::Place,
    random_interval::RandomInterval,
    saving::sheet::Written,
    slack::Window,
    stats::{RunStats, TimerStats},
};
use crate::{
    clock::{Age, Cadence, ClockKey, ClockTable, GameTime, Reading, Scope},
    queue::Key,
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

/// What keeps a timer from firing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halt {
    /// The reading of the clock at the start of a pause. The pause moves the deadline.
    pub(super) paused_at: Option<u64>,
    /// Whether the entity is moving to or from another world.
    pub(super) is_in_transit: bool,
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
        debug_assert_eq!(timer.kind(), Kind::Timer, "lifetimes are counted");
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
