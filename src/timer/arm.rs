//! The hooks of the components that arm a timer. Inserting the component makes a timer pending, and
//! removing it cancels the timer.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use super::{
    Arms, CancelReason, Timer, TimerCancelled, TimerLines, TimerState, finished::end_in_next_run,
    fired::Unannounced, key::key_of, modifiers::Modified, pending::Start, place::Place,
    setting::Setting, settings::random,
};
use crate::{
    clock::{
        BevyElapsed, ClockId, ClockTable, FoundClock, NoSuchClock, add_missing_clock, built_in_id,
    },
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
    if add_plain::<C>(world, entity).is_some() {
        return;
    }
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

/// Makes a timer pending that has nothing but a delay, on an entity without modifiers. Most timers are
/// like that. Returns `None` for any other timer.
fn add_plain<C: Arms>(world: &mut DeferredWorld, entity: Entity) -> Option<()> {
    let elapsed = BevyElapsed::of(world);
    // A resource is a component of its own entity, so both can be borrowed together.
    let lines = world.components().valid_component_id::<TimerLines>()?;
    let lines = world.resource_entities().get(lines)?;
    let [mut lines, entity_mut] = world.get_entity_mut([lines, entity]).ok()?;
    let component = entity_mut.get::<C>()?;
    let lines = lines.get_mut::<TimerLines>()?.into_inner();
    let modified = lines.modifiers.noted(entity_mut.archetype().id())?;
    if modified != Modified::Nothing || !component.is_plain() {
        return None;
    }
    let now = lines.game_time.now(elapsed);
    let index = lines.pending.push_at(now, entity, C::KIND);
    component.seat().move_to(Place::Pending(index));
    Some(())
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
        let start = start.ok().flatten();
        match is_loaded {
            false => lines.pending.push(start, entity, C::KIND),
            true => lines.pending.push_loaded(start, entity, C::KIND),
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
    if let Some(timer) = world.get::<Timer>(entity)
        && let Place::Nowhere = timer.seat().place()
    {
        // Usually `on_despawn` has cancelled it.
        return timer.use_loaded();
    }
    if let Some(number) = cancel(&mut world, entity, CancelReason::Replaced)
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
    cancel(&mut world, entity, CancelReason::Despawned);
}

/// Takes the timer of `entity` out of its queue, but leaves its component in place. Returns the number
/// of the report, or `None` if the timer was not armed.
pub(super) fn cancel(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: CancelReason,
) -> Option<u64> {
    let (number, cancelled) = take_out(world, entity, reason)?;
    // Observers see the report once the operation is done, because its reason may change until then.
    if cancelled.is_observed(world) {
        trigger_later(world, cancelled, number);
    }
    Some(number)
}

/// Takes the timer of `entity` out of its queue, and reports the cancellation. Returns the number of
/// the report and the event, or `None` if the timer was not armed.
///
/// The message is written in the next run.
pub(super) fn take_out(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: CancelReason,
) -> Option<(u64, TimerCancelled)> {
    let entity_ref = world.get_entity(entity).ok()?;
    let timer = entity_ref.get::<Timer>()?;
    let place = timer.seat().place();
    leave(timer);
    if let Place::Nowhere = place {
        return None;
    }
    let archetype = entity_ref.archetype().id();
    let mut lines = world.get_resource_mut::<TimerLines>()?.into_inner();
    if !lines.leave(place) {
        return None;
    }
    let cancelled = match (lines.modifiers.noted(archetype), built_in_clock(place)) {
        (Some(Modified::Nothing), Some(clock)) => {
            TimerCancelled::new(entity, reason).with_clock(clock)
        }
        _ => {
            let (cancelled, modified) = cancellation(world, entity, place, reason)?;
            lines = world.get_resource_mut::<TimerLines>()?.into_inner();
            lines.modifiers.note(archetype, modified);
            cancelled
        }
    };
    Some((lines.cancelled.push(cancelled), cancelled))
}

/// Returns the clock of a timer that is armed on a built-in one.
fn built_in_clock(place: Place) -> Option<ClockId> {
    match place {
        Place::Armed(clock, _) => built_in_id(clock),
        Place::Nowhere | Place::Pending(_) | Place::Reported(_) => None,
    }
}

/// Returns the event for the cancellation of a timer, and the modifiers in its archetype.
fn cancellation(
    world: &World,
    entity: Entity,
    place: Place,
    reason: CancelReason,
) -> Option<(TimerCancelled, Modified)> {
    let table = world.get_resource::<ClockTable>();
    let clock = match place {
        Place::Armed(clock, _) => table.and_then(|table| table.id(clock)),
        Place::Nowhere | Place::Pending(_) | Place::Reported(_) => None,
    };
    let clock = match clock {
        Some(clock) => clock,
        None => Setting::of::<Timer>(world, entity)?.clock,
    };
    let entity_ref = world.get_entity(entity).ok()?;
    let owner = owner_of(entity_ref);
    let reason = match reason {
        CancelReason::Despawned if !world.entities().contains_spawned(owner) => {
            CancelReason::OwnerGone
        }
        reason => reason,
    };
    let cancelled = TimerCancelled {
        entity,
        owner,
        clock: clock.into(),
        key: key_of(world, entity).map(|(_, key)| key),
        reason,
        is_announced: entity_ref.get::<Unannounced>().is_none(),
    };
    let lines = world.get_resource::<TimerLines>()?;
    Some((cancelled, lines.modifiers.of(entity_ref.archetype())))
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
