//! A run of the timers: arm new timers, fire due timers.
//!
//! It is one loop: fire, announce, react, end. Between two firings, the queue is the single
//! source of truth. A timer that a handler cancels is gone immediately.

use alloc::collections::BTreeSet;
use core::mem;

use bevy_ecs::prelude::*;
use bevy_platform::{sync::Arc, time::Instant};
use smallvec::SmallVec;

use super::{
    Keyed, Kind, OwnedTimerFired, Timer, TimerAction, TimerCancelled, TimerFired, TimerQueues,
    WhenDone,
    action::report_unknown_handlers,
    arm::{Arming, swap},
    budget::TimerBudget,
    end::{Ended, end_finished, when_done},
    events::is_observed_at_all,
    queued::Reaction,
    queues::Reports,
    saving::forget_written,
    turn::{FireParams, Fired, FiringQueue, Turn},
};
use crate::{
    clock::{Cadence, ClockKey, ClockTable, DueClock, Scope},
    owner::OwnedBy,
    queue::Key,
};

/// The number of clocks that share what they fetch of the world.
const AHEAD: usize = 16;

/// The statistics of one run.
///
/// [`ArmedTimers::last_run`](crate::ArmedTimers::last_run) and
/// [`fast_forward`](crate::DueWorldExt::fast_forward) return these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// The number of timers and lifetimes armed since the previous run, on all clocks.
    ///
    /// Timers that were resumed or rescheduled count, too.
    pub armed: u64,
    /// The number of firings, and of lifetimes that ended.
    pub fired: u64,
    /// The number of deadlines that passed without a firing.
    pub missed: u64,
    /// The number of timers cancelled since the previous run.
    pub cancelled: u64,
}

impl RunStats {
    #[inline]
    pub(super) fn count(&mut self, fired: &TimerFired) {
        self.fired += 1;
        self.missed += fired.missed();
    }

    /// Adds the statistics of another run.
    pub(crate) fn add(&mut self, run: Self) {
        self.armed += run.armed;
        self.fired += run.fired;
        self.missed += run.missed;
        self.cancelled += run.cancelled;
    }
}

/// Arms the new timers, and fires the due ones.
pub(crate) fn run_timers(world: &mut World, cadence: Cadence, params: &mut FireParams) -> Result {
    if world.resource::<TimerQueues>().awaits_swap() {
        report_unknown_handlers(world);
        forget_written(world);
        swap(world);
    }
    run(world, Scope::Of(cadence), params)
}

/// Writes the cancellations since the previous run, ends the timers that finished in it, and fires the
/// timers that are due on the clocks of a scope.
pub(super) fn run(world: &mut World, scope: Scope, params: &mut FireParams) -> Result {
    let table = world.resource::<ClockTable>();
    let (may_be_due, cadence) = (table.may_be_due(scope), table.cadence_of(scope));
    let mut queues = world.resource_mut::<TimerQueues>();
    queues.begin_run(scope);
    if !may_be_due && queues.has_no_leftovers(scope) {
        return Ok(());
    }
    let burst_limit = queues.burst_limit.get();
    let budget = match scope {
        Scope::Of(_) => world.get_resource().copied().unwrap_or_default(),
        Scope::Under(_) => TimerBudget::Unlimited,
    };
    let run = Run {
        scope,
        cadence,
        burst_limit,
        budget,
    };
    run.execute(world, params)
}

/// A run that fires timers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    scope: Scope,
    cadence: Cadence,
    /// The number of firings of one timer from which on its deadlines are skipped.
    pub(super) burst_limit: u32,
    pub(super) budget: TimerBudget,
}

