//! A run of the timers: arm new timers, fire due timers.
//!
//! It is one loop: fire, announce, react, end. Between two firings, the queue is the single
//! source of truth. A timer that a handler cancels is gone immediately.

use core::mem;

use bevy_ecs::prelude::*;
use bevy_platform::sync::Arc;

use super::{
    Keyed, Kind, Timer, TimerAction, TimerCancelled, TimerFired, TimerQueues, WhenDone,
    action::report_unknown_handlers,
    arm::swap,
    end::{Ended, end_effects, end_finished, end_recorded, when_done},
    events::{Observed, limit_backlog},
    fast_forward::fast_forward_asked,
    late_clock::add_modified_clocks,
    open_request::time_out,
    queued::{ArmedTimer, Reaction},
    queues::Reports,
    turn::{FireParams, Fired, Turns},
};
use crate::{
    clock::{Cadence, ClockTable, Scope, end_arrival},
    owner::OwnedBy,
};

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
    swap(world);
    run(world, Scope::Of(cadence), params)?;
    if !RunDepth::is_active(world) {
        fast_forward_asked(world, usize::MAX);
    }
    Ok(())
}

/// Writes the cancellations since the previous run, ends the timers that finished in it, and fires the
/// timers that are due on the clocks of a scope.
pub(super) fn run(world: &mut World, scope: Scope, params: &mut FireParams) -> Result {
    let cadence = world.resource::<ClockTable>().cadence_of(scope);
    let mut queues = world.resource_mut::<TimerQueues>();
    queues.begin_run(scope);
    let burst_limit = queues.burst_limit.get();
    let depth = RunDepth::begin(world);
    let run = Run {
        scope,
        cadence,
        burst_limit,
        is_outermost: depth.is_outermost(),
    };
    run.execute(world, params)
}

/// A run that fires timers.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scope: Scope,
    pub(super) cadence: Cadence,
    /// The number of firings of one timer from which on its deadlines are skipped.
    pub(super) burst_limit: u32,
    /// A handler may run a schedule, which nests a run inside this one.
    pub(super) is_outermost: bool,
}

impl Run {
    /// Writes and ends what is left from the previous run, and fires the due timers. With exact frames, goes through
    /// the deadlines of the frame one after the other.
    fn execute(&self, world: &mut World, params: &mut FireParams) -> Result {
        write_cancelled(world);
        // No handler waits for the end of a fast-forward.
        if self.is_outermost || matches!(self.scope, Scope::Under(_)) {
            self.end_finished(world);
        }
        let due = mem::take(&mut world.resource_mut::<TimerQueues>().arming.due);
        let mut turns = Turns::find(due, world.resource::<ClockTable>(), self.scope);
        let mut forwards_left = self.burst_limit as usize;
        // Each step is later than the one before, or uses up a part of `burst_limit`: see `TimerQueues::release`.
        loop {
            self.fire(world, params, &mut turns)?;
            if !self.is_outermost || !world.resource::<ClockTable>().is_exact(self.scope) {
                break;
            }
            self.settle(world, turns.longest, &mut forwards_left);
            params.get_mut(world)?.step(&mut turns, self);
        }
        let mut queues = world.resource_mut::<TimerQueues>();
        queues.arming.due = turns.due;
        if self.is_outermost {
            queues.end_bursts();
        }
        Ok(())
    }

    fn end_finished(&self, world: &mut World) {
        let queues = world.resource::<TimerQueues>();
        if queues.reports.has_ended(self.scope) {
            end_finished(world, self.cadence);
        }
    }

    /// Runs fast-forwards, ends finished timers, settles clocks and releases new timers, at the instant at which this
    /// was asked for. So it does not depend on the lengths of the frames. What observers and commands arm meanwhile
    /// lengthens the longest chain of the instant.
    ///
    /// A frame has at most as many fast-forwards as a burst has firings. The others wait for its end.
    fn settle(&self, world: &mut World, mut longest: u32, forwards_left: &mut usize) {
        loop {
            *forwards_left = fast_forward_asked(world, *forwards_left);
            set_depth(world, longest);
            self.end_finished(world);
            end_arrival(world, add_modified_clocks);
            swap(world);
            set_depth(world, 0);
            let queues = world.resource::<TimerQueues>();
            let has_new = queues.has_new();
            if !has_new && (queues.forwards.is_empty() || *forwards_left == 0) {
                break;
            }
            longest = longest.saturating_add(u32::from(has_new));
        }
    }

    /// Fires the due timers, one clock after the other. The turn of a clock ends when nothing on it is due any
    /// more, or when something stops it. An exact frame goes on with its next instants, until something has to be
    /// settled.
    ///
    /// The loop ends: no clock gets a turn that was not on the list of the instant, and a turn keeps the time at which
    /// it began, whatever the handlers do. What they arm is parked until the next swap, and a timer that repeats within
    /// its turn is bounded by `burst_limit`.
    fn fire(&self, world: &mut World, params: &mut FireParams, turns: &mut Turns) -> Result {
        let mut observed = Observed::of(world);
        loop {
            // Fires what no code of the game sees, and returns the first firing that some code does.
            let next = params.get_mut(world)?.next(turns, self, observed);
            let Some(fired) = next else {
                return Ok(());
            };
            let outer = fired.chain.map(|length| set_depth(world, length));
            self.handle(world, fired);
            outer.map(|outer| set_depth(world, outer));
            turns.longest = turns.longest.max(fired.chain.unwrap_or(0));
            // The handler may have added an observer. If it has removed one, a firing that nobody sees is slower.
            if observed != Observed::Everywhere {
                observed = Observed::of(world);
            }
        }
    }

