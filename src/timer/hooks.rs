//! The hooks that keep the queues in step with the world.

use bevy_ecs::{
    entity::Entity,
    lifecycle::HookContext,
    world::{DeferredWorld, EntityRef, World},
};

use super::{
    ArmedTimer, CancelReason, Timelines, Timer, TimerAction, TimerCancelled, TimerOf,
    events::is_observed,
    on_clock::clock_of,
    own_clocks::{begin_clock, retire, warn},
    pause::is_held,
    random::random,
    timelines::ClockKey,
};
use crate::{
    clock::{ClockId, UnknownClock},
    queue::TimerKey,
};

/// What a discarded `Timer` holds until its removal, if it is removed.
const DISCARDED: TimerKey = TimerKey::reserved(1);

/// Arms the `Timer` of `entity`.
///
/// Without [`Timelines`] nothing happens: in a world that does not run timers, such as the one
/// that a scene is loaded into, a `Timer` is just data.
pub(crate) fn arm(mut world: DeferredWorld, entity: Entity) {
    let plan = match Plan::of(&world, entity) {
        Some(Err(UnknownClock(ClockId::Own(clock)))) => {
            // It may be being spawned together with the timer.
            begin_clock(&mut world, clock);
            Plan::of(&world, entity)
        }
        plan => plan,
    };
    let plan = match plan {
        Some(Ok(plan)) => plan,
        Some(Err(unknown)) => return refuse(&mut world, entity, unknown),
        None => return,
    };
    let Some(mut timelines) = world.get_resource_mut::<Timelines>() else {
        return;
    };
    let discarded = timelines.discarded.take();
    if let Some(add_fixed_run) = timelines.add_timer(plan) {
        world.commands().queue(add_fixed_run);
    }
    report_discarded(&mut world, discarded, entity);
}

/// A timer about to be armed.
pub(super) struct Plan {
    pub(super) line: ClockKey,
    /// The key that it will have, and that its component already holds: it spares a look-up.
    pub(super) key: TimerKey,
    pub(super) deadline: u64,
    pub(super) timer: ArmedTimer,
    /// What the clock says, if the timer is held.
    pub(super) paused_at: Option<u64>,
}

impl Plan {
    fn of(world: &DeferredWorld, entity: Entity) -> Option<Result<Self, UnknownClock>> {
        let timelines = world.get_resource::<Timelines>()?;
        let entity_ref = world.get_entity(entity).ok()?;
        let timer = entity_ref.get::<Timer>()?;
        // Most timers have nothing of that beside them.
        let is_alone = !timelines
            .modifiers
            .iter()
            .any(|&id| entity_ref.contains_id(id));
        let Context {
            clock,
            owner,
            acts,
            held,
        } = if is_alone {
            Context::alone(entity, timer)
        } else {
            Context::of(world, entity_ref, timer)
        };
        let Some((line, reading)) = timelines.read_now(world, clock) else {
            return Some(Err(UnknownClock(clock)));
        };
        let draw = || random(world, timelines.next_draw());
        let key = timelines.get(line)?.queue.next_key();
        timer.set_armed(line, key);
        Some(Ok(Self {
            line,
            key,
            deadline: timer.first_deadline(reading, draw),
            timer: ArmedTimer::new(entity, owner, timer, acts),
            paused_at: held.then_some(reading.now),
        }))
    }
}

/// What the entity of a timer, and its owner, say about it.
struct Context {
    clock: ClockId,
    owner: Entity,
    acts: bool,
    held: bool,
}

impl Context {
    fn alone(entity: Entity, timer: &Timer) -> Self {
        Self {
            clock: timer.clock().unwrap_or_default(),
            owner: entity,
            acts: false,
            held: false,
        }
    }

    fn of(world: &DeferredWorld, entity: EntityRef, timer: &Timer) -> Self {
        let owner = owner_of(entity);
        Self {
            clock: clock_of(world, entity, owner, timer.clock()),
            owner,
            acts: entity.contains::<TimerAction>(),
            held: is_held(world, entity, owner),
        }
    }
}

/// Cancels a timer whose clock does not exist.
fn refuse(world: &mut DeferredWorld, entity: Entity, unknown: UnknownClock) {
    let discarded = world
        .get_resource_mut::<Timelines>()
        .and_then(|mut timelines| timelines.discarded.take());
    report_discarded(world, discarded, entity);
    if let Some(timer) = world.get::<Timer>(entity) {
        timer.set_armed(0, TimerKey::NONE);
    }
    let owner = world.get_entity(entity).map_or(entity, owner_of);
    let reason = CancelReason::ClockGone;
    report(
        world,
        TimerCancelled {
            entity,
            owner,
            reason,
        },
    );
    warn(world, unknown);
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| retire(world, entity));
}

