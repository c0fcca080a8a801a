//! The hooks of [`Timer`]: inserting the component arms it, and removing the component cancels it.

use alloc::vec::Vec;

use bevy_ecs::{
    component::ComponentId, entity_disabling::Disabled, lifecycle::HookContext, prelude::*,
    world::DeferredWorld,
};

use super::{
    ArmedTimer, CancelReason, Place, Timer, TimerAction, TimerCancelled, TimerLines, end::retire,
    events::is_observed, settings::random,
};
use crate::{
    clock::{
        Clock, ClockId, ClockKey, ClockTable, NoSuchClock, OnClock, Reading, add_missing_clock,
        clock_of, warn,
    },
    owner::{OwnedBy, owner_of},
    pause::{Paused, is_paused},
};

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    arm(world, entity);
}

/// Cancels a timer that is about to be replaced, or removed if `on_remove` follows.
pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(number) = cancel_for(&mut world, entity, |_, _| CancelReason::Replaced)
        && let Some(timer) = world.get::<Timer>(entity)
    {
        timer.move_to(Place::Reported(number));
    }
}

/// Corrects the report of `on_discard`: the timer was removed.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some(Place::Reported(number)) = world.get::<Timer>(entity).map(Timer::place)
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

/// Arms the `Timer` of `entity`.
///
/// Does nothing in a world without the plugin, such as one that holds a scene. A `Timer` is plain
/// data there.
pub(crate) fn arm(mut world: DeferredWorld, entity: Entity) {
    let plan = match Plan::of(&world, entity) {
        Some(Err(NoSuchClock(clock))) => {
            add_missing_clock(&mut world, clock);
            Plan::of(&world, entity)
        }
        plan => plan,
    };
    match plan {
        None => {}
        Some(Err(error)) => refuse(&mut world, entity, error),
        Some(Ok(plan)) => {
            let Some(mut lines) = world.get_resource_mut::<TimerLines>() else {
                return;
            };
            let key = lines.add(plan.clock, plan.deadline, plan.timer, plan.paused_at);
            if let Some(timer) = world.get::<Timer>(entity) {
                timer.move_to(Place::Armed(plan.clock, key));
            }
        }
    }
}

/// Returns the components that change how a timer on the same entity is armed. Most timers have
/// none.
pub(crate) fn modifiers(world: &mut World) -> [ComponentId; 6] {
    [
        world.register_component::<OwnedBy>(),
        world.register_component::<TimerAction>(),
        world.register_component::<Paused>(),
        world.register_component::<Disabled>(),
        world.register_component::<OnClock>(),
        world.register_component::<Clock>(),
    ]
}

/// A timer that is about to be armed.
struct Plan {
    clock: ClockKey,
    deadline: u64,
    timer: ArmedTimer,
    /// The reading of the clock, if the timer is paused.
    paused_at: Option<u64>,
}

impl Plan {
    fn of(world: &DeferredWorld, entity: Entity) -> Option<Result<Self, NoSuchClock>> {
        let lines = world.get_resource::<TimerLines>()?;
        let entity = world.get_entity(entity).ok()?;
        let timer = entity.get::<Timer>()?;
        let mut modifiers = lines.modifiers().iter();
        let is_modified = modifiers.any(|&id| entity.contains_id(id));
        let (owner, clock) = match is_modified {
            false => (entity.id(), timer.clock().unwrap_or_default()),
            true => {
                let owner = owner_of(entity);
                (owner, clock_of(world, entity, owner, timer.clock()))
            }
        };
        let (clock, reading) = match read(world, clock)? {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        let acts = is_modified && entity.contains::<TimerAction>();
        let is_paused = is_modified && is_paused(world, entity, owner);
        Some(Ok(Self {
            clock,
            deadline: timer.arm_at(reading, || random(world, lines.armed())),
            timer: ArmedTimer::new(entity.id(), owner, timer, acts),
            paused_at: is_paused.then_some(reading.now),
        }))
    }
}

fn read(world: &World, clock: ClockId) -> Option<Result<(ClockKey, Reading), NoSuchClock>> {
    let table = world.get_resource::<ClockTable>()?;
    let reading = table.find(clock).and_then(|(key, _)| {
        let reading = table.read_now(world, key).ok_or(NoSuchClock(clock))?;
        Ok((key, reading))
    });
    Some(reading)
}

/// Cancels a timer whose clock does not exist.
fn refuse(world: &mut DeferredWorld, entity: Entity, error: NoSuchClock) {
    let owner = world.get_entity(entity).map_or(entity, owner_of);
    if let Some(timer) = world.get::<Timer>(entity) {
        timer.move_to(Place::Nowhere);
    }
    report(
        world,
        TimerCancelled {
            entity,
            owner,
            reason: CancelReason::ClockGone,
        },
    );
    warn(world, error);
    world
        .commands()
        .queue(move |world: &mut World| retire(world, entity));
}

/// Cancels the timer of `entity`, but leaves its component in place.
pub(super) fn cancel(world: &mut DeferredWorld, entity: Entity, reason: CancelReason) {
    cancel_for(world, entity, |_, _| reason);
}

/// Removes the timer of `entity` from its queue and reports the cancellation. Returns the number of
/// the report, or `None` if the timer was not armed.
fn cancel_for(
    world: &mut DeferredWorld,
    entity: Entity,
    reason: impl FnOnce(&DeferredWorld, Entity) -> CancelReason,
) -> Option<u64> {
    let entity_ref = world.get_entity(entity).ok()?;
    let timer = entity_ref.get::<Timer>()?;
    let (clock, key) = timer.seat()?;
    timer.move_to(Place::Nowhere);
    let owner = owner_of(entity_ref);
    let reason = reason(world, owner);
    let mut lines = world.get_resource_mut::<TimerLines>()?;
    if !lines.cancel(clock, key) {
        return None;
    }
    report(
        world,
        TimerCancelled {
            entity,
            owner,
            reason,
        },
    )
}

/// Reports a cancellation, and returns the number of the report.
///
/// The message is written in the next run. Observers see the report once the operation is done,
/// because its reason may change until then.
fn report(world: &mut DeferredWorld, cancelled: TimerCancelled) -> Option<u64> {
    let mut lines = world.get_resource_mut::<TimerLines>()?;
    let number = lines.cancelled.push(cancelled);
    if is_observed::<TimerCancelled>(world, cancelled.entity) {
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
        world.trigger(cancelled);
    });
}

/// Cancels the timers of a clock that is removed, replaced or despawned.
pub(crate) fn on_discard_clock(discarded: On<Discard<Clock>>, mut world: DeferredWorld) {
    let clock = discarded.entity;
    let is_despawned = discarded.trigger().new_archetype.is_none();
    let key = world.get_resource::<ClockTable>();
    let key = key.and_then(|table| table.key_of(clock));
    let lines = world.get_resource::<TimerLines>();
    let line = lines.and_then(|lines| lines.get(key?));
    let timers = line.into_iter().flat_map(|line| line.queue.iter());
    let timers: Vec<_> = timers
        .map(|(.., timer)| (timer.entity, timer.owner))
        .collect();
    for (timer, owner) in timers {
        // If the clock is also the owner, `OwnerGone` is the more precise reason.
        let reason = match is_despawned && owner == clock {
            true => CancelReason::OwnerGone,
            false => CancelReason::ClockGone,
        };
        cancel(&mut world, timer, reason);
        // One command per timer: if one panics, the others still run.
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| retire(world, timer));
    }
}
