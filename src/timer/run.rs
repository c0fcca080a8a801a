//! A run of the timers: arm new timers, fire due timers.
//!
//! Firing is one loop: pop, announce, react, end. Between two firings, the queue is the single
//! source of truth. A timer that a handler cancels is gone immediately.

use alloc::collections::BinaryHeap;
use core::{cmp::Reverse, iter, mem};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, query::Allow, system::SystemState};
use bevy_platform::sync::Arc;

use super::{
    Arms, Keyed, Kind, OwnedTimerFired, Timer, TimerAction, TimerCancelled, TimerFired, TimerLines,
    armed::Reaction,
    budget::TimerBudget,
    end::{end_finished, end_recorded, when_done},
    ended::Ended,
    firing::{Fired, Limits},
    key_id::KeyId,
    line::TimerLine,
    observed::is_observed_at_all,
    resolve::resolve,
    saving::forget_written,
    settings::TimerSettings,
    stats::RunStats,
    suspects::check_rearmed,
};
use crate::clock::{Age, Cadence, ClockKey, ClockTable, FoundClock, Scope, Watch};

/// The parts of the world that are used between two handlers.
pub(crate) type FireParams = SystemState<(
    ResMut<'static, TimerLines>,
    Query<'static, 'static, Option<&'static Keyed>, Allow<Disabled>>,
    ResMut<'static, Messages<TimerFired>>,
)>;

/// Arms the new timers, and fires the due ones.
pub(crate) fn run_timers(
    world: &mut World,
    clocks: &ClockTable,
    cadence: Cadence,
    firing: &mut FireParams,
) -> Result {
    let scope = Scope::Of(cadence);
    let mut lines = world.resource_mut::<TimerLines>();
    if lines.pending.len() > 0 || lines.written.is_some() {
        forget_written(world);
        resolve(world, Some(scope));
        lines = world.resource_mut::<TimerLines>();
    }
    if lines.begin_run(clocks, scope) {
        fire(world, scope, firing)?;
    }
    Ok(())
}

