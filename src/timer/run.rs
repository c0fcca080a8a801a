//! A run of the timers: arm new timers, fire due timers.
//!
//! Firing is one loop: pop, announce, react, end. Between two firings, the queue is the single
//! source of truth. A timer that a handler cancels is gone immediately.

use alloc::vec::Vec;
use core::{iter, mem, num::NonZeroU32};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, query::Allow, system::SystemState};
use bevy_platform::sync::Arc;

use super::{
    Arms, Keyed, Kind, OwnedTimerFired, Timer, TimerAction, TimerCancelled, TimerFired, TimerLines,
    arm::swap,
    budget::{TimerBudget, Waiting},
    end::{Ended, end_finished, end_recorded, when_done},
    events::is_observed_at_all,
    key::KeyId,
    queued::{ArmedTimer, Mark, Reaction, Served},
    queues::TimerLine,
    saving::{WrittenStates, forget_written},
    stats::RunStats,
};
use crate::{
    clock::{
        Age, Cadence, ClockKey, ClockTable, FoundClock, PackedClockId, Reading, Scope,
        find_running, read_running,
    },
    owner::OwnedBy,
    queue::{First, Key},
};

/// The parts of the world that are used between two handlers.
pub(crate) type FireParams = SystemState<(
    ResMut<'static, TimerLines>,
    Query<'static, 'static, (Option<&'static OwnedBy>, Option<&'static Keyed>), Allow<Disabled>>,
    ResMut<'static, Messages<TimerFired>>,
    Res<'static, WrittenStates>,
    ResMut<'static, ClockTable>,
)>;

/// The settings of the plugin that a run uses.
#[derive(Resource, Clone, Copy, Debug)]
pub(crate) struct TimerSettings {
    pub(crate) burst_limit: NonZeroU32,
}

/// Arms the new timers, and fires the due ones.
pub(crate) fn run_timers(world: &mut World, cadence: Cadence, firing: &mut FireParams) -> Result {
    forget_written(world);
    swap(world);
    run(world, Scope::Of(cadence), firing)
}

/// Writes the cancellations since the previous run, ends the timers that finished in it, and fires the timers that are due on the clocks of a scope.
pub(super) fn run(world: &mut World, scope: Scope, params: &mut FireParams) -> Result {
    let mut lines = world.resource_mut::<TimerLines>();
    let reports = &mut lines.reports;
    let armed = match scope {
        Scope::Of(_) => mem::take(&mut reports.stats.armed),
        // They count in the next frame.
        Scope::Under(_) => 0,
    };
    *reports.stats.get_mut(scope) = RunStats {
        armed,
        cancelled: reports.cancelled.len(),
        ..RunStats::default()
    };
    if scope == Scope::Of(Cadence::Frame) {
        lines.waiting.begin_frame();
    }
    let budget = match scope {
        Scope::Of(_) => world.get_resource().copied().unwrap_or_default(),
        Scope::Under(_) => TimerBudget::Unlimited,
    };
    let limits = Limits {
        burst: world.resource::<TimerSettings>().burst_limit,
        defers: budget != TimerBudget::Unlimited,
    };
    let mut run = Run {
        scope,
        params,
        limits,
        budget,
    };
    run.fire(world)
}

/// A run that fires timers.
struct Run<'a> {
    scope: Scope,
    params: &'a mut FireParams,
    limits: Limits,
    budget: TimerBudget,
}

/// The limits for the firings of a run.
#[derive(Clone, Copy, Debug)]
struct Limits {
    burst: NonZeroU32,
    /// Whether deferrable timers wait for the budget.
    defers: bool,
}

/// A timer that has fired. It is re-armed, or no longer in the queue if this was its last firing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) event: TimerFired,
    pub(crate) clock: ClockKey,
    pub(crate) key: Key,
    is_owned: bool,
    reaction: Reaction,
}

