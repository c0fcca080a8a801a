//! A run of the timers: arm new timers, fire due timers.
//!
//! It is one loop: fire, announce, react, end. Between two firings, the queue is the single
//! source of truth. A timer that a handler cancels is gone immediately.

use core::mem;

use bevy_ecs::prelude::*;
use bevy_platform::sync::Arc;
use smallvec::SmallVec;

use super::{
    Keyed, Kind, OwnedTimerFired, Timer, TimerAction, TimerCancelled, TimerFired, TimerQueues,
    WhenDone,
    action::report_unknown_handlers,
    arm::swap,
    end::{Ended, end_finished, when_done},
    events::{is_observed_at_all, limit_backlog},
    fast_forward::fast_forward_asked,
    open_request::time_out,
    queued::Reaction,
    queues::Reports,
    saving::forget_written,
    turn::{FireParams, Fired, Turn},
};
use crate::{
    clock::{Cadence, Changes, ClockKey, ClockTable, DueClock, Scope, built_in_id, is_any_written},
    owner::OwnedBy,
};

/// The number of clocks that share what they fetch of the world.
pub(super) const AHEAD: usize = 16;

/// The statistics of one run.
///
/// [`ArmedTimers::last_run`](crate::ArmedTimers::last_run) and
/// [`fast_forward`](crate::DueWorldExt::fast_forward) return these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// The number of timers, lifetimes and time-outs armed since the previous run, on all clocks.
    ///
    /// Timers that were resumed or rescheduled count, too.
    pub armed: u64,
    /// The number of firings, of lifetimes that ended, and of requests that timed out.
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
    limit_backlog(world);
    report_unknown_handlers(world);
    forget_written(world);
    swap(world);
    run(world, Scope::Of(cadence), params)?;
    fast_forward_asked(world);
    Ok(())
}

/// Writes the cancellations since the previous run, ends the timers that finished in it, and fires the
/// timers that are due on the clocks of a scope.
pub(super) fn run(world: &mut World, scope: Scope, params: &mut FireParams) -> Result {
    let table = world.resource::<ClockTable>();
    let (cadence, changes) = (table.cadence_of(scope), table.changes().clone());
    let mut queues = world.resource_mut::<TimerQueues>();
    queues.begin_run(scope);
    let burst_limit = queues.burst_limit.get();
    let run = Run {
        scope,
        cadence,
        changes,
        burst_limit,
    };
    run.execute(world, params)
}

/// A run that fires timers.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scope: Scope,
    cadence: Cadence,
    /// The change counter of the clocks.
    pub(super) changes: Changes,
    /// The number of firings of one timer from which on its deadlines are skipped.
    pub(super) burst_limit: u32,
}