impl Run {
    /// Writes and ends what is left from the previous run, and fires the due timers.
    fn execute(self, world: &mut World, params: &mut FireParams) -> Result {
        let token = RunDepth::begin(world);
        // A handler may run a schedule, which nests a run inside this one.
        let is_nested = !token.is_outermost();
        let mut queues = world.resource_mut::<TimerQueues>();
        let reports = &queues.reports;
        let has_cancelled = reports.cancelled.len() > 0;
        let has_ended = !is_nested && reports.has_ended(self.scope);
        let is_any_deferred = queues.deferred.iter().len() > 0;
        let mut due = mem::take(&mut queues.arming.due);
        if has_cancelled {
            write_cancelled(world);
        }
        if has_ended {
            end_finished(world, self.cadence);
        }
        if is_any_deferred && self.budget == TimerBudget::Unlimited {
            world.resource_scope(|world, mut queues: Mut<TimerQueues>| {
                let mut table = world.resource_mut::<ClockTable>();
                queues.end_all_deferrals(&mut table, self.scope);
            });
        }
        world
            .resource_mut::<ClockTable>()
            .find_due(self.scope, &mut due);
        // A panic may have kept the previous run from ending its bursts.
        let mut queues = world.resource_mut::<TimerQueues>();
        for &(.., clock) in &due {
            queues.end_bursts(clock);
        }
        self.fire_clocks(world, params, &due)?;
        self.spend_budget(world, params)?;
        let mut queues = world.resource_mut::<TimerQueues>();
        queues.arming.due = due;
        Ok(())
    }

    /// Fires the due timers on these clocks, one clock after the other. The turn of a clock ends when
    /// nothing on it is due any more, or when something stops it.
    fn fire_clocks(
        self,
        world: &mut World,
        params: &mut FireParams,
        mut due: &[DueClock],
    ) -> Result {
        let mut turns = SmallVec::<[Option<Turn>; AHEAD]>::new();
        let mut ended = SmallVec::<[(ClockKey, Option<u64>); AHEAD]>::new();
        let mut is_observed = has_observers(world);
        // As long as no handler runs, several clocks share what they fetch of the world.
        let mut ahead = 1;
        let mut fired: Option<Fired> = None;
        while !due.is_empty() {
            if !matches!(turns.last(), Some(Some(turn)) if turn.is_current()) {
                let begun = turns.pop().flatten();
                turns.clear();
                let next = due.iter().take(ahead).rev();
                turns.extend(Turn::read(world, next, self.scope));
                if let (Some(begun), Some(Some(turn))) = (begun, turns.last_mut()) {
                    // What became due on this clock while a handler read the clocks waits for the next run.
                    turn.reading.now = turn.reading.now.min(begun.reading.now);
                }
            }
            let mut firing = params.get_mut(world)?;
            if let Some(done) = &fired
                && done.reaction == Reaction::EndLife
            {
                let ended = &mut firing.queues.reports.ended;
                ended.take_back(None, done.event.entity(), Kind::Lifetime);
            }
            fired = None;
            while let (Some(turn), Some(&(.., clock)), None) = (turns.last(), due.first(), &fired) {
                let runs = turn.as_ref().is_some_and(|turn| {
                    let next = |queue: &mut FiringQueue| queue.fire_due(turn, &self);
                    firing.fire_up_to_handler(turn, self.scope, next, is_observed, &mut fired)
                });
                if fired.is_some() {
                    break;
                }
                if let Some(queue) = firing.queues.get_mut(clock) {
                    // What the handlers arm waits for the next run.
                    ended.extend(runs.then(|| (clock, queue.timers.first_look())));
                    queue.end_bursts();
                }
                turns.pop();
                due = &due[1..];
            }
            if !ended.is_empty() {
                plan(world, &ended);
                ended.clear();
            }
            ahead = AHEAD.min(2 * ahead);
            if let Some(fired) = &mut fired {
                handle(world, fired, self.cadence, is_observed);
                is_observed = is_observed || has_observers(world);
                // The handler may have stopped other clocks, or let them run again.
                if turns.len() > 1 {
                    turns.drain(..turns.len() - 1);
                }
                ahead = 1;
            }
        }
        Ok(())
    }

