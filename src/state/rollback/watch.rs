//! Observers that note the components that change while a snapshot exists.

use alloc::vec::Vec;

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, query::Allow,
    relationship::Relationship, world::DeferredWorld,
};

use super::{
    components::{HasColumn, HasOrder, all_components},
    log::Log,
};
use crate::{
    clock::{Clock, OnClock, SpeedModifier, SpeedModifiers},
    message::{Directory, MovedRequest, OpenRequest},
    owner::{Owned, OwnedBy},
    pause::{Paused, PausedBy, Pauses},
    timer::{
        Cooldown, CrateTimer, DespawnAfter, Finished, KeyTable, Keyed, Timer, TimerAction,
        TimerLines,
    },
    transit::InTransit,
};

/// One of the observers, by its index in [`OBSERVERS`].
///
/// A game that despawns every entity despawns the observers, too. They return immediately, to see
/// which other entities despawn.
#[derive(Component, Clone, Copy)]
#[component(on_remove = on_remove_watcher)]
struct Watcher(usize);

macro_rules! observers {
    (
        columns { $($name:ident: $column:ty,)* }
        orders { $($order:ident: $relationship:ty => $target:ty,)* }
    ) => {
        const OBSERVERS: &[fn() -> Observer] = &[
            $(|| Observer::new(on_add::<$column>), || Observer::new(on_discard::<$column>),)*
            || Observer::new(on_add::<Disabled>),
            || Observer::new(on_discard::<Disabled>),
            $(
                || Observer::new(on_join::<$relationship>),
                || Observer::new(on_part::<$relationship>),
                || Observer::new(on_add_list::<$target>),
                || Observer::new(on_discard_list::<$target>),
            )*
        ];
    };
}

all_components!(observers);

/// Begins a log.
pub(super) fn watch(world: &mut World) {
    world.init_resource::<Log>();
    world.resource_mut::<TimerLines>().watch();
    world.resource_mut::<KeyTable>().watch();
    if let Some(mut directory) = world.get_resource_mut::<Directory>() {
        directory.watch();
    }
    for (nth, observer) in OBSERVERS.iter().enumerate() {
        world.spawn((Watcher(nth), observer()));
    }
    world.flush();
}

/// Throws the log away.
pub(super) fn unwatch(world: &mut World) {
    world.remove_resource::<Log>();
    world.resource_mut::<TimerLines>().unwatch();
    world.resource_mut::<KeyTable>().unwatch();
    if let Some(mut directory) = world.get_resource_mut::<Directory>() {
        directory.unwatch();
    }
    let mut watchers = world.query_filtered::<Entity, (With<Watcher>, Allow<Disabled>)>();
    let watchers: Vec<Entity> = watchers.iter(world).collect();
    for watcher in watchers {
        world.despawn(watcher);
    }
}

fn on_remove_watcher(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let watcher = world.get::<Watcher>(entity).copied();
    let watcher = watcher.filter(|_| world.contains_resource::<Log>());
    if let Some(Watcher(nth)) = watcher {
        world.commands().spawn((Watcher(nth), OBSERVERS[nth]()));
    }
}

fn on_add<C: HasColumn>(added: On<Add<C>>, log: Option<ResMut<Log>>) {
    if let Some(mut log) = log {
        C::column(&mut log.components).note(added.entity, || None);
    }
}

fn on_discard<C: HasColumn>(
    discarded: On<Discard<C>>,
    values: Query<&C, Allow<Disabled>>,
    log: Option<ResMut<Log>>,
) {
    let entity = discarded.entity;
    if let (Some(mut log), Ok(value)) = (log, values.get(entity)) {
        C::column(&mut log.components).note_value(entity, value);
    }
}

type TargetOf<R> = <R as Relationship>::RelationshipTarget;

/// Notes the entities of a target that gets another one, which is in the list already or soon.
fn on_join<R: Relationship>(
    joined: On<Insert<R>>,
    sources: Query<&R, Allow<Disabled>>,
    targets: Query<Option<&TargetOf<R>>, Allow<Disabled>>,
    log: Option<ResMut<Log>>,
) where
    TargetOf<R>: HasOrder,
{
    note_list(joined.entity, Some(joined.entity), sources, targets, log);
}

/// Notes the entities of a target that loses one of them. Bevy removes it from the list later.
fn on_part<R: Relationship>(
    parted: On<Discard<R>>,
    sources: Query<&R, Allow<Disabled>>,
    targets: Query<Option<&TargetOf<R>>, Allow<Disabled>>,
    log: Option<ResMut<Log>>,
) where
    TargetOf<R>: HasOrder,
{
    note_list(parted.entity, None, sources, targets, log);
}

fn note_list<R: Relationship>(
    source: Entity,
    joins: Option<Entity>,
    sources: Query<&R, Allow<Disabled>>,
    targets: Query<Option<&TargetOf<R>>, Allow<Disabled>>,
    log: Option<ResMut<Log>>,
) where
    TargetOf<R>: HasOrder,
{
    let target = sources.get(source).map(Relationship::get);
    let list = target.and_then(|target| Ok((target, targets.get(target)?)));
    if let (Some(mut log), Ok((target, list))) = (log, list) {
        TargetOf::<R>::order(&mut log.components).note_list(target, list, joins);
    }
}

fn on_add_list<T: HasOrder>(added: On<Add<T>>, log: Option<ResMut<Log>>) {
    if let Some(mut log) = log {
        T::order(&mut log.components).note(added.entity, || None);
    }
}

fn on_discard_list<T: HasOrder>(
    discarded: On<Discard<T>>,
    targets: Query<&T, Allow<Disabled>>,
    log: Option<ResMut<Log>>,
) {
    let target = discarded.entity;
    if let (Some(mut log), Ok(list)) = (log, targets.get(target)) {
        T::order(&mut log.components).note_list(target, Some(list), None);
    }
}
