//! The turn of a clock: its due timers fire, one after the other, until one of them has to be handled.

use core::slice;

use bevy_ecs::{
    entity_disabling::Disabled,
    prelude::*,
    query::Allow,
    system::{SystemParam, SystemState},
};
use bevy_time::{Time, Virtual};
use smallvec::SmallVec;

use super::{
    Keyed, Place, RunStats, TimerFired, TimerQueues,
    end::{Ended, EndedTimers},
    key::KeyId,
    queued::{ArmedTimer, Mark, Reaction},
    queues::{ClockQueue, Reports, index},
    run::{AHEAD, Run},
    undo::TimerJournal,
};
use crate::{
    clock::{
        Age, Changes, Clock, ClockComponents, ClockKey, ClockTable, DueClock, PackedClockId,
        Reading, Scope, is_game_stopped, read_running,
    },
    owner::OwnedBy,
    queue::{First, Key, prefetch},
};

pub(crate) type FireParams = SystemState<Firing<'static, 'static>>;

/// The parts of the world that are used between two handlers.
#[derive(SystemParam)]
pub(crate) struct Firing<'w, 's> {
    pub(super) queues: ResMut<'w, TimerQueues>,
    entities: Entities<'w, 's>,
    pub(super) clocks: ClockComponents<'w, 's>,
    messages: ResMut<'w, Messages<TimerFired>>,
}

/// The owners and keys of timers.
type Entities<'w, 's> =
    Query<'w, 's, (Option<&'static OwnedBy>, Option<&'static Keyed>), Allow<Disabled>>;

/// The turn of a clock, and the time on it.
pub(super) struct Turn {
    pub(super) clock: ClockKey,
    id: PackedClockId,
    pub(super) reading: Reading,
    /// The clocks on entities that can stop it in this run: itself, and those above it.
    stops: SmallVec<[Entity; 2]>,
    /// Whether a pause of the game stops it.
    is_in_game: bool,
    /// Whether it has skipped time, so that each timer fires at most once.
    has_skipped: bool,
    /// The number of changes when the time was read.
    seen: u64,
}

impl Turn {
    /// Reads the times on clocks, the last one first. A clock that is gone, or that something stops, has no turn.
    /// With `is_written`, a component may have stopped one since the last reading.
    pub(super) fn read<'a>(
        world: &'a World,
        due: &'a [DueClock],
        scope: Scope,
        is_written: bool,
    ) -> impl Iterator<Item = Option<Self>> {
        let table = world.get_resource::<ClockTable>();
        let game = world.get_resource::<Time<Virtual>>();
        if let Some(table) = table.filter(|_| due.len() > 1) {
            table.prefetch(due);
        }
        due.iter().rev().map(move |&(_, age, clock)| {
            let component = |entity| is_written.then(|| world.get(entity))?;
            Self::new(table?, game, component, (clock, age), scope)
        })
    }

    /// Reads the time on a clock.
    pub(super) fn read_one(world: &World, due: &DueClock, scope: Scope) -> Option<Self> {
        Self::read(world, slice::from_ref(due), scope, true).next()?
    }

    fn new<'w>(
        table: &ClockTable,
        game: Option<&'w Time<Virtual>>,
        component: impl Fn(Entity) -> Option<&'w Clock>,
        clock: (ClockKey, Age),
        scope: Scope,
    ) -> Option<Self> {
        let (mut stops, mut is_in_game) = (SmallVec::new(), false);
        let component = |entity| {
            stops.push(entity);
            component(entity)
        };
        let game = || {
            is_in_game = true;
            game
        };
        let reading = read_running(table, clock, scope, component, game)?;
        Some(Self {
            clock: clock.0,
            id: table.id(clock.0)?.into(),
            reading,
            stops,
            is_in_game,
            has_skipped: table.has_skipped(clock.0),
            seen: table.changes().with_edits(),
        })
    }

    /// Returns `true` if the time is still the same, and only what [`is_stopped`](Self::is_stopped) asks
    /// can have stopped the clock.
    pub(super) fn is_current(&self, changes: &Changes) -> bool {
        self.seen == changes.with_edits()
    }

    /// Returns `true` if a handler has stopped the clock since the time was read.
    #[inline]
    pub(super) fn is_stopped(&self, world: &World) -> bool {
        let is_stopped = |&entity: &Entity| world.get(entity).is_some_and(Clock::is_stopped);
        self.is_in_game && world.get_resource().is_some_and(is_game_stopped)
            || self.stops.iter().any(is_stopped)
    }

    /// Goes on with a turn that has begun. What became due while a handler read the clocks waits for the
    /// next run.
    pub(super) fn go_on(&mut self, begun: &Self) {
        self.reading.now = self.reading.now.min(begun.reading.now);
    }

    /// Counts a firing, and returns it with the next deadline.
    fn fire(
        &self,
        timer: &mut ArmedTimer,
        (key, deadline): (Key, u64),
        burst_limit: u32,
    ) -> (Fired, Option<u64>) {
        let burst_limit = if self.has_skipped { 1 } else { burst_limit };
        let (missed, next) = timer.advance(deadline, self.reading.now, burst_limit);
        let mut fired = self.fired(timer, key, deadline);
        fired.event = fired.event.with_missed(missed).with_last(next.is_none());
        (fired, next)
    }

    /// Returns a firing that skips no deadline and is not the last.
    #[inline]
    fn fired(&self, timer: &ArmedTimer, key: Key, deadline: u64) -> Fired {
        let owner = (timer.entity, None);
        Fired {
            event: TimerFired::of(timer, owner, (self.id, &self.reading), deadline),
            place: (self.clock, key),
            needs_owner: timer.is(Mark::Owned),
            reaction: timer.reaction,
        }
    }
}