/// Writes the cancellations since the previous run, ends the timers that finished in it, and fires
/// the timers that are due on the clocks of a scope.
pub(crate) fn fire(world: &mut World, scope: Scope, params: &mut FireParams) -> Result {
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

impl Run<'_> {
    /// Fires the due timers, one clock after the other.
    fn fire(&mut self, world: &mut World) -> Result {
        let token = RunDepth::begin(world);
        let table = world.resource::<ClockTable>().clone();
        write_cancelled(world, &table);
        // A handler may run a schedule, which nests a run inside this one.
        if let Scope::Of(cadence) = self.scope
            && token.is_outermost()
        {
            end_finished(world, cadence);
        }
        let mut lines = world.resource_mut::<TimerLines>();
        let due = lines.find_due(&table, self.scope);
        for &(age, key) in &due {
            if let Some(cadence) = table.cadence(key, age) {
                self.fire_clock(world, &table, FoundClock { key, age, cadence })?;
            }
        }
        if self.limits.defers {
            self.fire_waiting(world, &table, &due)?;
        }
        let mut lines = world.resource_mut::<TimerLines>();
        for &(age, key) in &due {
            // Sets the time at which to look at this clock again.
            lines.has_due(&table, key, age, self.scope);
        }
        world.resource_mut::<TimerLines>().put_back(due);
        Ok(())
    }

    /// Fires the due timers on one clock, until a handler stops the clock.
    fn fire_clock(
        &mut self,
        world: &mut World,
        table: &ClockTable,
        FoundClock { key, age, cadence }: FoundClock,
    ) -> Result {
        let Some(id) = table.id(key) else {
            return Ok(());
        };
        let clock = (key, id.into());
        begin_firing(world, key, self.limits);
        let mut is_observed = false;
        let mut watch = Watch::default();
        loop {
            is_observed = is_observed || self::is_observed(world);
            let Some(reading) = table.watch(key, age, self.scope, &mut watch) else {
                break;
            };
            let mut fired = None;
            let limits = self.limits;
            let next = |line: &mut TimerLine, stats: &mut RunStats| {
                line.fire(clock, &reading, limits, stats)
            };
            self.pop(world, (table, key), next, is_observed, &mut fired)?;
            let Some(fired) = &mut fired else {
                break;
            };
            handle(world, fired, cadence, is_observed);
        }
        end_bursts(world, key);
        Ok(())
    }

    /// Fires the timers that wait for the budget until it is spent, the most urgent ones first.
    fn fire_waiting(
        &mut self,
        world: &mut World,
        table: &ClockTable,
        due: &[(Age, ClockKey)],
    ) -> Result {
        // A handler may change every clock and timer, so each entry is checked before it counts. A timer
        // that became more urgent since its clock was last looked at may come later than it could.
        let mut clocks: BinaryHeap<_> = (0..due.len())
            .filter_map(|nth| Some((self.urgency(world, table, due[nth])?, Reverse(nth))))
            .collect();
        while let Some((urgency, nth)) = clocks.pop() {
            let (age, key) = due[nth.0];
            let Some(now) = self.urgency(world, table, due[nth.0]) else {
                continue;
            };
            if now != urgency {
                clocks.push((now, nth));
                continue;
            }
            let Some(cadence) = table.cadence(key, age) else {
                continue;
            };
            let spent = world.resource::<TimerLines>().spent;
            if !self.budget.has_room(spent, cadence) {
                break;
            }
            self.fire_one_waiting(world, table, FoundClock { key, age, cadence })?;
            clocks.push((urgency, nth));
        }
        for &(_, key) in due {
            end_bursts(world, key);
        }
        Ok(())
    }

    /// Returns how urgent the first timer is that waits on a clock, unless the clock is stopped.
    fn urgency(
        &self,
        world: &World,
        table: &ClockTable,
        (age, key): (Age, ClockKey),
    ) -> Option<i128> {
        let line = world.resource::<TimerLines>().get(key)?;
        if !line.deferrable.is_anyone_waiting() {
            return None;
        }
        line.deferrable
            .urgency(table.reading(key, age, self.scope)?.now)
    }

    /// Fires the first timer that waits on a clock.
    fn fire_one_waiting(
        &mut self,
        world: &mut World,
        table: &ClockTable,
        FoundClock { key, age, cadence }: FoundClock,
    ) -> Result {
        let (Some(id), Some(reading)) = (table.id(key), table.reading(key, age, self.scope)) else {
            return Ok(());
        };
        let is_observed = is_observed(world);
        let start = self.budget.start();
        world.resource_mut::<TimerLines>().spent.add_firing(cadence);
        let (limits, mut is_first, mut fired) = (self.limits, true, None);
        let next = |line: &mut TimerLine, stats: &mut RunStats| {
            let is_first = mem::take(&mut is_first);
            is_first.then(|| line.fire_waiting((key, id.into()), &reading, limits, stats))?
        };
        self.pop(world, (table, key), next, is_observed, &mut fired)?;
        if let Some(fired) = &mut fired {
            handle(world, fired, cadence, is_observed);
        }
        world
            .resource_mut::<TimerLines>()
            .spent
            .add_time_since(start);
        Ok(())
    }

    /// Fires timers one after the other, and writes their messages.
    ///
    /// Stops after the first firing that has an observer or a reaction, or that is its timer's last,
    /// and leaves this firing in `popped`. Returning it would cost another copy.
    fn pop(
        &mut self,
        world: &mut World,
        (table, clock): (&ClockTable, ClockKey),
        mut next: impl FnMut(&mut TimerLine, &mut RunStats) -> Option<Fired>,
        is_observed: bool,
        popped: &mut Option<Fired>,
    ) -> Result {
        let (mut lines, keys, mut messages) = self.params.get_mut(world)?;
        if lines.written.is_some() {
            // A handler has written the states out. The next firing changes one of them.
            table.note_change();
        }
        let Some((line, stats)) = lines.firing(clock, self.scope) else {
            return Ok(());
        };
        let mut is_hidden = false;
        messages.write_batch(iter::from_fn(|| {
            if popped.is_some() {
                return None;
            }
            let mut fired = next(line, stats)?;
            let event = &mut fired.event;
            if event.owner() != event.entity() {
                match key_of_owned(event.entity(), &keys) {
                    Some(key) => event.set_key(key),
                    None => {
                        is_hidden = true;
                        *popped = Some(fired);
                        return None;
                    }
                }
            }
            let (event, reaction) = (*event, fired.reaction);
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

/// Returns the key of an owned timer, if it has one, or `None` if its entity is hidden from queries.
#[inline(never)]
fn key_of_owned(
    entity: Entity,
    keys: &Query<Option<&Keyed>, Allow<Disabled>>,
) -> Option<Option<KeyId>> {
    let key = keys.get(entity).ok()?;
    Some(key.map(|key| key.id()))
}

/// Writes the message of a firing on an entity that a component of the game hides from queries.
fn write_hidden(world: &mut World, fired: &mut Fired) {
    let key = world.get::<Keyed>(fired.event.entity());
    fired.event.set_key(key.map(|key| key.id()));
    if fired.reaction != Reaction::EndLife {
        world.write_message(fired.event);
    }
}

/// Writes a message for each cancellation since the previous run.
fn write_cancelled(world: &mut World, table: &ClockTable) {
    if world.resource::<TimerLines>().cancelled.len() > 0 {
        let frame = table.frame();
        let suspect = world.resource_scope(|world, mut messages: Mut<Messages<TimerCancelled>>| {
            let mut lines = world.resource_mut::<TimerLines>();
            lines.cancelled.write(&mut messages, frame)
        });
        if let Some(suspect) = suspect {
            check_rearmed(world, table, frame, suspect);
        }
    }
}

/// Returns `true` if there are observers of firings, on any entity.
fn is_observed(world: &mut World) -> bool {
    is_observed_at_all::<TimerFired>(world) || is_observed_at_all::<OwnedTimerFired>(world)
}

/// Prepares the timers of a clock.
fn begin_firing(world: &mut World, clock: ClockKey, limits: Limits) {
    if let Some(line) = world.resource_mut::<TimerLines>().get_mut(clock) {
        // A panic may have kept the previous run from ending its bursts.
        line.end_bursts();
        if !limits.defers {
            line.release_waiting();
        }
    }
}

/// Runs the reactions to a firing.
fn handle(world: &mut World, fired: &mut Fired, cadence: Cadence, is_observed: bool) {
    if fired.reaction == Reaction::EndLife {
        return end_life(world, fired, cadence);
    }
    #[cfg(feature = "trace")]
    let _span = super::span::span(world, &fired.event).entered();
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
        lines.ended.push(cadence, Ended::timer(entity, when_done));
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
        lines.ended.take_back(cadence, entity, Kind::Timer);
    }
}

/// Returns `true` if the timer that fired is still the one on its entity.
fn is_still(world: &World, fired: &Fired) -> bool {
    let timer = world.get::<Timer>(fired.event.entity());
    timer.and_then(|timer| timer.seat().armed()) == Some((fired.clock, fired.key))
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
