//! Components for a limited time.

#[cfg(feature = "bevy_reflect")]
use alloc::borrow::Cow;
use alloc::format;
use core::{
    any::{TypeId, type_name},
    time::Duration,
};

#[cfg(feature = "bevy_reflect")]
use bevy_ecs::reflect::{AppTypeRegistry, ReflectComponent};
use bevy_ecs::{
    change_detection::Tick,
    component::ComponentId,
    entity_disabling::Disabled,
    lifecycle::{HookContext, RemoveEvent},
    prelude::*,
    world::DeferredWorld,
};
use bevy_platform::collections::HashMap;

use super::{
    ArmedTimers, CrateTimer, DespawnAfter, Keyed, TimerAction, TimerQueues, keyed::holder,
};
use crate::{
    call::call_with_world,
    clock::ClockTable,
    owner::OwnedBy,
    pause::{Paused, RunsWhilePaused, clock_around, pause_for},
    report::report,
};

/// Inserts a component with a command, and removes it after a lifetime on the clock around the entity.
///
/// If the component already has an end, the later one counts. Without an end, it stays.
pub(crate) fn insert_for<C: Component>(
    world: &mut World,
    owner: Entity,
    lifetime: DespawnAfter,
    insert: impl EntityCommand,
) {
    let Ok(was_there) = world.get_entity(owner).map(|it| it.contains::<C>()) else {
        return;
    };
    // These components would stop the timer that ends them.
    if TypeId::of::<C>() == TypeId::of::<Paused>() {
        return pause_for(world, owner, lifetime);
    }
    if TypeId::of::<C>() == TypeId::of::<Disabled>() {
        let error = format!(
            "can't disable entity {owner} for a time, because its timers stop: insert \
             `Disabled`, and remove it with `commands.after(..)`"
        );
        return report::<C>(world, error.into());
    }
    let key = Keyed::new(type_name::<C>());
    let id = world.register_component::<C>();
    if let Err(same_name) = watch(world, &key, id) {
        return report::<C>(world, same_name);
    }
    insert.apply(world.entity_mut(owner));
    let clock = clock_around(world, world.entity(owner));
    let stays = was_there
        && holder(world, owner, key.id()).is_none_or(|timer| {
            // In its last firing, the timer is no longer armed.
            let left = world.run_system_cached_with(remaining, timer);
            let table = world.get_resource::<ClockTable>();
            let now = table.and_then(|table| table.read(clock.0).ok());
            let time = lifetime.left(now.map(|(_, reading)| reading));
            left.ok().flatten().is_some_and(|left| left > time)
        });
    if world.get::<C>(owner).is_some() && !stays {
        let end = (CrateTimer::InsertFor(key.clone()), TimerAction::despawn());
        let DespawnAfter(timer) = lifetime;
        let timer = (timer, clock, RunsWhilePaused);
        world.spawn((OwnedBy(owner), key, timer, end));
    }
}

/// Returns the time that a timer has left, if it is armed.
fn remaining(In(timer): In<Entity>, timers: ArmedTimers) -> Option<Duration> {
    Some(timers.get(timer)?.remaining)
}

/// The components that have had a limited time in this world.
///
/// Any component can have a limited time, but only a type that implements `Reflect` has a type path.
/// The derive of `Reflect` makes it equal to the type name, except for a type with a `type_path`
/// attribute, such as the components of this crate, and for a type in a function. A world that loads a timer
/// therefore looks the name up among the type paths.
#[derive(Resource, Default)]
struct TimedComponents {
    /// By type name.
    known: HashMap<Keyed, ComponentId>,
    /// The components whose removal ends their timers. One observer watches them all, on the entity of this resource: a
    /// game that despawns every entity without a resource spares it.
    watched: HashMap<ComponentId, Keyed>,
}

/// Lets a loaded timer find a component by its type name.
#[cfg(feature = "serialize")]
pub(crate) fn know_component<C: Component>(world: &mut World, id: ComponentId) {
    let mut timed = world.get_resource_or_init::<TimedComponents>();
    let key = Keyed::new(type_name::<C>());
    // The observer comes with the first timer.
    timed.known.entry(key).or_insert(id);
}

pub(super) fn on_insert(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    check_component(&mut world, entity);
}

/// Finds the component of a timer that is new in this world, such as a loaded one. Without the
/// plugin, the world may only hold a scene.
pub(crate) fn check_component(world: &mut DeferredWorld, entity: Entity) {
    let Some(CrateTimer::InsertFor(key)) = world.get(entity) else {
        return;
    };
    if is_watched(world, key) || !world.contains_resource::<TimerQueues>() {
        return;
    }
    let key = key.clone();
    world.commands().queue(move |world: &mut World| {
        call_with_world::<CrateTimer>(world, "a limited component", entity, |world| {
            match find(world, &key) {
                Some(component) => watch(world, &key, component),
                None => Err(BevyError::warning(format!(
                    "{key} stays when its time is over, because no component is registered under \
                     this type path: call `add_saved_component` for it before loading, or derive `Reflect` \
                     with `#[reflect(Component)]` and call `register_type`"
                ))),
            }
        });
    });
}

