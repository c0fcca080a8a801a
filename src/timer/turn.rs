//! The turn of a clock: its due timers fire, one after the other, until code of the game sees one.

use alloc::vec::Vec;
use core::mem;

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
    events::Observed,
    key::KeyId,
    queued::{ArmedTimer, Mark, Reaction},
    queues::{ClockQueue, Reports, index},
    run::Run,
    undo::{TimerJournal, note_due},
};
use crate::{
    clock::{Age, ClockKey, ClockTable, DueClock, PackedClockId, Reading, Scope, is_game_stopped},
    owner::OwnedBy,
    queue::{Key, prefetch},
};

pub(crate) type FireParams = SystemState<Firing<'static, 'static>>;

/// The parts of the world that are used between two handlers.
#[derive(SystemParam)]
pub(crate) struct Firing<'w, 's> {
    queues: ResMut<'w, TimerQueues>,
    clocks: ResMut<'w, ClockTable>,
    game: Option<Res<'w, Time<Virtual>>>,
    entities: Entities<'w, 's>,
    messages: ResMut<'w, Messages<TimerFired>>,
}

/// The owners and keys of timers.
type Entities<'w, 's> =
    Query<'w, 's, (Option<&'static OwnedBy>, Option<&'static Keyed>), Allow<Disabled>>;

/// The turn of a clock, and the time on it.
///
/// The time passed is kept until the turn ends. If a handler lets the clock advance, what becomes due waits for the
/// next run.
pub(super) struct Turn {
    pub(super) clock: ClockKey,
    age: Age,
    id: PackedClockId,
    pub(super) reading: Reading,
    /// The time at the end of the frame, in an exact frame.
    end: Option<u64>,
    /// The time to which the clock has skipped.
    skipped_to: Option<u64>,
}

/// The clocks that have a turn at one instant, and the turn of one of them.
#[derive(Default)]
pub(super) struct Turns {
    pub(super) due: Vec<DueClock>,
    /// The number of clocks that have had their turns.
    past: usize,
    turn: Option<Turn>,
    /// The number of the next clocks whose memory has been prefetched.
    ahead: usize,
    /// The length of the longest chain of the instant, in an exact frame.
    pub(super) longest: u32,
}

/// The number of clocks whose cache misses overlap.
const AHEAD: usize = 16;

impl Turns {
    /// Finds the clocks on which something is due now.
    pub(super) fn find(due: Vec<DueClock>, table: &ClockTable, scope: Scope) -> Self {
        let mut turns = Self {
            due,
            ..Self::default()
        };
        table.find_due(scope, &mut turns.due);
        turns
    }
}

impl Turn {
    /// Reads the time on a clock. A clock that is gone, or that something stops, has no turn.
    fn begin(
        table: &ClockTable,
        is_game_stopped: bool,
        &(age, clock): &DueClock,
        scope: Scope,
    ) -> Option<Self> {
        let reading = table.read_running((clock, age), scope, is_game_stopped)?;
        Some(Self {
            clock,
            age,
            id: table.id(clock)?.into(),
            reading,
            end: table.end_of_frame(clock, scope, reading.now),
            skipped_to: table.skipped_to(clock),
        })
    }

    /// Counts a firing, and returns it with the next deadline.
    #[inline(never)]
    fn fire_any(
        &self,
        timer: &mut ArmedTimer,
        (key, deadline): (Key, u64),
        burst_limit: u32,
    ) -> (Fired, Option<u64>) {
        let (until, burst_limit) = match self.skipped_to.filter(|&to| deadline <= to) {
            Some(to) => ((to, self.end.and(Some(to))), 1),
            None => ((self.reading.now, self.end), burst_limit),
        };
        let depth = timer.burst;
        let (missed, next) = timer.advance(deadline, until, burst_limit);
        let mut fired = self.fired(timer, key, deadline, depth);
        fired.event = fired.event.with_missed(missed).with_last(next.is_none());
        (fired, next)
    }

