//! Components for a limited time.

use core::{
    any::{TypeId, type_name},
    time::Duration,
};

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
use bevy_platform::collections::HashMap;

use super::{
    KeyTable, Keyed, SurvivesCancelAll, Timer, TimerAction, fired::Unannounced, key_id::KeyId,
    on_world::try_with_timers,
};
use crate::owner::OwnedBy;

/// Inserts a component on an entity, and removes it after `time` on the entity's clock.
///
/// If the component already has an end, the later one counts.
pub(crate) fn insert_for<C: Component>(mut entity: EntityWorldMut, time: Duration, component: C) {
    // If the component was not there, the timer is about to end.
    let has_end = entity.contains::<C>();
    entity.insert(component);
    let owner = entity.id();
    entity.world_scope(|world| {
        let is_there = world.get::<C>(owner).is_some();
        if is_there && !(has_end && ends_later(world, owner, key::<C>(), time)) {
            watch::<C>(world);
            world.spawn((
                (OwnedBy(owner), Keyed::new(key::<C>()), Limit(end::<C>)),
                (Timer::after(time), despawn_timer()),
                (SurvivesCancelAll, Unannounced),
            ));
        }
    });
}

fn key<C>() -> &'static str {
    type_name::<C>()
}

/// Returns `true` if the timer under this key has more time left than `time`.
fn ends_later(world: &mut World, owner: Entity, key: &'static str, time: Duration) -> bool {
    let timer = try_with_timers(world, |timers| timers.keyed(owner, key));
    let timer = timer.ok().flatten();
    timer.is_some_and(|timer| timer.remaining > time)
}

/// A closure and not data, because the function in a [`Limit`] can't be saved either.
fn despawn_timer() -> TimerAction {
    TimerAction::call(|world, fired| _ = world.try_despawn(fired.entity()))
}

/// Removes a component from the timer's owner when the timer ends, for whatever reason.
#[derive(Component)]
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
    let table = world.get_resource::<KeyTable>();
    let holder = table.and_then(|table| table.get(owner, KeyId::of(key::<C>().into())));
    if holder.is_none()
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
    let table = world.get_resource::<KeyTable>();
    let timer = table.and_then(|table| table.get(removed.entity, KeyId::of(key::<C>().into())));
    if let Some(timer) = timer {
        let mut commands = world.commands();
        let mut timer = commands.entity(timer);
        // Another observer may have brought the component back: it stays.
        timer.try_insert(Limit(|_, _| {})).try_despawn();
    }
}
