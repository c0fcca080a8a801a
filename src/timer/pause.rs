//! Pausing one timer, or all timers of an owner.

use bevy_ecs::{
    component::Component,
    entity::Entity,
    entity_disabling::Disabled,
    lifecycle::{Add, HookContext, Remove},
    observer::On,
    world::{DeferredWorld, EntityRef, World},
};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use super::{Timelines, Timer, Timers, hooks::owner_of};

/// Pauses the timers of this entity: its own, and those of which it is the owner.
///
/// From the moment it is inserted they do not fire, not even later in the same run. When it is
/// removed, they go on with the remaining time that they had, to the nanosecond, and with their
/// place in the order of equal deadlines. A timer that is armed meanwhile waits with its full
/// delay.
///
/// A timer is paused as long as its entity or its owner has this, or is
/// [`Disabled`]. To pause everything on a clock, [pause the clock](crate::Clock::pause).
///
/// What is to end the pause must not belong to the entity, or it would be paused, too: see the
/// example.
///
/// # Time complexity
///
/// In the number *n* of the entity's timers, inserting and removing are *O*(*n*), amortised.
///
/// # Examples
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Boss;
///
/// fn stun(boss: Single<Entity, With<Boss>>, mut commands: Commands) {
///     // All that the boss is up to stops.
///     commands.entity(*boss).insert(TimersPaused);
///     commands.after_secs(2.0).run(wake_up);
/// }
///
/// fn wake_up(boss: Single<Entity, With<Boss>>, mut commands: Commands) {
///     commands.entity(*boss).remove::<TimersPaused>();
/// }
///
/// fn prepare(mut commands: Commands) {
///     // Created paused.
///     commands.spawn((Timer::after_secs(3.0), TimersPaused));
/// }
/// # bevy_ecs::system::assert_is_system(stun);
/// # bevy_ecs::system::assert_is_system(prepare);
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[component(on_add = on_add, on_remove = on_remove)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct TimersPaused;

fn on_add(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    update_all(&mut world, entity);
}

fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    update_later(&mut world, entity);
}

pub(crate) fn on_disable(disabled: On<Add<Disabled>>, mut world: DeferredWorld) {
    update_all(&mut world, disabled.entity);
}

pub(crate) fn on_enable(enabled: On<Remove<Disabled>>, mut world: DeferredWorld) {
    update_later(&mut world, enabled.entity);
}

/// When a component is being removed, it and whatever goes with it is still there.
fn update_later(world: &mut DeferredWorld, entity: Entity) {
    let mut commands = world.commands();
    commands.queue(move |world: &mut World| update_all(&mut world.into(), entity));
}

/// Whether a timer that belongs to `owner` is held.
pub(super) fn is_held(world: &DeferredWorld, timer: EntityRef, owner: Entity) -> bool {
    let holds =
        |entity: EntityRef| entity.contains::<TimersPaused>() || entity.contains::<Disabled>();
    holds(timer) || owner != timer.id() && world.get_entity(owner).is_ok_and(holds)
}

fn update_all(world: &mut DeferredWorld, entity: Entity) {
    update(world, entity);
    let mut nth = 0;
    while let Some(&timer) = world.get::<Timers>(entity).and_then(|owned| owned.get(nth)) {
        update(world, timer);
        nth += 1;
    }
}

/// Pauses or resumes an armed timer as it is held or not.
pub(super) fn update(world: &mut DeferredWorld, timer: Entity) {
    let Ok(timer) = world.get_entity(timer) else {
        return;
    };
    let Some((line, key)) = timer.get::<Timer>().and_then(Timer::armed) else {
        return;
    };
    let held = is_held(world, timer, owner_of(timer));
    let Some(timelines) = world.get_resource::<Timelines>() else {
        return;
    };
    if timelines
        .get(line)
        .is_none_or(|line| line.is_paused(key) == held)
    {
        return;
    }
    let Some(reading) = timelines.read_line_now(world, line) else {
        return;
    };
    if let Some(mut timelines) = world.get_resource_mut::<Timelines>()
        && let Some(line) = timelines.get_mut(line)
    {
        line.set_paused(key, held, reading.now);
    }
}
