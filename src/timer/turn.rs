//! The turn of a clock: its due timers fire, one after the other, until one of them has to be handled.

use core::iter;

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
    budget::{Deferred, TimerBudget},
    end::Ended,
    key::KeyId,
    queued::{ArmedTimer, Mark, Reaction},
    queues::{ClockQueue, index},
    run::Run,
    undo::TimerJournal,
};
use crate::{
    clock::{
        Age, Changes, Clock, ClockKey, ClockTable, DueClock, PackedClockId, Reading, Scope,
        is_game_stopped, read_running,
    },
    owner::OwnedBy,
    queue::{First, Key},
};

pub(crate) type FireParams = SystemState<Firing<'static, 'static>>;

/// The parts of the world that are used between two handlers.
#[derive(SystemParam)]
pub(crate) struct Firing<'w, 's> {
    pub(super) queues: ResMut<'w, TimerQueues>,
    game: Option<Res<'w, Time<Virtual>>>,
    entities: Entities<'w, 's>,
    messages: ResMut<'w, Messages<TimerFired>>,
}

/// The clocks, and the owners and keys of timers.
type Entities<'w, 's> = Query<
    'w,
    's,
    (
        Option<&'static Clock>,
        Option<&'static OwnedBy>,
        Option<&'static Keyed>,
    ),
    Allow<Disabled>,
>;

/// The turn of a clock, and the time on it.
pub(super) struct Turn {
    pub(super) clock: ClockKey,
    id: PackedClockId,
    pub(super) reading: Reading,
    /// The clocks on entities that can stop it in this run: itself, and those above it.
    stops: SmallVec<[Entity; 2]>,
    /// Whether a pause of the game stops it.
    is_in_game: bool,
    changes: Changes,
    /// The number of changes when the time was read.
    seen: u64,
}

impl Turn {
    /// Reads the times on clocks. A clock that is gone, or that something stops, has no turn.
    pub(super) fn read<'a>(
        world: &'a World,
        due: impl Iterator<Item = &'a DueClock>,
        scope: Scope,
    ) -> impl Iterator<Item = Option<Self>> {
        let table = world.get_resource::<ClockTable>();
        let game = world.get_resource::<Time<Virtual>>();
        due.map(move |&(_, age, clock)| Self::new(world, table?, game, (clock, age), scope))
    }

    fn new<'w>(
        world: &'w World,
        table: &ClockTable,
        game: Option<&'w Time<Virtual>>,
        clock: (ClockKey, Age),
        scope: Scope,
    ) -> Option<Self> {
        let (mut stops, mut is_in_game) = (SmallVec::new(), false);
        let component = |entity| {
            stops.push(entity);
            world.get(entity)
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
            changes: table.changes().clone(),
            seen: table.changes().with_edits(),
        })
    }

    /// Returns `true` if the time is still the same, and only what [`is_stopped`](Self::is_stopped) asks
    /// can have stopped the clock.
    pub(super) fn is_current(&self) -> bool {
        self.seen == self.changes.with_edits()
    }

    fn is_stopped(&self, game: Option<&Time<Virtual>>, entities: &Entities) -> bool {
        let is_stopped = |&entity: &Entity| {
            let clock = entities.get(entity).ok().and_then(|(clock, ..)| clock);
            clock.is_some_and(Clock::is_stopped)
        };
        self.is_in_game && game.is_some_and(is_game_stopped) || self.stops.iter().any(is_stopped)
    }

    /// Counts a firing, and returns it with the next deadline.
    fn fire(
        &self,
        timer: &mut ArmedTimer,
        (key, deadline): (Key, u64),
        burst_limit: u32,
    ) -> (Fired, Option<u64>) {
        let (missed, next) = timer.advance(deadline, self.reading.now, burst_limit);
        let mut fired = self.fired(timer, key, deadline);
        fired.event = fired.event.with_missed(missed).with_last(next.is_none());
        (fired, next)
    }

    /// Returns a firing that skips no deadline and is not the last.
    #[inline]
    fn fired(&self, timer: &ArmedTimer, key: Key, deadline: u64) -> Fired {
        Fired {
            event: TimerFired::of(timer, (self.id, &self.reading), deadline),
            place: (self.clock, key),
            is_owned: timer.is(Mark::Owned),
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
    pub(super) is_owned: bool,
    pub(super) reaction: Reaction,
}

impl Firing<'_, '_> {
    /// Fires the `next` timers on a clock until one has to be handled, which stays in `fired`. Returns
    /// `false` if something has stopped the clock.
    #[inline]
    pub(super) fn fire_up_to_handler(
        &mut self,
        turn: &Turn,
        scope: Scope,
        mut next: impl FnMut(&mut FiringQueue) -> Option<Fired>,
        is_observed: bool,
        fired: &mut Option<Fired>,
    ) -> bool {
        let Self {
            queues,
            game,
            entities,
            messages,
        } = self;
        if queues.written.is_some() {
            // A handler has written the states out. The next firing changes one of them.
            turn.changes.note();
        }
        if turn.is_stopped(game.as_deref(), entities) {
            return false;
        }
        let queue = queues.firing(turn.clock, scope);
        debug_assert!(queue.is_some(), "no timer was ever on clock {}", turn.clock);
        if let Some(mut queue) = queue {
            let next = || next(&mut queue);
            write_firings(messages, entities, next, is_observed, fired);
        }
        if let Some(fired) = fired
            && fired.reaction == Reaction::EndLife
        {
            // If a handler panics in the despawn, the next run ends the lifetime.
            let ended = Ended::lifetime(fired.event.entity());
            queues.reports.ended.push(None, ended);
        }
        true
    }
}

/// Fires the `next` timers one after the other, and writes their messages.
///
/// Stops after the first firing that has an observer or a reaction, or that is its timer's last,
/// and leaves this firing in `popped`. Returning it would cost another copy.
#[inline]
fn write_firings(
    messages: &mut Messages<TimerFired>,
    entities: &Entities,
    mut next: impl FnMut() -> Option<Fired>,
    is_observed: bool,
    popped: &mut Option<Fired>,
) {
    let mut next = || {
        if popped.is_some() {
            return None;
        }
        let mut fired = next()?;
        if fired.is_owned {
            match owner_and_key(fired.event.entity(), entities) {
                Some((owner, key)) => {
                    fired.event.set_owned(owner, key);
                    fired.is_owned = false;
                }
                None => {
                    *popped = Some(fired);
                    return None;
                }
            }
        }
        let (event, reaction) = (fired.event, fired.reaction);
        if is_observed || reaction != Reaction::None || event.is_last() {
            *popped = Some(fired);
        }
        (reaction != Reaction::EndLife).then_some(event)
    };
    if !is_observed {
        messages.write_batch(iter::from_fn(next));
    } else if let Some(event) = next() {
        // It is alone, so a batch would cost more.
        messages.write(event);
    }
}

/// Returns the owner and the key of an owned timer, or `None` if its entity is hidden from queries.
#[inline(never)]
fn owner_and_key(entity: Entity, entities: &Entities) -> Option<(Entity, Option<KeyId>)> {
    let (_, owned, key) = entities.get(entity).ok()?;
    Some((owned.map_or(entity, |by| by.0), key.map(|key| key.id())))
}

/// The timers of a clock that fires, and what else a firing changes.
pub(super) struct FiringQueue<'a> {
    queue: &'a mut ClockQueue,
    deferred: &'a mut Deferred,
    stats: &'a mut RunStats,
    journal: &'a mut Option<TimerJournal>,
}