impl Run<'_> {
    /// Fires the due timers, one clock after the other.
    fn fire(&mut self, world: &mut World) -> Result {
        let token = RunDepth::begin(world);
        write_cancelled(world);
        // A handler may run a schedule, which nests a run inside this one.
        if let Scope::Of(cadence) = self.scope
            && token.is_outermost()
        {
            end_finished(world, cadence);
        }
        let (mut lines, _, _, _, mut table) = self.params.get_mut(world)?;
        if !self.limits.defers {
            lines.stop_all_waiting(&mut table, self.scope);
        }
        let due = lines.find_due(&mut table, self.scope);
        for &(age, key) in &due {
            let cadence = world.resource::<ClockTable>().cadence(key, age);
            if let Some(cadence) = cadence {
                self.fire_clock(world, FoundClock { key, age, cadence })?;
            }
        }
        self.fire_waiting(world)?;
        let (mut lines, _, _, _, mut table) = self.params.get_mut(world)?;
        for &(_, key) in &due {
            // Sets the time at which to look at this clock again.
            lines.has_due(&mut table, key);
        }
        lines.arming.due = due;
        Ok(())
    }

    /// Fires the due timers on one clock, until a handler stops the clock.
    fn fire_clock(
        &mut self,
        world: &mut World,
        FoundClock { key, age, cadence }: FoundClock,
    ) -> Result {
        let Some(id) = world.resource::<ClockTable>().id(key) else {
            return Ok(());
        };
        let clock = (key, id.into());
        // A panic may have kept the previous run from ending its bursts.
        end_bursts(world, key);
        let mut is_observed = false;
        loop {
            is_observed = is_observed || self::is_observed(world);
            let mut fired = None;
            let limits = self.limits;
            let next = |line: &mut TimerLine,
                        reading: &Reading,
                        waiting: &mut Waiting,
                        stats: &mut RunStats| {
                line.fire(clock, reading, limits, waiting, stats)
            };
            self.pop(world, (key, age), next, is_observed, &mut fired)?;
            let Some(fired) = &mut fired else {
                break;
            };
            handle(world, fired, cadence, is_observed);
        }
        end_bursts(world, key);
        Ok(())
    }

    /// Fires the timers that wait for the budget until it is spent, earliest turn first.
    fn fire_waiting(&mut self, world: &mut World) -> Result {
        let mut last = None;
        let mut clocks = Vec::new();
        loop {
            let waiting = &world.resource::<TimerLines>().waiting;
            let Some((rank, (clock, key))) = waiting.after(last) else {
                break;
            };
            let spent = waiting.spent;
            let Some(found) = find_running(world, clock, self.scope) else {
                last = Some(rank);
                continue;
            };
            if !self.budget.has_room(spent, found.cadence) {
                break;
            }
            if !clocks.contains(&clock) {
                // A panic may have kept the previous run from ending its bursts.
                end_bursts(world, clock);
                clocks.push(clock);
            }
            self.fire_one_waiting(world, (found, key))?;
        }
        for clock in clocks {
            end_bursts(world, clock);
        }
        Ok(())
    }

    /// Fires a timer that waits for the budget.
    fn fire_one_waiting(&mut self, world: &mut World, (clock, key): (FoundClock, Key)) -> Result {
        let Some(id) = world.resource::<ClockTable>().id(clock.key) else {
            return Ok(());
        };
        let is_observed = is_observed(world);
        let start = self.budget.start();
        let mut lines = world.resource_mut::<TimerLines>();
        lines.waiting.spent.add_firing(clock.cadence);
        let (limits, mut is_first, mut fired) = (self.limits, true, None);
        let next = |line: &mut TimerLine,
                    reading: &Reading,
                    waiting: &mut Waiting,
                    stats: &mut RunStats| {
            let clock = (clock.key, id.into());
            let is_first = mem::take(&mut is_first);
            is_first.then(|| line.fire_waiting(key, clock, reading, limits, waiting, stats))?
        };
        self.pop(world, (clock.key, clock.age), next, is_observed, &mut fired)?;
        // No other timer may be due on the clock, so nothing else tells the table.
        let line = world.resource::<TimerLines>().get(clock.key);
        let first = line.and_then(|line| line.queue.first_look());
        let mut table = world.resource_mut::<ClockTable>();
        table.set_deadline(clock.key, first);
        if let Some(fired) = &mut fired {
            handle(world, fired, clock.cadence, is_observed);
        }
        let mut lines = world.resource_mut::<TimerLines>();
        lines.waiting.spent.add_time_since(start);
        Ok(())
    }

    /// Fires timers one after the other, unless something has stopped their clock, and writes their
    /// messages.
    ///
    /// Stops after the first firing that has an observer or a reaction, or that is its timer's last,
    /// and leaves this firing in `popped`. Returning it would cost another copy.
    fn pop(
        &mut self,
        world: &mut World,
        (clock, age): (ClockKey, Age),
        mut next: impl FnMut(&mut TimerLine, &Reading, &mut Waiting, &mut RunStats) -> Option<Fired>,
        is_observed: bool,
        popped: &mut Option<Fired>,
    ) -> Result {
        let Some(reading) = read_running(world, (clock, age), self.scope) else {
            return Ok(());
        };
        let (mut lines, owned, mut messages, written, table) = self.params.get_mut(world)?;
        if written.0.is_some() {
            // A handler has written the states out. The next firing changes one of them.
            table.changes().note();
        }
        let Some((line, waiting, stats)) = lines.firing(clock, self.scope) else {
            return Ok(());
        };
        let mut is_hidden = false;
        messages.write_batch(iter::from_fn(|| {
            if popped.is_some() {
                return None;
            }
            let mut fired = next(line, &reading, waiting, stats)?;
            if fired.is_owned {
                match owner_and_key(fired.event.entity(), &owned) {
                    Some((owner, key)) => fired.event.set_owned(owner, key),
                    None => {
                        is_hidden = true;
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
        }));
        if let Some(fired) = popped
            && is_hidden
        {
            write_hidden(world, fired);
        }
        Ok(())
    }
}

/// Returns the owner and the key of an owned timer, or `None` if its entity is hidden from queries.
#[inline(never)]
fn owner_and_key(
    entity: Entity,
    owned: &Query<(Option<&OwnedBy>, Option<&Keyed>), Allow<Disabled>>,
) -> Option<(Entity, Option<KeyId>)> {
    let (owned, key) = owned.get(entity).ok()?;
    Some((owned.map_or(entity, |by| by.0), key.map(|key| key.id())))
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
    if world.resource::<TimerLines>().reports.cancelled.len() > 0 {
        world.resource_scope(|world, mut messages: Mut<Messages<TimerCancelled>>| {
            let mut lines = world.resource_mut::<TimerLines>();
            lines.reports.cancelled.write(&mut messages);
        });
    }
}

/// Returns `true` if there are observers of firings, on any entity.
fn is_observed(world: &mut World) -> bool {
    is_observed_at_all::<TimerFired>(world) || is_observed_at_all::<OwnedTimerFired>(world)
}

/// Runs the reactions to a firing.
fn handle(world: &mut World, fired: &mut Fired, cadence: Cadence, is_observed: bool) {
    if fired.reaction == Reaction::EndLife {
        return end_life(world, fired, cadence);
    }
    #[cfg(feature = "trace")]
    let _span = super::events::span(world, &fired.event).entered();
    announce(world, fired, cadence, is_observed);
    react(world, fired);
    end(world, fired, cadence);
}

fn end_bursts(world: &mut World, clock: ClockKey) {
    if let Some(line) = world.resource_mut::<TimerLines>().get_mut(clock) {
        line.end_bursts();
    }
}

/// Runs the observers of a firing.
fn announce(world: &mut World, fired: &mut Fired, cadence: Cadence, is_observed: bool) {
    if fired.event.is_last() {
        let entity = fired.event.entity();
        let when_done = when_done(world, entity);
        let mut lines = world.resource_mut::<TimerLines>();
        // Recorded first: if a handler panics, the next run ends the timer.
        lines
            .reports
            .ended
            .push(cadence, Ended::timer(entity, when_done));
    }
    if is_observed {
        fired.event.trigger(world);
    }
}

/// Despawns an entity whose lifetime is over.
fn end_life(world: &mut World, fired: &Fired, cadence: Cadence) {
    let entity = fired.event.entity();
    end_recorded(world, cadence, Ended::lifetime(entity), |world| {
        world.try_despawn(entity).ok();
        world.flush();
    });
}

/// Runs the timer's action, unless an observer cancelled or re-armed the timer.
fn react(world: &mut World, fired: &Fired) {
    if fired.reaction == Reaction::Act && is_still(world, fired) {
        TimerAction::act(world, &fired.event);
    }
}

/// Ends a timer that has finished: removes the component, unless a handler has removed or replaced
/// it.
fn end(world: &mut World, fired: &Fired, cadence: Cadence) {
    if !fired.event.is_last() {
        return;
    }
    let entity = fired.event.entity();
    if is_still(world, fired) {
        world.entity_mut(entity).remove::<Timer>();
    } else if world.get::<Timer>(entity).is_some() {
        let mut lines = world.resource_mut::<TimerLines>();
        lines.reports.ended.take_back(cadence, entity, Kind::Timer);
    }
}

/// Returns `true` if the timer that fired is still the one on its entity.
fn is_still(world: &World, fired: &Fired) -> bool {
    let timer = world.get::<Timer>(fired.event.entity());
    timer.and_then(|timer| timer.seat().armed()) == Some((fired.clock, fired.key))
}

impl TimerLines {
    /// Returns the timers of a clock, the deferred timers, and the statistics of the run.
    fn firing(
        &mut self,
        clock: ClockKey,
        scope: Scope,
    ) -> Option<(&mut TimerLine, &mut Waiting, &mut RunStats)> {
        let (line, waiting, reports) = self.parts(clock)?;
        Some((line, waiting, reports.stats.get_mut(scope)))
    }
}

impl TimerLine {
    /// Fires the first due timer, if any.
    ///
    /// The queue is consistent when this returns, so handlers may do anything.
    #[inline]
    fn fire(
        &mut self,
        (clock, id): (ClockKey, PackedClockId),
        reading: &Reading,
        limits: Limits,
        waiting: &mut Waiting,
        stats: &mut RunStats,
    ) -> Option<Fired> {
        loop {
            let mut due = self.queue.pop_due(reading.now)?;
            let deadline = due.deadline();
            let (key, timer) = due.key_and_value();
            let Some(next) = timer.fire_on_time(deadline, reading.now) else {
                let is_deferred = limits.defers && timer.priority().is_some();
                let first = due.put_back();
                if is_deferred {
                    self.defer((clock, key), deadline, waiting);
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
                is_owned: timer.is(Mark::Owned),
                reaction: timer.reaction,
            };
            due.rearm(next);
            stats.fired += 1;
            return Some(fired);
        }
    }

    /// Lets a due timer wait for the budget.
    fn defer(&mut self, (clock, key): (ClockKey, Key), deadline: u64, waiting: &mut Waiting) {
        self.queue.park(key, deadline);
        if let Some(timer) = self.queue.get_mut(key) {
            let rank = waiting.push(timer.priority().unwrap_or(0), clock, key);
            timer.change_rare(|rare| rare.rank = Some(rank));
        }
    }

    /// Fires a timer that waits for the budget. If its next deadline has passed, too, it waits again.
    fn fire_waiting(
        &mut self,
        key: Key,
        (clock, id): (ClockKey, PackedClockId),
        reading: &Reading,
        limits: Limits,
        waiting: &mut Waiting,
        stats: &mut RunStats,
    ) -> Option<Fired> {
        let deadline = self.queue.deadline(key)?;
        let timer = self.queue.get_mut(key)?;
        let rank = timer.change_rare(|rare| rare.rank.take())?;
        waiting.remove(rank);
        let (fired, next) = fire(timer, (key, deadline), (clock, id), reading, limits.burst);
        if timer.burst == 1 {
            self.bursting.push(key);
        }
        match next {
            Some(next) if next <= reading.now => self.defer((clock, key), next, waiting),
            Some(next) => _ = self.queue.arm(key, next),
            None => _ = self.queue.cancel(key),
        }
        stats.count(&fired.event);
        Some(fired)
    }

    /// Fires the first due timer, which may end, be late or have rare state.
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
        let (fired, next) = fire(timer, (key, deadline), clock, reading, burst_limit);
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

/// Counts a firing, and returns it with the next deadline.
fn fire(
    timer: &mut ArmedTimer,
    (key, deadline): (Key, u64),
    (clock, id): (ClockKey, PackedClockId),
    reading: &Reading,
    burst_limit: NonZeroU32,
) -> (Fired, Option<u64>) {
    let Served { missed, next } = timer.fire(deadline, reading.now, burst_limit.get());
    let event = TimerFired::of(timer, (id, reading), deadline);
    let fired = Fired {
        event: event.with_missed(missed).with_last(next.is_none()),
        clock,
        key,
        is_owned: timer.is(Mark::Owned),
        reaction: timer.reaction,
    };
    (fired, next)
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