    /// Runs the reactions to a firing.
    fn handle(&self, world: &mut World, mut fired: Fired) {
        if fired.needs_owner {
            // A component of the game hides its entity from queries.
            find_owner(world, &mut fired);
        }
        let entity = fired.event.entity();
        match fired.reaction {
            Reaction::EndLife => end_recorded(world, None, Ended::lifetime(entity), |world| {
                world.try_despawn(entity).ok();
                world.flush();
            }),
            Reaction::TimeOut => time_out(world, entity),
            Reaction::None | Reaction::Act => self.announce(world, &fired),
        }
    }

    /// Runs the observers and the action of a firing, and ends a timer after its last.
    fn announce(&self, world: &mut World, fired: &Fired) {
        let entity = fired.event.entity();
        #[cfg(feature = "trace")]
        let _span = super::events::span(world, &fired.event).entered();
        let when_done = record_end(world, fired, self.cadence);
        // An observer may replace the action, from the next firing on.
        let acts = fired.reaction == Reaction::Act;
        let action = acts.then(|| TimerAction::resolve(world, entity)).flatten();
        if fired.is_observed {
            fired.event.trigger(world);
        }
        if let Some(action) = action
            && (!fired.is_observed
                || is_still(world, fired) && world.get::<TimerAction>(entity).is_some())
        {
            action.run(world, &fired.event);
        }
        if let Some(when_done) = when_done {
            end(world, fired, self.cadence, when_done);
        }
    }
}

/// Notes how long the chain is to which the timers belong that a handler arms now. Returns the length so far.
fn set_depth(world: &mut World, depth: u32) -> u32 {
    let queues = world.get_resource_mut::<TimerQueues>();
    queues.map_or(0, |mut queues| {
        mem::replace(&mut queues.arming.depth, depth)
    })
}

/// Finds the owner of a timer, and writes the message.
fn find_owner(world: &mut World, fired: &mut Fired) {
    let entity = fired.event.entity();
    let owner = world.get(entity).map_or(entity, |&OwnedBy(owner)| owner);
    let key = world.get::<Keyed>(entity).map(|key| key.id());
    fired.set_owned(owner, key);
    if !fired.reaction.is_silent() {
        world.write_message(fired.event);
    }
}

/// Writes a message for each cancellation since the previous run.
fn write_cancelled(world: &mut World) {
    if world.resource::<TimerQueues>().reports.cancelled.len() == 0 {
        return;
    }
    world.resource_scope(|world, mut messages: Mut<Messages<TimerCancelled>>| {
        let mut queues = world.resource_mut::<TimerQueues>();
        queues.reports.cancelled.write(&mut messages);
    });
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
    if !is_over {
        end_effects(world, entity, when_done);
    } else if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
        queues.reports.ended.take_back(cadence, entity, Kind::Timer);
    }
}

/// Returns `true` if the timer that fired is still the one on its entity, on whichever clock.
fn is_still(world: &World, fired: &Fired) -> bool {
    let timer = world.get::<Timer>(fired.event.entity());
    let Some(place) = timer.and_then(|timer| timer.seat.place()) else {
        return false;
    };
    // A timer that was moved has its count, and a new one has none.
    let is_moved = || {
        let queues = world.get_resource::<TimerQueues>();
        let moved = queues.and_then(|queues| queues.timer(place));
        moved.is_some_and(|timer| timer.count() >= fired.event.count())
    };
    place == fired.place || is_moved()
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
        if scope == Scope::Of(Cadence::Frame) {
            self.trim();
        }
    }

    /// Returns `true` if a swap would release a timer.
    fn has_new(&self) -> bool {
        let mut listed = self.arming.swap_list.iter();
        let limit = self.burst_limit.get();
        let is_new = |timer: &ArmedTimer| !timer.is_paused() && timer.burst < limit;
        listed.any(|place| self.timer(place).is_some_and(is_new))
    }

    /// Returns `true` if timers wait for the next swap or for their end.
    pub(super) fn is_waiting(&self, scope: Scope) -> bool {
        !self.arming.swap_list.is_empty() || self.reports.has_ended(scope)
    }

    /// Returns `true` if a handler of a timer is running.
    pub(crate) fn is_running(&self) -> bool {
        Arc::strong_count(&self.depth.0) > 1
    }

    /// Begins a run that has nothing else to do. Returns `false` if it has.
    pub(crate) fn begin_idle(&mut self, clocks: &ClockTable, cadence: Cadence) -> bool {
        let scope = Scope::Of(cadence);
        let (arming, reports) = (&self.arming, &self.reports);
        let is_told = !arming.unhandled.is_empty() || reports.cancelled.len() > 0;
        let is_due = clocks.may_be_due(scope);
        let is_asked = !self.forwards.is_empty();
        // In an exact frame, time has yet to pass, also on the clocks of new modifiers.
        let is_unsettled = clocks.is_exact(scope) && !clocks.is_settled();
        let is_idle = !(self.is_waiting(scope) || is_told || is_due || is_asked || is_unsettled);
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
        queues.is_some_and(TimerQueues::is_running)
    }
}
