//! The hooks of the components that arm a timer. Inserting the component makes a timer pending, and
//! removing it cancels the timer.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    Arms, CancelReason, KeyTable, Timer, TimerCancelled, TimerLines, TimerState,
    finished::end_in_next_run,
    fired::Unannounced,
    pending::{Pending, Start},
    place::Place,
    setting::Setting,
    settings::random,
};
use crate::{
    clock::{ClockTable, FoundClock, NoSuchClock, add_missing_clock},
    missing_plugin::warn_without_plugin,
    owner::owner_of,
};

pub(super) fn on_insert<C: Arms>(
    mut world: DeferredWorld,
    HookContext { entity, .. }: HookContext,
) {
    add_pending::<C>(&mut world, entity);
}

/// Makes the timer of `C` on `entity` pending. The next swap arms it.
///
/// Does nothing in a world without the plugin, such as one that holds a scene. A `Timer` is plain
/// data there.
pub(crate) fn add_pending<C: Arms>(world: &mut DeferredWorld, entity: Entity) {
    let Some(component) = world.get::<C>(entity) else {
        return;
    };
    let (loaded, has_jitter) = (component.loaded().copied(), component.has_jitter());
    if loaded == Some(TimerState::Finished) {
        return end_in_next_run::<C>(world, entity);
    }
    let random = match has_jitter && loaded.is_none() {
        true => draw(world),
        false => 0,
    };
    push_pending::<C>(world, entity, random);
}

/// Makes a timer pending whose random delay has been drawn.
pub(super) fn push_pending<C: Arms>(world: &mut DeferredWorld, entity: Entity, random: u64) {
    let start = match start::<C>(world, entity, random) {
        Some(Err(NoSuchClock(clock))) => {
            add_missing_clock(world, clock);
            start::<C>(world, entity, random)
        }
        start => start,
    };
    let Some(start) = start else {
        return warn_without_plugin(world, C::NAME);
    };
    let is_loaded = world
        .get::<C>(entity)
        .is_some_and(|it| it.loaded().is_some());
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        let pending = Pending {
            entity,
            kind: C::KIND,
            start: start.ok().flatten(),
        };
        match is_loaded {
            false => lines.pending.push(pending),
            true => lines.pending.push_loaded(pending),
        }
    }
}

/// Gives a timer the next place among the pending ones, and starts its delay if its clock exists by
/// now. Returns `None` without the plugin.
///
/// A loaded timer whose delay had not started starts at the swap.
fn start<C: Arms>(
    world: &DeferredWorld,
    entity: Entity,
    random: u64,
) -> Option<Result<Option<Start>, NoSuchClock>> {
    let lines = world.get_resource::<TimerLines>()?;
    let table = world.get_resource::<ClockTable>()?;
    let entity = world.get_entity(entity).ok()?;
    let component = entity.get::<C>()?;
    let place = Place::Pending(lines.pending.next_index());
    component.seat().move_to(place);
    let setting = Setting::new(world, lines, entity, component.chosen_clock());
    let read = match component.loaded() {
        Some(_) => table.read_for_load(setting.clock, world),
        None => table.read(setting.clock, world),
    };
    Some(read.map(|(FoundClock { key, age, .. }, reading)| {
        let deadline = match component.loaded() {
            Some(loaded) => loaded.wait()?.deadline(reading),
            None => component.start(reading, random),
        };
        Some(Start {
            clock: key,
            age,
            deadline,
            now: reading.now,
            is_paused: setting.is_paused,
        })
    }))
}

/// Draws the next random number.
pub(super) fn draw(world: &mut DeferredWorld) -> u64 {
    let lines = world.get_resource_mut::<TimerLines>();
    let nth = lines.map_or(0, |mut lines| lines.next_draw());
    random(world, nth)
}

/// Cancels a lifetime that is about to be replaced or removed.
pub(super) fn on_discard_silently<C: Arms>(
    mut world: DeferredWorld,
    HookContext { entity, .. }: HookContext,
) {
    cancel_silently::<C>(&mut world, entity);
}

/// Takes the timer of `C` on `entity` out of its queue, without an event.
pub(super) fn cancel_silently<C: Arms>(world: &mut DeferredWorld, entity: Entity) {
    let Some(component) = world.get::<C>(entity) else {
        return;
    };
    let place = component.seat().place();
    leave(component);
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        lines.leave(place);
    }
}