impl FiringQueue<'_> {
    /// Fires the first due timer, if any.
    ///
    /// The queue is consistent when this returns, so handlers may do anything.
    #[inline]
    pub(super) fn fire_due(&mut self, turn: &Turn, run: &Run) -> Option<Fired> {
        let now = turn.reading.now;
        loop {
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
                let is_deferred =
                    run.budget != TimerBudget::Unlimited && timer.priority().is_some();
                let first = due.put_back();
                if is_deferred {
                    self.defer(turn.clock, key, deadline);
                    continue;
                }
                let fired = self.queue.fire_any(first, turn, run);
                self.stats.count(&fired.event);
                return Some(fired);
            };
            let fired = turn.fired(timer, key, deadline);
            due.rearm(next);
            self.stats.fired += 1;
            return Some(fired);
        }
    }

    /// Lets a due timer wait for the budget.
    fn defer(&mut self, clock: ClockKey, key: Key, deadline: u64) {
        self.queue.timers.park(key, deadline);
        if let Some(timer) = self.queue.timers.get_mut(key) {
            let rank = self
                .deferred
                .push(timer.priority().unwrap_or(0), (clock, key));
            timer.change_rare(|rare| rare.rank = Some(rank));
        }
    }

    /// Fires a timer that waits for the budget. If its next deadline has passed, too, it waits again.
    pub(super) fn fire_deferred(&mut self, key: Key, turn: &Turn, run: &Run) -> Option<Fired> {
        let deadline = self.queue.timers.deadline(key)?;
        let timer = self.queue.timers.get_mut(key)?;
        self.deferred.remove(timer.take_rank()?);
        let (fired, next) = turn.fire(timer, (key, deadline), run.burst_limit);
        if timer.burst == 1 {
            self.queue.bursting.push(key);
        }
        match next {
            Some(next) if next <= turn.reading.now => self.defer(turn.clock, key, next),
            Some(next) => _ = self.queue.timers.arm(key, next),
            None => _ = self.queue.timers.cancel(key),
        }
        self.stats.count(&fired.event);
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
                self.lifetimes -= usize::from(fired.reaction == Reaction::EndLife);
            }
        }
        fired
    }
}

impl TimerQueues {
    /// Returns the timers of a clock, to fire them in a run of this scope.
    fn firing(&mut self, clock: ClockKey, scope: Scope) -> Option<FiringQueue<'_>> {
        Some(FiringQueue {
            queue: self.queues.get_mut(index(clock))?,
            deferred: &mut self.deferred,
            stats: self.reports.run_mut(scope),
            journal: &mut self.journal,
        })
    }
}