    /// Fires the timers that wait for the budget until it is spent, those of the earliest turn first.
    fn spend_budget(self, world: &mut World, params: &mut FireParams) -> Result {
        let mut last = None;
        let mut clocks = BTreeSet::new();
        loop {
            let deferred = &world.resource::<TimerQueues>().deferred;
            let Some((rank, (clock, key))) = deferred.after(last) else {
                break;
            };
            let table = world.resource::<ClockTable>();
            let age = table.age_in(clock, self.scope);
            let due = age.map(|age| (0, age, clock));
            let Some(turn) = Turn::read(world, due.iter(), self.scope).next().flatten() else {
                last = Some(rank);
                continue;
            };
            if !deferred.has_room(self.budget, self.cadence) {
                break;
            }
            if clocks.insert(clock) {
                // A panic may have kept the previous run from ending its bursts.
                world.resource_mut::<TimerQueues>().end_bursts(clock);
            }
            self.spend_on(world, params, &turn, key)?;
        }
        let mut queues = world.resource_mut::<TimerQueues>();
        for clock in clocks {
            queues.end_bursts(clock);
        }
        Ok(())
    }

    /// Fires a timer that waits for the budget.
    fn spend_on(self, world: &mut World, params: &mut FireParams, turn: &Turn, key: Key) -> Result {
        let is_observed = has_observers(world);
        let is_measured = matches!(self.budget, TimerBudget::Time(_));
        let start = is_measured.then(Instant::now);
        let mut queues = world.resource_mut::<TimerQueues>();
        queues.deferred.add_firing(self.cadence);
        queues.note((turn.clock, key));
        let mut fired = None;
        let mut is_next = true;
        let next = |queue: &mut FiringQueue| match mem::take(&mut is_next) {
            true => queue.fire_deferred(key, turn, &self),
            false => None,
        };
        let mut firing = params.get_mut(world)?;
        firing.fire_up_to_handler(turn, self.scope, next, is_observed, &mut fired);
        // No other timer may be due on the clock, so nothing else tells the table.
        let queue = firing.queues.get(turn.clock);
        let first_look = queue.and_then(|queue| queue.timers.first_look());
        plan(world, &[(turn.clock, first_look)]);
        if let Some(fired) = &mut fired {
            handle(world, fired, self.cadence, is_observed);
        }
        if let Some(start) = start {
            let mut queues = world.resource_mut::<TimerQueues>();
            queues.deferred.add_time(start.elapsed());
        }
        Ok(())
    }
}

/// Tells the table when to look at clocks again.
fn plan(world: &mut World, clocks: &[(ClockKey, Option<u64>)]) {
    let mut table = world.resource_mut::<ClockTable>();
    for &(clock, first_look) in clocks {
        table.set_deadline(clock, first_look);
    }
}

/// Writes the message of a firing on an entity that a component of the game hides from queries.
fn write_hidden(world: &mut World, fired: &mut Fired) {
    let entity = fired.event.entity();
    let owner = world.get(entity).map_or(entity, |&OwnedBy(owner)| owner);
    let key = world.get::<Keyed>(entity).map(|key| key.id());
    fired.event.set_owned(owner, key);
    if fired.reaction != Reaction::EndLife {
        world.write_message(fired.event);
    }
}

/// Writes a message for each cancellation since the previous run.
fn write_cancelled(world: &mut World) {
    world.resource_scope(|world, mut messages: Mut<Messages<TimerCancelled>>| {
        let mut queues = world.resource_mut::<TimerQueues>();
        queues.reports.cancelled.write(&mut messages);
    });
}

/// Returns `true` if there are observers of firings, on any entity.
fn has_observers(world: &mut World) -> bool {
    is_observed_at_all::<TimerFired>(world) || is_observed_at_all::<OwnedTimerFired>(world)
}

/// Runs the reactions to a firing.
fn handle(world: &mut World, fired: &mut Fired, cadence: Cadence, is_observed: bool) {
    if fired.is_owned {
        write_hidden(world, fired);
    }
    if fired.reaction == Reaction::EndLife {
        return end_life(world, fired);
    }
    #[cfg(feature = "trace")]
    let _span = super::events::span(world, &fired.event).entered();
    let when_done = record_end(world, fired, cadence);
    if is_observed {
        fired.event.trigger(world);
    }
    react(world, fired);
    if let Some(when_done) = when_done {
        end(world, fired, cadence, when_done);
    }
}