/// A timer that has fired. It is re-armed, or no longer in the queue if this was its last firing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fired {
    pub(super) event: TimerFired,
    pub(super) place: Place,
    /// Whether the timer has an owner who is not known yet.
    pub(super) needs_owner: bool,
    pub(super) reaction: Reaction,
}

impl Fired {
    pub(super) fn set_owned(&mut self, owner: Entity, key: Option<KeyId>) {
        self.event.set_owned(owner, key);
        self.needs_owner = false;
    }
}

impl Firing<'_, '_> {
    /// Prefetches what the first firing of each turn needs, so that the cache misses of several clocks overlap.
    pub(super) fn prefetch(&self, turns: &[Option<Turn>]) {
        let queues = || {
            turns
                .iter()
                .flatten()
                .filter_map(|turn| self.queues.get(turn.clock))
        };
        for queue in queues() {
            queue.timers.prefetch_start();
        }
        let firsts = queues().filter_map(|queue| queue.timers.prefetch_first());
        let owned: SmallVec<[Entity; AHEAD]> = firsts
            .filter(|it| it.is(Mark::Owned))
            .map(|it| it.entity)
            .collect();
        for entity in owned {
            prefetch(owner_and_key(entity, &self.entities));
        }
    }

    /// Fires the due timers on a clock until one has to be handled, and leaves this one in `handled`.
    /// Returning it would cost another copy.
    ///
    /// A timer has to be handled if it has a reaction, or if this is its last firing.
    #[inline]
    pub(super) fn fire_up_to_handler(
        &mut self,
        turn: &Turn,
        run: &Run,
        handled: &mut Option<Fired>,
    ) {
        let Some(mut queue) = self.queues.firing(turn, run) else {
            return;
        };
        while handled.is_none() {
            self.messages
                .write_batch(queue.fire_on_time(turn, &self.entities));
            let Some(mut fired) = queue.fire_due(turn, run) else {
                break;
            };
            if fired.needs_owner {
                match owner_and_key(fired.event.entity(), &self.entities) {
                    Some((owner, key)) => fired.set_owned(owner, key),
                    None => {
                        *handled = Some(fired);
                        break;
                    }
                }
            }
            let (event, reaction) = (fired.event, fired.reaction);
            if reaction != Reaction::None || event.is_last() {
                *handled = Some(fired);
            }
            if !reaction.is_silent() {
                self.messages.write(event);
            }
        }
    }
}

