//! Observers that note the entities that change while a snapshot exists.

use alloc::vec::Vec;
use core::marker::PhantomData;

use bevy_ecs::{
    event::EntityComponentsTrigger,
    lifecycle::{AddEvent, DiscardEvent, InsertEvent},
    prelude::*,
    relationship::Relationship,
    world::DeferredWorld,
};

use super::log::Log;
use crate::{
    clock::SpeedModifier, journal::Journal, message::Mailbag, owner::OwnedBy, pause::Pauses,
    state::part::PartKind, timer::TimerQueues,
};

/// Holds an observer of an event. A game that despawns every entity without a resource spares it: Bevy must not
/// despawn an observer together with what it observes.
#[derive(Resource)]
struct Watcher<E: 'static>(PhantomData<fn(E)>);

impl<E> Default for Watcher<E> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<E> Watcher<E> {
    fn begin(world: &mut World, observer: Observer) {
        world.init_resource::<Self>();
        if let Some(holder) = world.resource_entity::<Self>() {
            world.entity_mut(holder).insert(observer);
        }
    }

    /// Removes the observer. Bevy keeps the entity of the resource.
    fn end(world: &mut World) {
        if let Some(holder) = world.resource_entity::<Self>() {
            world.entity_mut(holder).remove::<Observer>();
        }
    }
}

/// Begins a log.
pub(super) fn watch(world: &mut World) {
    let log = Log::new(world);
    world.insert_resource(log);
    world.resource_mut::<TimerQueues>().journal = Some(Journal::default());
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.directory.rebound = Some(Journal::default());
    }
    let kinds: Vec<_> = world.resource::<Log>().kinds.ids().collect();
    let kinds = || kinds.iter().copied();
    Watcher::<AddEvent>::begin(world, Observer::new(on_add).with_components(kinds()));
    Watcher::<InsertEvent>::begin(world, Observer::new(on_join));
    Watcher::<DiscardEvent>::begin(world, Observer::new(on_discard).with_components(kinds()));
}

/// Throws the log away.
pub(super) fn unwatch(world: &mut World) {
    world.remove_resource::<Log>();
    world.resource_mut::<TimerQueues>().journal = None;
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.directory.rebound = None;
    }
    Watcher::<AddEvent>::end(world);
    Watcher::<InsertEvent>::end(world);
    Watcher::<DiscardEvent>::end(world);
}

fn on_add(added: On<Add<()>>, mut world: DeferredWorld) {
    let new = added.trigger().components;
    Log::note(&mut world, added.entity, |id| !new.contains(&id), |_| None);
}

/// Notes the target of a relationship, which has the entity in its list already or soon.
fn on_join(joined: On<Insert<(OwnedBy, Pauses, SpeedModifier)>>, mut world: DeferredWorld) {
    let targets = targets(&world, joined.entity, joined.trigger());
    let lists = [
        PartKind::Owned,
        PartKind::PausedBy,
        PartKind::SpeedModifiers,
    ];
    for target in targets.into_iter().flatten() {
        // The entity may have been in another list of the target before.
        let joins = |list| (list, Some(target));
        let has_joined = |kind| lists.into_iter().zip(targets).any(|it| it == joins(kind));
        let joined = |kind| has_joined(kind).then_some(joined.entity);
        Log::note(&mut world, target, |_| true, joined);
    }
}

/// Notes an entity that loses a component, and the target of a relationship that loses the entity. Bevy
/// removes it from the list later.
fn on_discard(discarded: On<Discard<()>>, mut world: DeferredWorld) {
    let entity = discarded.entity;
    for target in targets(&world, entity, discarded.trigger())
        .into_iter()
        .flatten()
    {
        Log::note(&mut world, target, |_| true, |_| None);
    }
    Log::note(&mut world, entity, |_| true, |_| None);
}

/// Returns the entities to whose lists the components of a trigger belong.
fn targets(
    world: &DeferredWorld,
    entity: Entity,
    trigger: &EntityComponentsTrigger,
) -> [Option<Entity>; 3] {
    fn target<R: Relationship>(
        world: &DeferredWorld,
        entity: Entity,
        trigger: &EntityComponentsTrigger,
    ) -> Option<Entity> {
        let id = world.component_id::<R>()?;
        let is_triggered = trigger.components.contains(&id);
        world.get::<R>(entity).filter(|_| is_triggered).map(R::get)
    }
    [
        target::<OwnedBy>(world, entity, trigger),
        target::<Pauses>(world, entity, trigger),
        target::<SpeedModifier>(world, entity, trigger),
    ]
}