impl Run {
    /// Writes and ends what is left from the previous run, and fires the due timers.
    fn execute(&self, world: &mut World, params: &mut FireParams) -> Result {
        let token = RunDepth::begin(world);
        // A handler may run a schedule, which nests a run inside this one.
        let is_nested = !token.is_outermost();
        let mut queues = world.resource_mut::<TimerQueues>();
        let reports = &queues.reports;
        let has_cancelled = reports.cancelled.len() > 0;
        let has_ended = !is_nested && reports.has_ended(self.scope);
        let mut due = mem::take(&mut queues.arming.due);
        if has_cancelled {
            write_cancelled(world);
        }
        if has_ended {
            end_finished(world, self.cadence);
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
        let mut queues = world.resource_mut::<TimerQueues>();
        queues.arming.due = due;
        Ok(())
    }

    /// Fires the due timers on these clocks, one clock after the other. The turn of a clock ends when
    /// nothing on it is due any more, or when something stops it.
    fn fire_clocks(
        &self,
        world: &mut World,
        params: &mut FireParams,
        mut due: &[DueClock],
    ) -> Result {
        if has_observers(world) {
            self.fire_observed(world, due, None);
            return Ok(());
        }
        let mut turns = SmallVec::<[Option<Turn>; AHEAD]>::new();
        let mut ended = SmallVec::<[(ClockKey, Option<u64>); AHEAD]>::new();
        // As long as no handler runs, several clocks share what they fetch of the world.
        let mut ahead = 1;
        // A system may have written the component of a clock since the reading.
        let mut is_written = match due.last() {
            Some(&(.., clock)) if built_in_id(clock).is_none() => {
                let own = world.resource::<ClockTable>().own_clocks();
                is_any_written(&params.get_mut(world)?.clocks, own)
            }
            _ => true,
        };
        let mut lifetime = None;
        while !due.is_empty() {
            match turns.last_mut() {
                Some(Some(turn)) if turn.is_current(&self.changes) => {
                    if turn.is_stopped(world) {
                        turns.pop();
                        turns.push(None);
                    }
                }
                _ => {
                    let begun = turns.pop().flatten();
                    turns.clear();
                    let next = &due[..ahead.min(due.len())];
                    turns.extend(Turn::read(world, next, self.scope, is_written));
                    if let (Some(begun), Some(Some(turn))) = (begun, turns.last_mut()) {
                        turn.go_on(&begun);
                    }
                }
            }
            let mut handled = None;
            let mut firing = params.get_mut(world)?;
            if turns.len() > 1 {
                firing.prefetch(&turns);
            }
            firing.queues.complete(lifetime.take());
            while let (Some(turn), Some(clock)) = (turns.last(), due.first()) {
                if let Some(turn) = turn {
                    firing.fire_up_to_handler(turn, self, &mut handled);
                }
                if handled.is_some() {
                    break;
                }
                ended.extend(firing.queues.end_turn(clock, turn.as_ref()));
                turns.pop();
                due = &due[1..];
            }
            if !ended.is_empty() {
                note_looks(world, &ended);
                ended.clear();
            }
            ahead = AHEAD.min(2 * ahead);
            if let Some(fired) = &mut handled {
                is_written = true;
                lifetime = handle(world, fired, self.cadence, false);
                if has_observers(world) {
                    world.resource_mut::<TimerQueues>().complete(lifetime);
                    self.fire_observed(world, due, turns.pop().flatten());
                    break;
                }
                // The handler may have stopped other clocks, or let them run again.
                if turns.len() > 1 {
                    turns.drain(..turns.len() - 1);
                }
                ahead = 1;
            }
        }
        Ok(())
    }

    /// Fires the due timers on these clocks as [`fire_clocks`](Self::fire_clocks) does, while there are
    /// observers. The first clock may have begun its turn.
    fn fire_observed(&self, world: &mut World, due: &[DueClock], mut begun: Option<Turn>) {
        let mut lifetime = None;
        for clock in due {
            let read = |world: &World| Turn::read_one(world, clock, self.scope);
            let mut turn = begun.take().or_else(|| read(world));
            while let Some(current) = &turn {
                if !current.is_current(&self.changes) {
                    let begun = turn.take();
                    turn = read(world);
                    if let (Some(begun), Some(turn)) = (begun, &mut turn) {
                        turn.go_on(&begun);
                    }
                } else if current.is_stopped(world) {
                    turn = None;
                } else {
                    let mut queues = world.resource_mut::<TimerQueues>();
                    queues.complete(lifetime.take());
                    let mut queue = queues.firing(current, self);
                    let fired = queue.as_mut().and_then(|it| it.fire_due(current, self));
                    let Some(mut fired) = fired else {
                        break;
                    };
                    write(world, &mut fired);
                    lifetime = handle(world, &mut fired, self.cadence, true);
                }
            }
            let mut queues = world.resource_mut::<TimerQueues>();
            queues.complete(lifetime.take());
            if let Some(ended) = queues.end_turn(clock, turn.as_ref()) {
                note_looks(world, &[ended]);
            }
        }
    }
}

/// Tells the table when to look at clocks again.
fn note_looks(world: &mut World, clocks: &[(ClockKey, Option<u64>)]) {
    let mut table = world.resource_mut::<ClockTable>();
    for &(clock, first_look) in clocks {
        table.set_look(clock, first_look);
    }
}

/// Writes the message of a firing, which gets to know its owner.
fn write(world: &mut World, fired: &mut Fired) {
    if fired.needs_owner {
        let entity = fired.event.entity();
        let owner = world.get(entity).map_or(entity, |&OwnedBy(owner)| owner);
        let key = world.get::<Keyed>(entity).map(|key| key.id());
        fired.set_owned(owner, key);
    }
    if !fired.reaction.is_silent() {
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

/// Runs the reactions to a firing. If it ended the lifetime of an entity, returns this entity.
fn handle(
    world: &mut World,
    fired: &mut Fired,
    cadence: Cadence,
    is_observed: bool,
) -> Option<Entity> {
    if fired.needs_owner {
        // A component of the game hides its entity from queries.
        write(world, fired);
    }
    let entity = fired.event.entity();
    match fired.reaction {
        Reaction::EndLife => {
            world.try_despawn(entity).ok();
            world.flush();
            return Some(entity);
        }
        Reaction::TimeOut => {
            time_out(world, entity);
            return None;
        }
        Reaction::None | Reaction::Act => {}
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
    None
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
    /// Starts the statistics of a run.
    fn begin_run(&mut self, scope: Scope) {
        let reports = &mut self.reports;
        reports.cancelled.forget_written();
        reports.runs[Reports::index(scope)] = RunStats {
            armed: mem::take(&mut reports.armed),
            cancelled: reports.cancelled.len(),
            ..RunStats::default()
        };
    }

    /// Completes the end of a lifetime after its entity was despawned.
    #[inline]
    fn complete(&mut self, lifetime: Option<Entity>) {
        if let Some(entity) = lifetime {
            self.reports.ended.take_back(None, entity, Kind::Lifetime);
        }
    }

    /// Ends the turn of a clock, if it had one. Returns when to look at the clock again: what the handlers
    /// arm waits for the next run.
    fn end_turn(
        &mut self,
        &(.., clock): &DueClock,
        turn: Option<&Turn>,
    ) -> Option<(ClockKey, Option<u64>)> {
        let queue = self.get_mut(clock)?;
        let first_look = queue.timers.first_look();
        queue.end_bursts();
        turn.map(|_| (clock, first_look))
    }

    /// Begins a run that has nothing else to do. Returns `false` if it has.
    pub(crate) fn begin_idle(&mut self, clocks: &ClockTable, cadence: Cadence) -> bool {
        let scope = Scope::Of(cadence);
        let (arming, reports) = (&self.arming, &self.reports);
        let has_new = !arming.swap_list.is_empty() || !arming.unhandled.is_empty();
        let has_ended = reports.cancelled.len() > 0 || reports.has_ended(scope);
        let is_due = clocks.may_be_due(scope);
        let is_asked = self.written.is_some() || !self.forwards.is_empty();
        let is_idle = !(has_new || has_ended || is_due || is_asked);
        if is_idle {
            self.begin_run(scope);
        }
        is_idle
    }
}

/// Counts the nested runs that are firing.
///
/// Each run holds a clone, and drops it at its end, even if a handler panics.
#[derive(Debug, Default)]
pub(crate) struct RunDepth(Arc<()>);

impl RunDepth {
    fn begin(world: &World) -> Self {
        Self(world.resource::<TimerQueues>().depth.0.clone())
    }

    fn is_outermost(&self) -> bool {
        Arc::strong_count(&self.0) == 2
    }

    /// Returns `true` if a handler of a timer is running.
    pub(crate) fn is_active(world: &World) -> bool {
        let queues = world.get_resource::<TimerQueues>();
        queues.is_some_and(|queues| Arc::strong_count(&queues.depth.0) > 1)
    }
}
