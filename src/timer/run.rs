//! A run of the timers: arm new timers, fire due timers.
//!
//! Firing is one loop: pop, announce, react, end. Between two firings, the queue is the single
//! source of truth. A timer that a handler cancels is gone immediately.

use core::{iter, num::NonZeroU32};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, query::Allow, system::SystemState};
use bevy_platform::sync::Arc;

use super::{
    Arms, Keyed, Kind, OwnedTimerFired, Timer, TimerAction, TimerCancelled, TimerFired, TimerLines,
    armed::Reaction,
    end::{end_finished, end_recorded, when_done},
    ended::Ended,
    key_id::KeyId,
    lines::Fired,
    observed::is_observed_at_all,
    resolve::resolve,
    saving::forget_written,
    settings::TimerSettings,
};
use crate::clock::{
    Cadence, ClockKey, ClockTable, FoundClock, PackedClockId, Reading, Scope, Watch,
};

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
    let burst_limit = world.resource::<TimerSettings>().burst_limit;
    let mut run = Run {
        scope,
        params,
        burst_limit,
    };
    run.fire(world)
}

/// A run that fires timers.
struct Run<'a> {
    scope: Scope,
    params: &'a mut FireParams,
    burst_limit: NonZeroU32,
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
        let table = world.resource::<ClockTable>().clone();
        let mut lines = world.resource_mut::<TimerLines>();
        let due = lines.find_due(&table, self.scope);
        for &(age, key) in &due {
            if let Some(cadence) = table.cadence(key, age) {
                self.fire_clock(world, &table, FoundClock { key, age, cadence })?;
                // Sets the time at which to look at this clock again.
                let mut lines = world.resource_mut::<TimerLines>();
                lines.has_due(&table, key, age, self.scope);
            }
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
        // A panic may have kept the previous run from ending its bursts.
        end_bursts(world, key);
        let mut is_observed = false;
        let mut watch = Watch::default();
        loop {
            is_observed = is_observed
                || is_observed_at_all::<TimerFired>(world)
                || is_observed_at_all::<OwnedTimerFired>(world);
            let Some(reading) = table.watch(key, age, self.scope, &mut watch) else {
                break;
            };
            let mut fired = None;
            self.pop(world, (table, clock, &reading), is_observed, &mut fired)?;
            let Some(fired) = &mut fired else {
                break;
            };
            if fired.reaction == Reaction::EndLife {
                end_life(world, fired, cadence);
                continue;
            }
            #[cfg(feature = "trace")]
            let _span = super::span::span(world, &fired.event).entered();
            announce(world, fired, cadence, is_observed);
            react(world, fired);
            end(world, fired, cadence);
        }
        end_bursts(world, key);
        Ok(())
    }

    /// Pops due timers and writes their messages.
    ///
    /// Stops after the first firing that has an observer or a reaction, or that is its timer's last,
    /// and leaves this firing in `popped`. Returning it would cost another copy.
    fn pop(
        &mut self,
        world: &mut World,
        (table, clock, reading): (&ClockTable, (ClockKey, PackedClockId), &Reading),
        is_observed: bool,
        popped: &mut Option<Fired>,
    ) -> Result {
        let (mut lines, keys, mut messages) = self.params.get_mut(world)?;
        if lines.written.is_some() {
            // A handler has written the states out. The next firing changes one of them.
            table.note_change();
        }
        let Some((line, stats)) = lines.firing(clock.0, self.scope) else {
            return Ok(());
        };
        let burst_limit = self.burst_limit;
        let mut is_hidden = false;
        messages.write_batch(iter::from_fn(|| {
            if popped.is_some() {
                return None;
            }
            let mut fired = line.fire(clock, reading, burst_limit, stats)?;
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
fn write_cancelled(world: &mut World) {
    if world.resource::<TimerLines>().cancelled.len() > 0 {
        world.resource_scope(|world, mut messages: Mut<Messages<TimerCancelled>>| {
            let mut lines = world.resource_mut::<TimerLines>();
            lines.cancelled.write(&mut messages);
        });
    }
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