/// Records the end of a timer that fires its last, and returns what happens to its entity. If a handler
/// panics, the next run ends the timer.
fn record_end(world: &mut World, fired: &Fired, cadence: Cadence) -> Option<WhenDone> {
    if !fired.event.is_last() {
        return None;
    }
    let entity = fired.event.entity();
    let when_done = when_done(world, entity);
    let mut queues = world.resource_mut::<TimerQueues>();
    let ended = Ended::timer(entity, when_done);
    queues.reports.ended.push(cadence, ended);
    Some(when_done)
}

/// Despawns an entity whose lifetime is over.
fn end_life(world: &mut World, fired: &Fired) {
    world.try_despawn(fired.event.entity()).ok();
    world.flush();
}

/// Runs the timer's action, unless an observer cancelled or re-armed the timer.
fn react(world: &mut World, fired: &Fired) {
    if fired.reaction == Reaction::Act && is_still(world, fired) {
        TimerAction::act(world, &fired.event);
    }
}

/// Ends a timer that has finished: removes the component, unless a handler has removed or replaced
/// it. The next run despawns the entity, unless it is kept.
fn end(world: &mut World, fired: &Fired, cadence: Cadence, when_done: WhenDone) {
    let entity = fired.event.entity();
    let mut is_over = when_done == WhenDone::Keep;
    if is_still(world, fired) {
        world.entity_mut(entity).remove::<Timer>();
    } else {
        is_over |= world.get::<Timer>(entity).is_some();
    }
    if is_over && let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        queues.reports.ended.take_back(cadence, entity, Kind::Timer);
    }
}

/// Returns `true` if the timer that fired is still the one on its entity.
fn is_still(world: &World, fired: &Fired) -> bool {
    let timer = world.get::<Timer>(fired.event.entity());
    timer.and_then(|timer| timer.seat.place()) == Some(fired.place)
}

impl TimerQueues {
    /// Starts the statistics and the budget of a run.
    fn begin_run(&mut self, scope: Scope) {
        let reports = &mut self.reports;
        *reports.run_mut(scope) = RunStats {
            armed: mem::take(&mut reports.armed),
            cancelled: reports.cancelled.len(),
            ..RunStats::default()
        };
        if scope == Scope::Of(Cadence::Frame) {
            self.deferred.begin_frame();
        }
    }

    /// Returns `true` if there are new timers or actions, or written states that the run changes.
    fn awaits_swap(&self) -> bool {
        let Arming {
            swap_list,
            unhandled,
            ..
        } = &self.arming;
        !swap_list.is_empty() || !unhandled.is_empty() || self.written.is_some()
    }

    /// Returns `true` if a run has no cancellation to write, no timer to end, and none that waits for the
    /// budget.
    fn has_no_leftovers(&self, scope: Scope) -> bool {
        let Reports { cancelled, .. } = &self.reports;
        let has_ended = self.reports.has_ended(scope);
        cancelled.len() == 0 && !has_ended && self.deferred.iter().len() == 0
    }
}

/// Counts the nested runs that are firing.
///
/// Each run holds a clone, and drops it at its end, even if a handler panics.
#[derive(Resource, Default)]
pub(crate) struct RunDepth(Arc<()>);

impl RunDepth {
    fn begin(world: &World) -> Self {
        Self(world.resource::<Self>().0.clone())
    }

    fn is_outermost(&self) -> bool {
        Arc::strong_count(&self.0) == 2
    }

    /// Returns `true` if a handler of a timer is running.
    pub(crate) fn is_active(world: &World) -> bool {
        let firing = world.get_resource::<Self>();
        firing.is_some_and(|firing| Arc::strong_count(&firing.0) > 1)
    }
}