/// Returns the owner and the key of an owned timer, or `None` if its entity is hidden from queries.
#[inline(never)]
fn owner_and_key(entity: Entity, entities: &Entities) -> Option<(Entity, Option<KeyId>)> {
    let (owned, key) = entities.get(entity).ok()?;
    Some((owned.map_or(entity, |by| by.0), key.map(|key| key.id())))
}

/// The timers of a clock that fires, and what else a firing changes.
pub(super) struct FiringQueue<'a> {
    queue: &'a mut ClockQueue,
    ended: &'a mut EndedTimers,
    stats: &'a mut RunStats,
    journal: &'a mut Option<TimerJournal>,
}

impl FiringQueue<'_> {
    /// Fires the due timers that come next, as long as they fire on time and nothing handles them.
    #[inline]
    fn fire_on_time(
        &mut self,
        turn: &Turn,
        entities: &Entities,
    ) -> impl Iterator<Item = TimerFired> {
        let (clock, now) = ((turn.id, &turn.reading), turn.reading.now);
        let stats = &mut *self.stats;
        // The journal notes each timer before it fires.
        let is_noted = self.journal.is_some();
        self.queue.timers.rearm_listed(now, move |deadline, timer| {
            if is_noted || timer.reaction != Reaction::None {
                return None;
            }
            let owner = match timer.is(Mark::Owned) {
                true => owner_and_key(timer.entity, entities)?,
                false => (timer.entity, None),
            };
            let next = timer.advance_on_time(deadline, now)?;
            stats.fired += 1;
            let fired = TimerFired::of(timer, owner, clock, deadline);
            Some((next, fired))
        })
    }

    /// Fires the first due timer, if any.
    ///
    /// The queue is consistent when this returns, so handlers may do anything.
    #[inline]
    pub(super) fn fire_due(&mut self, turn: &Turn, run: &Run) -> Option<Fired> {
        let now = turn.reading.now;
        let mut due = self.queue.timers.pop_due(now)?;
        if let Some(journal) = self.journal {
            let key = due.key();
            let first = due.put_back();
            self.queue.note(journal, (turn.clock, key));
            due = self.queue.timers.pop_again(first);
        }
        let deadline = due.deadline();
        let (key, timer) = due.key_and_value();
        let Some(next) = timer.advance_on_time(deadline, now) else {
            let first = due.put_back();
            let fired = self.queue.fire_any(first, turn, run);
            self.stats.count(&fired.event);
            if fired.reaction == Reaction::EndLife {
                // If a handler panics in the despawn, the next run ends the lifetime.
                self.ended.push(None, Ended::lifetime(fired.event.entity()));
            }
            return Some(fired);
        };
        let fired = turn.fired(timer, key, deadline);
        due.rearm(next);
        self.stats.fired += 1;
        Some(fired)
    }
}

impl ClockQueue {
    /// Fires the first due timer, which may end, be late or have rare state.
    #[inline(never)]
    fn fire_any(&mut self, first: First, turn: &Turn, run: &Run) -> Fired {
        let mut due = self.timers.pop_again(first);
        let deadline = due.deadline();
        let (key, timer) = due.key_and_value();
        let (fired, next) = turn.fire(timer, (key, deadline), run.burst_limit);
        if timer.burst == 1 {
            self.bursting.push(key);
        }
        match next {
            Some(next) => due.rearm(next),
            None => {
                drop(due);
                self.silent -= usize::from(fired.reaction.is_silent());
            }
        }
        fired
    }
}

impl TimerQueues {
    /// Returns the timers of a clock in its turn, to fire them in this run.
    #[inline]
    pub(super) fn firing(&mut self, turn: &Turn, run: &Run) -> Option<FiringQueue<'_>> {
        if self.written.is_some() {
            // A handler has written the states out. The next firing changes one of them.
            run.changes.note();
        }
        let queue = self.queues.get_mut(index(turn.clock));
        debug_assert!(queue.is_some(), "no timer was ever on clock {}", turn.clock);
        Some(FiringQueue {
            queue: queue?,
            stats: &mut self.reports.runs[Reports::index(run.scope)],
            ended: &mut self.reports.ended,
            journal: &mut self.journal,
        })
    }
}