/// Removes the component when its timer ends, for whatever reason.
pub(super) fn on_remove(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    if let Some((owner, key)) = limited_by(&world, entity) {
        world
            .commands()
            .queue(move |world: &mut World| end(world, owner, &key));
    }
}

/// Removes the component, unless another timer has taken over.
fn end(world: &mut World, owner: Entity, key: &Keyed) {
    if holder(world, owner, key.id()).is_none()
        && let Some(component) = find(world, key)
        && let Ok(mut owner) = world.get_entity_mut(owner)
    {
        owner.remove_by_id(component);
    }
}

/// Returns the owner and the component of a timer that limits the time of a component.
pub(crate) fn limited_by(world: &World, timer: Entity) -> Option<(Entity, Keyed)> {
    match (world.get(timer)?, world.get(timer)?) {
        (CrateTimer::InsertFor(key), &OwnedBy(owner)) => Some((owner, key.clone())),
        _ => None,
    }
}

/// Removes a component of a timer that is gone, if it came after a tick and is not one of those that stay.
pub(crate) fn end_since(
    world: &mut World,
    (owner, key): (Entity, &Keyed),
    since: Tick,
    stays: impl Fn(ComponentId) -> bool,
) {
    let component = known(world, key).filter(|&component| !stays(component));
    let now = world.change_tick();
    let came_since = component.is_some_and(|component| {
        let owner = world.get_entity(owner).ok();
        let ticks = owner.and_then(|owner| owner.get_change_ticks_by_id(component));
        ticks.is_some_and(|ticks| ticks.is_added(since, now))
    });
    if came_since {
        end(world, owner, key);
    }
}

/// Returns the component with this name that has had a limited time in this world, if any.
fn known(world: &World, key: &Keyed) -> Option<ComponentId> {
    let timed = world.get_resource::<TimedComponents>()?;
    timed.known.get(key).copied()
}

fn is_watched(world: &World, key: &Keyed) -> bool {
    let timed = world.get_resource::<TimedComponents>();
    timed.is_some_and(|timed| {
        let component = timed.known.get(key);
        component.is_some_and(|it| timed.watched.contains_key(it))
    })
}

/// Finds a component that has had a limited time in this world, or that is registered for reflection.
fn find(world: &mut World, key: &Keyed) -> Option<ComponentId> {
    match known(world, key) {
        Some(id) => Some(id),
        #[cfg(feature = "bevy_reflect")]
        None => {
            let registry = world.get_resource::<AppTypeRegistry>()?.clone();
            let registry = registry.read();
            let registered = registry.get_with_type_path(&type_path(key.name()))?;
            let component = registered.data::<ReflectComponent>()?;
            Some(component.register_component(world))
        }
        #[cfg(not(feature = "bevy_reflect"))]
        None => None,
    }
}

/// Returns the type path that belongs to a type name. The types of this crate are at its root.
#[cfg(feature = "bevy_reflect")]
fn type_path(name: &str) -> Cow<'_, str> {
    let own = name.strip_prefix("bevy_due::");
    match own.and_then(|path| path.rsplit("::").next()) {
        Some(own) => Cow::Owned(format!("bevy_due::{own}")),
        None => Cow::Borrowed(name),
    }
}

/// Notes the component with this name, and lets the observer watch its removal.
///
/// # Errors
///
/// Returns an error if another component has the name.
fn watch(world: &mut World, key: &Keyed, id: ComponentId) -> Result {
    if known(world, key).is_some_and(|other| other != id) {
        return Err(format!(
            "two components with limited times are named {key}: rename one, or move it to another \
             module"
        )
        .into());
    }
    if is_watched(world, key) {
        return Ok(());
    }
    let mut timed = world.get_resource_or_init::<TimedComponents>();
    timed.known.insert(key.clone(), id);
    timed.watched.insert(id, key.clone());
    let observer = Observer::new(end_timers).with_components(timed.watched.keys().copied());
    if let Some(holder) = world.resource_entity::<TimedComponents>() {
        // An observer can't watch more components later.
        world
            .entity_mut(holder)
            .remove::<Observer>()
            .insert(observer);
    }
    Ok(())
}

/// Ends the timers of the components that are removed.
fn end_timers(removed: On<RemoveEvent>, mut world: DeferredWorld) {
    for component in removed.trigger().components {
        let timed = world.get_resource::<TimedComponents>();
        let key = timed.and_then(|timed| timed.watched.get(component));
        let timer = key.and_then(|key| holder(&world, removed.entity, key.id()));
        if let Some(timer) = timer {
            // Another observer may have brought the component back: it stays.
            let mut commands = world.commands();
            commands
                .entity(timer)
                .try_insert(CrateTimer::Over)
                .try_despawn();
        }
    }
}