/// Empties the seat of a timer that is cancelled. If it is inserted again, it starts over.
fn leave<C: Arms>(component: &C) {
    component.seat().move_to(Place::Nowhere);
    component.use_loaded();
}

/// Cancels a timer that is about to be replaced, or removed if `on_remove` follows.
pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(number) = cancel_for(&mut world, entity, |_, _| CancelReason::Replaced)
        && let Some(timer) = world.get::<Timer>(entity)
    {
        timer.seat().move_to(Place::Reported(number));
    }
}

/// Corrects the report of `on_discard`: the timer was removed.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(Place::Reported(number)) =
        world.get::<Timer>(entity).map(|timer| timer.seat().place())
        && let Some(mut lines) = world.get_resource_mut::<TimerLines>()
        && let Some(report) = lines.cancelled.get_mut(number)
    {
        report.reason = CancelReason::Removed;
    }
}

/// Cancels the timer of an entity that despawns, before `on_discard` does.
pub(super) fn on_despawn(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    cancel_for(&mut world, entity, |world, owner| {
        match world.entities().contains_spawned(owner) {
            true => CancelReason::Despawned,
            false => CancelReason::OwnerGone,
        }
    });
}

/// Takes the timer of `entity` out of its queue, but leaves its component in place.
pub(super) fn cancel(world: &mut DeferredWorld, entity: Entity, reason: CancelReason) {
    cancel_for(world, entity, |_, _| reason);
}

/// Takes the timer of `entity` out of its queue and reports the cancellation. Returns the number of
/// the report, or `None` if the timer was not armed.
fn cancel_for(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: impl FnOnce(&DeferredWorld, Entity) -> CancelReason,
) -> Option<u64> {
    let owner = owner_of(world.get_entity(entity).ok()?);
    let reason = reason(world, owner);
    let cancelled = take_out(world, entity, reason)?;
    report(world, cancelled)
}

/// Takes the timer of `entity` out of its queue. Returns the event, or `None` if the timer was not
/// armed.
pub(super) fn take_out(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: CancelReason,
) -> Option<TimerCancelled> {
    let timer = world.get::<Timer>(entity)?;
    let place = timer.seat().place();
    leave(timer);
    let is_armed = world.get_resource::<TimerLines>()?.is_at(place);
    let cancelled = is_armed.then(|| cancellation(world, entity, place, reason))?;
    world.get_resource_mut::<TimerLines>()?.leave(place);
    cancelled
}

/// Returns the event for the cancellation of a timer.
fn cancellation(
    world: &World,
    entity: Entity,
    place: Place,
    reason: CancelReason,
) -> Option<TimerCancelled> {
    let table = world.get_resource::<ClockTable>();
    let clock = match place {
        Place::Armed(clock, _) => table.and_then(|table| table.id(clock)),
        Place::Nowhere | Place::Pending(_) | Place::Reported(_) => None,
    };
    let setting = Setting::of::<Timer>(world, entity)?;
    let keys = world.get_resource::<KeyTable>();
    Some(TimerCancelled {
        entity,
        owner: setting.owner,
        clock: clock.unwrap_or(setting.clock).into(),
        key: keys.and_then(|keys| keys.key_of(entity)),
        reason,
        is_announced: world.get::<Unannounced>(entity).is_none(),
    })
}

/// Reports a cancellation, and returns the number of the report.
///
/// The message is written in the next run. Observers see the report once the operation is done,
/// because its reason may change until then.
fn report(world: &mut DeferredWorld, cancelled: TimerCancelled) -> Option<u64> {
    let mut lines = world.get_resource_mut::<TimerLines>()?;
    let number = lines.cancelled.push(cancelled);
    if cancelled.is_observed(world) {
        trigger_later(world, cancelled, number);
    }
    Some(number)
}

fn trigger_later(world: &mut DeferredWorld, cancelled: TimerCancelled, number: u64) {
    world.commands().queue(move |world: &mut World| {
        let mut lines = world.get_resource_mut::<TimerLines>();
        let report = lines
            .as_mut()
            .and_then(|lines| lines.cancelled.get_mut(number));
        let cancelled = report.map_or(cancelled, |report| *report);
        cancelled.trigger(world);
    });
}