    /// Returns a firing that skips no deadline and is not the last.
    #[inline]
    fn fired(&self, timer: &ArmedTimer, key: Key, deadline: u64, depth: u32) -> Fired {
        let owner = (timer.entity, None);
        Fired {
            event: TimerFired::of(timer, owner, (self.id, &self.reading), deadline),
            place: (self.clock, key),
            needs_owner: timer.is(Mark::Owned),
            is_observed: false,
            chain: self.end.map(|_| depth.saturating_add(1)),
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
    pub(super) is_observed: bool,
    /// The length of the chain up to this firing, in an exact frame. What its handlers arm belongs to it.
    pub(super) chain: Option<u32>,
    pub(super) reaction: Reaction,
}

impl Fired {
    pub(super) fn set_owned(&mut self, owner: Entity, key: Option<KeyId>) {
        self.event.set_owned(owner, key);
        self.needs_owner = false;
    }

    /// Returns `true` if code of the game or the end of the timer comes next.
    fn is_handled(&self) -> bool {
        self.is_observed
            || self.needs_owner
            || self.reaction != Reaction::None
            || self.event.is_last()
    }
}

impl Firing<'_, '_> {
    /// Fires the due timers, up to the first that has to be handled, and returns that one. An exact frame goes on to
    /// its next deadline, unless something has to be settled first.
    pub(super) fn next(
        &mut self,
        turns: &mut Turns,
        run: &Run,
        observed: Observed,
    ) -> Option<Fired> {
        self.end_if_stopped(turns, run.scope);
        loop {
            if let Some(turn) = &turns.turn {
                if let Some(fired) = self.next_on(turn, run, observed) {
                    return Some(fired);
                }
                self.end(turn);
            }
            let next = &turns.due[turns.past..];
            let Some(clock) = next.first() else {
                if self.has_unsettled(run) || !self.step(turns, run) {
                    return None;
                }
                continue;
            };
            if turns.ahead == 0 && next.len() > 1 {
                turns.ahead = AHEAD;
                self.prefetch(&next[..next.len().min(AHEAD)]);
            }
            turns.ahead = turns.ahead.saturating_sub(1);
            turns.past += 1;
            turns.turn = Turn::begin(&self.clocks, self.is_game_stopped(), clock, run.scope);
        }
    }

    /// Lets the clocks of an exact frame advance to its next deadline, or to its end. Returns `false` at the end.
    pub(super) fn step(&mut self, turns: &mut Turns, run: &Run) -> bool {
        let is_game_stopped = self.is_game_stopped();
        let goes_on = run.is_outermost
            && self.clocks.is_exact(run.scope)
            && self.clocks.step(run.cadence, is_game_stopped);
        if goes_on {
            *turns = Turns::find(mem::take(&mut turns.due), &self.clocks, run.scope);
        }
        goes_on
    }

    /// Returns `true` if finished timers, clocks, new timers or fast-forwards wait for the end of the instant.
    fn has_unsettled(&self, run: &Run) -> bool {
        let queues = &self.queues;
        queues.is_waiting(run.scope) || !queues.forwards.is_empty() || !self.clocks.is_settled()
    }

    /// Ends a turn if the last handler has stopped the clock. If it has set the clock, what became due waits for the
    /// next run.
    fn end_if_stopped(&mut self, turns: &mut Turns, scope: Scope) {
        let Some(turn) = &mut turns.turn else {
            return;
        };
        let clock = (turn.clock, turn.age);
        let is_game_stopped = self.is_game_stopped();
        match self.clocks.read_running(clock, scope, is_game_stopped) {
            Some(reading) => turn.reading.offset = reading.offset,
            None => {
                self.end(turn);
                turns.turn = None;
            }
        }
    }

    fn is_game_stopped(&self) -> bool {
        self.game.as_deref().is_some_and(is_game_stopped)
    }

    fn end(&mut self, turn: &Turn) {
        let look = self.queues.first_look(turn.clock);
        self.clocks.set_look(turn.clock, look);
    }

    /// Prefetches what the first firing of each clock reads, so that the cache misses of several clocks overlap.
    fn prefetch(&self, due: &[DueClock]) {
        let queues = || due.iter().filter_map(|&(.., clock)| self.queues.get(clock));
        self.clocks.prefetch(due);
        for queue in queues() {
            queue.timers.prefetch_start();
        }
        let firsts = queues().filter_map(|queue| queue.timers.prefetch_first());
        let owned = firsts.filter(|timer| timer.is(Mark::Owned));
        let owned: SmallVec<[Entity; AHEAD]> = owned.map(|timer| timer.entity).collect();
        for entity in owned {
            prefetch(owner_and_key(entity, &self.entities));
        }
    }

    /// Fires the due timers on a clock, up to the first that has to be handled, and returns that one.
    #[inline]
    fn next_on(&mut self, turn: &Turn, run: &Run, observed: Observed) -> Option<Fired> {
        let mut queue = self.queues.firing(turn, run)?;
        loop {
            if turn.end.is_none() && observed != Observed::Everywhere && queue.journal.is_none() {
                self.messages
                    .write_batch(queue.fire_on_time(turn, &self.entities, observed));
            }
            let (mut fired, has_observer) = queue.fire_due(turn, run)?;
            fired.is_observed = observed.sees(has_observer);
            if fired.needs_owner
                && let Some((owner, key)) = owner_and_key(fired.event.entity(), &self.entities)
            {
                fired.set_owned(owner, key);
            }
            if !fired.needs_owner && !fired.reaction.is_silent() {
                self.messages.write(fired.event);
            }
            if fired.is_handled() {
                return Some(fired);
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
struct FiringQueue<'a> {
    queue: &'a mut ClockQueue,
    bursting: &'a mut Vec<Place>,
    stats: &'a mut RunStats,
    journal: &'a mut Option<TimerJournal>,
}

impl FiringQueue<'_> {
    /// Fires the due timers that come next, as long as they fire on time and nothing handles them. There is no journal,
    /// which notes each timer before it fires, and the frame is not exact, which counts all firings.
    #[inline]
    fn fire_on_time(
        &mut self,
        turn: &Turn,
        entities: &Entities,
        observed: Observed,
    ) -> impl Iterator<Item = TimerFired> {
        let clock = (turn.id, &turn.reading);
        let stats = &mut *self.stats;
        self.queue
            .timers
            .rearm_listed(turn.reading.now, move |deadline, timer| {
                if timer.reaction != Reaction::None || observed.sees(timer.is(Mark::Observed)) {
                    return None;
                }
                let owner = match timer.is(Mark::Owned) {
                    true => owner_and_key(timer.entity, entities)?,
                    false => (timer.entity, None),
                };
                let next = timer.advance_on_time(deadline, turn.reading.now)?;
                stats.fired += 1;
                let fired = TimerFired::of(timer, owner, clock, deadline);
                Some((next, fired))
            })
    }

    /// Fires the first due timer, if any, and returns whether it or its owner has an observer.
    ///
    /// The queue is consistent when this returns, so handlers may do anything.
    #[inline]
    fn fire_due(&mut self, turn: &Turn, run: &Run) -> Option<(Fired, bool)> {
        let mut due = self.queue.timers.pop_due(turn.reading.now)?;
        let deadline = due.deadline();
        if let Some(journal) = self.journal {
            note_due(journal, turn.clock, &due);
        }
        let (key, timer) = due.key_and_value();
        let has_observer = timer.is(Mark::Observed);
        let depth = timer.burst;
        if turn.end.is_none()
            && let Some(next) = timer.advance_on_time(deadline, turn.reading.now)
        {
            let fired = turn.fired(timer, key, deadline, depth);
            due.rearm(next);
            self.stats.fired += 1;
            return Some((fired, has_observer));
        }
        let (fired, next) = turn.fire_any(timer, (key, deadline), run.burst_limit);
        if depth == 0 && timer.burst > 0 {
            self.bursting.push((turn.clock, key));
        }
        match next {
            Some(next) => {
                due.rearm(next);
                if fired.chain.is_some_and(|length| length >= run.burst_limit) {
                    // The timer waits for the next frame, whatever the handlers do to its clock.
                    self.queue.timers.park(key, next);
                }
            }
            None => {
                drop(due);
                self.queue.silent -= usize::from(fired.reaction.is_silent());
            }
        }
        self.stats.count(&fired.event);
        Some((fired, has_observer))
    }
}

impl TimerQueues {
    /// Returns the timers of a clock in its turn, to fire them in this run.
    #[inline]
    fn firing(&mut self, turn: &Turn, run: &Run) -> Option<FiringQueue<'_>> {
        Some(FiringQueue {
            // A clock that a restore has brought back may still be looked at for timers that are gone.
            queue: self.queues.get_mut(index(turn.clock))?,
            bursting: &mut self.bursting,
            stats: &mut self.reports.runs[Reports::index(run.scope)],
            journal: &mut self.journal,
        })
    }

    /// Returns when to look at the timers of a clock again.
    pub(super) fn first_look(&self, clock: ClockKey) -> Option<u64> {
        self.get(clock)?.timers.first_look()
    }

    /// Ends the bursts and chains of a run. The next swap releases the timers that have reached the limit.
    pub(super) fn end_bursts(&mut self) {
        let limit = self.burst_limit.get();
        while let Some(place) = self.bursting.pop() {
            let Some(timer) = self
                .get_mut(place.0)
                .and_then(|queue| queue.timers.get_mut(place.1))
            else {
                continue;
            };
            if mem::take(&mut timer.burst) >= limit && !timer.is(Mark::Listed) {
                timer.set(Mark::Listed, true);
                self.arming.swap_list.push(place);
            }
        }
    }
}