pub(super) fn on_insert(world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    arm(world, entity);
}

/// Cancels. Whether the timer is being removed or replaced shows in the hook that comes next.
pub(super) fn on_discard(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let left_over = cancel(&mut world, entity, DISCARDED, |_, _| CancelReason::Removed);
    // A panic between two hooks, caught by somebody, has left the first without the second.
    if let Some(left_over) = left_over {
        report(&mut world, left_over);
    }
}

pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if world.get::<Timer>(entity).map(Timer::key) != Some(DISCARDED) {
        return;
    }
    let removed = world
        .get_resource_mut::<Timelines>()
        .and_then(|mut timelines| timelines.discarded.take());
    if let Some(removed) = removed {
        report(&mut world, removed);
    }
}

pub(super) fn on_despawn(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let reason = |world: &DeferredWorld, owner| {
        if world.entities().contains_spawned(owner) {
            CancelReason::Despawned
        } else {
            CancelReason::OwnerGone
        }
    };
    if let Some(cancelled) = cancel(&mut world, entity, TimerKey::NONE, reason) {
        tell_observers(&mut world, cancelled);
    }
}

/// Cancels a timer for a reason that no hook could tell, and leaves its component behind.
pub(super) fn cancel_for(world: &mut DeferredWorld, entity: Entity, reason: CancelReason) {
    if let Some(cancelled) = cancel(world, entity, TimerKey::NONE, |_, _| reason) {
        tell_observers(world, cancelled);
    }
}

/// Takes the timer of `entity` out of its queue, if it is there, and leaves `replacement` for its
/// key. Returns what is to be told of it; of one that has been [`DISCARDED`], the next hook knows
/// that, and what is returned is what it has not yet told of another.
fn cancel(
    world: &mut DeferredWorld,
    entity: Entity,
    replacement: TimerKey,
    reason: impl FnOnce(&DeferredWorld, Entity) -> CancelReason,
) -> Option<TimerCancelled> {
    let entity_ref = world.get_entity(entity).ok()?;
    let timer = entity_ref.get::<Timer>()?;
    let (line, key) = timer.armed()?;
    timer.set_armed(line, replacement);
    let owner = owner_of(entity_ref);
    let cancelled = TimerCancelled {
        entity,
        owner,
        reason: reason(world, owner),
    };
    let mut timelines = world.get_resource_mut::<Timelines>()?;
    if !timelines.cancel(line, key) {
        return None;
    }
    if replacement == DISCARDED {
        return timelines.discarded.replace(cancelled);
    }
    timelines.cancelled.push(cancelled);
    Some(cancelled)
}

/// Takes the `Timer` of an entity away that is over already, and says whether the entity is to go,
/// too.
pub(super) fn end(world: &mut World, entity: Entity) -> bool {
    let Ok(mut entity) = world.get_entity_mut(entity) else {
        return false;
    };
    let is_owned = entity.contains::<TimerOf>();
    let timer = entity.take::<Timer>();
    timer.is_some_and(|timer| timer.despawns(is_owned))
}

/// Changes what the queue keeps of the timer of `entity`, if it is there.
pub(super) fn change_armed(
    world: &mut DeferredWorld,
    entity: Entity,
    change: impl FnOnce(&mut ArmedTimer),
) {
    if let Some((line, key)) = world.get::<Timer>(entity).and_then(Timer::armed)
        && let Some(mut timelines) = world.get_resource_mut::<Timelines>()
        && let Some(timer) = timelines.timer_mut(line, key)
    {
        change(timer);
    }
}

/// Reports the timer in whose place the one of `entity` was inserted, or one that a panic has left
/// behind.
fn report_discarded(world: &mut DeferredWorld, discarded: Option<TimerCancelled>, entity: Entity) {
    if let Some(mut cancelled) = discarded {
        if cancelled.entity == entity {
            cancelled.reason = CancelReason::Replaced;
        }
        report(world, cancelled);
    }
}

fn report(world: &mut DeferredWorld, cancelled: TimerCancelled) {
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>() {
        timelines.cancelled.push(cancelled);
    }
    tell_observers(world, cancelled);
}

fn tell_observers(world: &mut DeferredWorld, cancelled: TimerCancelled) {
    if is_observed::<TimerCancelled>(world, cancelled.entity) {
        world.commands().trigger(cancelled);
    }
}

pub(super) fn owner_of(entity: EntityRef) -> Entity {
    entity.get::<TimerOf>().map_or(entity.id(), |of| of.0)
}
