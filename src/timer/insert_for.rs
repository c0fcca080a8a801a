//! Components for a limited time.

use core::{
    any::{TypeId, type_name},
    fmt,
    time::Duration,
};

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, world::DeferredWorld,
};
use bevy_platform::collections::HashMap;

use super::{
    DespawnAfter, KeyTable, Keyed, SurvivesCancelAll, Timer, TimerAction, fired::Unannounced,
    key_id::KeyId, on_world::try_with_timers,
};
use crate::{
    call::report,
    owner::OwnedBy,
    pause::{Paused, pause_for},
};

/// Inserts a component on an entity, and removes it after `time` on the entity's clock.
///
/// If the component already has an end, the later one counts. Without an end, it stays.
pub(crate) fn insert_for<C: Component>(mut entity: EntityWorldMut, time: Duration, component: C) {
    let owner = entity.id();
    // These components would stop the timer that ends them.
    if TypeId::of::<C>() == TypeId::of::<Paused>() {
        return entity.world_scope(|world| pause_for(world, owner, DespawnAfter::new(time)));
    }
    if TypeId::of::<C>() == TypeId::of::<Disabled>() {
        return entity.world_scope(|world| {
            report::<C>(world, StopsItsEnd(owner).into());
        });
    }
    let was_there = entity.contains::<C>();
    entity.insert(component);
    entity.world_scope(|world| {
        let left = remaining(world, owner, key::<C>());
        let stays = was_there && left.is_none_or(|left| left > time);
        if world.get::<C>(owner).is_some() && !stays {
            watch::<C>(world);
            world.spawn((
                (OwnedBy(owner), Keyed::new(key::<C>()), Limit(end::<C>)),
                (Timer::after(time), despawn_timer()),
                (SurvivesCancelAll, Unannounced),
            ));
        }
    });
}

/// The error for a component that stops the timer that should remove it.
#[derive(Debug)]
struct StopsItsEnd(Entity);

impl fmt::Display for StopsItsEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "can't disable entity {} for a time, because its timers stop: insert `Disabled`, and \
             remove it with `commands.after(..)`",
            self.0
        )
    }
}

impl core::error::Error for StopsItsEnd {}

fn key<C>() -> &'static str {
    type_name::<C>()
}

/// Returns the time that the timer under this key has left, if it is armed.
fn remaining(world: &mut World, owner: Entity, key: &'static str) -> Option<Duration> {
    let timer = try_with_timers(world, |timers| timers.keyed(owner, key));
    Some(timer.ok()??.remaining)
}

/// Returns the timer that ends the component, if any.
fn limit_of<C>(world: &World, owner: Entity) -> Option<Entity> {
    let table = world.get_resource::<KeyTable>()?;
    table.get(owner, KeyId::of(key::<C>().into()))
}

/// A closure and not data, because the function in a [`Limit`] can't be saved either.
fn despawn_timer() -> TimerAction {
    TimerAction::call(|world, fired| _ = world.try_despawn(fired.entity()))
}

/// Removes a component from the timer's owner when the timer ends, for whatever reason.
#[derive(Component, Clone)]
#[component(immutable, on_remove = on_remove_limit)]
struct Limit(fn(&mut World, Entity));

fn on_remove_limit(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let (Some(&Limit(end)), Some(&OwnedBy(owner))) = (world.get(entity), world.get(entity)) {
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| end(world, owner));
    }
}

/// Removes the component, unless another timer has taken over.
fn end<C: Component>(world: &mut World, owner: Entity) {
    if limit_of::<C>(world, owner).is_none()
        && let Ok(mut owner) = world.get_entity_mut(owner)
    {
        owner.remove::<C>();
    }
}

/// The observers that end a timer when its component is removed.
#[derive(Resource, Default)]
struct Watchers(HashMap<TypeId, Entity>);

/// Adds the observer of a component, unless the world has it.
fn watch<C: Component>(world: &mut World) {
    let watchers = world.get_resource_or_init::<Watchers>();
    let watcher = watchers.0.get(&TypeId::of::<C>()).copied();
    if watcher.is_some_and(|watcher| world.entities().contains_spawned(watcher)) {
        return;
    }
    let watcher = world.add_observer(on_remove::<C>).id();
    let mut watchers = world.get_resource_or_init::<Watchers>();
    watchers.0.insert(TypeId::of::<C>(), watcher);
}

fn on_remove<C: Component>(removed: On<Remove<C>>, mut world: DeferredWorld) {
    if let Some(timer) = limit_of::<C>(&world, removed.entity) {
        let mut commands = world.commands();
        let mut timer = commands.entity(timer);
        // Another observer may have brought the component back: it stays.
        timer.try_insert(Limit(|_, _| {})).try_despawn();
    }
}
