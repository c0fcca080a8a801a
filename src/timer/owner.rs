//! Owners: entities to which timers and update callbacks belong.

mod entities;

use alloc::vec::Vec;
use core::iter;

use bevy_ecs::{
    lifecycle::HookContext,
    prelude::*,
    relationship::{Relationship, RelationshipHookMode, RelationshipSourceCollection},
    world::DeferredWorld,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;
use entities::OwnedEntities;
use smallvec::SmallVec;

use super::{
    CancelReason, TimerQueues,
    cancel::cancel,
    end::retire_later,
    keyed::{free_key, take_key},
    pause::{follow_list, follow_owner},
};
use crate::copies::join_searched;

/// Makes the [`Timer`](crate::Timer) and [`UpdateComponent`](crate::UpdateComponent) on this entity
/// belong to another entity, its owner.
///
/// An entity carries one timer and one update callback. To give an owner several, spawn a separate
/// entity with `OwnedBy` for each one. All of them despawn with the owner, also over several levels. An
/// entity whose owner does not exist despawns in the next run. A pause reaches everything that its entity
/// owns, at any depth. For clocks, only the direct owner counts.
///
/// After the last firing, an owned timer is removed from its entity immediately. The entity
/// despawns at the start of the next run. Systems that read the [`TimerFired`](crate::TimerFired)
/// message in this frame therefore still find its components. (A system that does not run every
/// frame, such as one in the fixed schedule, may be too late. Use an observer instead.) If the
/// entity has a new `Timer` or no owner by then, it stays. To cancel an owned timer, despawn its
/// entity.
///
/// What the entity does to others ends with the last firing, right after its handlers:
/// [`Pauses`](crate::timer::Pauses) and [`SpeedModifier`](crate::clock::SpeedModifier) are removed from the entity and
/// from everything that it owns.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Component)]
/// struct Enrage;
/// #[derive(Component)]
/// struct Summon;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()));
/// let boss = app
///     .world_mut()
///     .spawn(related!(Owned[
///         (Enrage, Timer::after(60.0)),
///         (Summon, Timer::every(8.0)),
///     ]))
///     .id();
/// let timers: Vec<Entity> = app.world().get::<Owned>(boss).unwrap().iter().collect();
/// assert_eq!(timers.len(), 2);
///
/// app.world_mut().despawn(boss);
/// assert!(app.world().get_entity(timers[0]).is_err(), "they die with the boss");
/// ```
///
/// The components on the timer's entity say which timer fired, and [`TimerFired::owner`] returns
/// its owner:
///
/// ```
/// # use bevy_due::{TimerFired, prelude::*};
/// # use bevy_ecs::prelude::*;
/// # #[derive(Component)]
/// # struct Enrage;
/// # #[derive(Component)]
/// # struct Damage(u32);
/// fn enrage(
///     mut fired: MessageReader<TimerFired>,
///     enrages: Query<(), With<Enrage>>,
///     mut damages: Query<&mut Damage>,
/// ) {
///     for fired in fired.read().filter(|fired| enrages.contains(fired.entity())) {
///         if let Ok(mut damage) = damages.get_mut(fired.owner()) {
///             damage.0 *= 2;
///         }
///     }
/// }
/// # bevy_ecs::system::assert_is_system(enrage);
/// ```
///
/// The update callbacks of one owner run in order of priority, and are called on the owner:
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Component)]
/// struct Log(Vec<&'static str>);
///
/// fn say(what: &'static str) -> UpdateComponent {
///     UpdateComponent::new(move |mut me| {
///         if let Some(mut log) = me.entity.get_mut::<Log>() {
///             log.0.push(what);
///         }
///     })
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()));
/// let robot = app
///     .world_mut()
///     .spawn((
///         Log(vec![]),
///         related!(Owned[say("move").with_priority(2), say("think").with_priority(1)]),
///     ))
///     .id();
/// app.update();
/// assert_eq!(app.world().get::<Log>(robot).unwrap().0, ["think", "move"]);
/// ```
///
/// [`TimerFired::owner`]: crate::TimerFired::owner
#[doc(alias("TimerOf", "UpdateOf", "parent"))]
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = on_insert, on_discard = on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct OwnedBy(#[entities] pub Entity);

// The derive would run Bevy's hook after the one below. Bevy's hook queues two commands for each entity.
impl Relationship for OwnedBy {
    type RelationshipTarget = Owned;

    fn get(&self) -> Entity {
        self.0
    }

    fn from(owner: Entity) -> Self {
        Self(owner)
    }

    fn set_risky(&mut self, owner: Entity) {
        self.0 = owner;
    }
}

/// The entities whose timers and update callbacks belong to this entity, in the order in which they
/// became its own.
///
/// This is the other side of [`OwnedBy`]. `iter` and `len` are methods of [`RelationshipTarget`].
/// Bevy adds `Owned` through a command, so an observer of the first `Insert<OwnedBy>` may run before it
/// exists. The last entity takes it along. After a reply, an empty `Owned` stays until the commands of the callback
/// are applied, so an asker that makes its next request there keeps it. Bevy does not know the relationship at run
/// time (`ComponentInfo::relationship_accessor`).
///
/// # Time complexity
///
/// An entity is added and removed in *O*(1), amortized.
#[derive(Component, Clone, Default, Debug, PartialEq, Eq)]
#[relationship_target(relationship = OwnedBy, linked_spawn)]
#[component(storage = "SparseSet", on_insert = follow_list)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Owned(OwnedEntities);

fn on_insert(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    let Some(&OwnedBy(owner)) = world.get(entity) else {
        return;
    };
    if !world.entities().contains_spawned(owner) {
        // Bevy is about to remove the `OwnedBy`.
        on_orphan(&mut world, entity);
        return <OwnedBy as Relationship>::on_insert(world, context);
    }
    // Bevy inserts a missing list.
    let is_usual = matches!(context.relationship_hook_mode, RelationshipHookMode::Run);
    match world.get_mut::<Owned>(owner) {
        Some(mut owned) if is_usual && owner != entity => _ = owned.0.add(entity),
        _ => {
            join_searched::<OwnedBy>(world.reborrow(), context, |owned, copy| {
                owned.0.contains(copy)
            });
            <OwnedBy as Relationship>::on_insert(world.reborrow(), context);
        }
    }
    follow_owner(&mut world, entity, true);
    take_key(&mut world, entity);
}

fn on_discard(mut world: DeferredWorld, context: HookContext) {
    let entity = context.entity;
    free_key(&mut world, entity);
    follow_owner(&mut world, entity, false);
    if let RelationshipHookMode::Run = context.relationship_hook_mode
        && let Some(owner) = leave_list(&mut world, entity)
    {
        let mut commands = world.commands();
        commands.queue(move |world: &mut World| remove_empty_list(world, owner));
    }
}

/// Takes an entity off the list of its owner. Returns the owner if the list is empty now and must go.
fn leave_list(world: &mut DeferredWorld, entity: Entity) -> Option<Entity> {
    let &OwnedBy(owner) = world.get(entity)?;
    let mut list = world.get_mut::<Owned>(owner)?;
    list.0.remove(entity);
    let must_go = list.is_empty() && {
        let queues = world.get_resource::<TimerQueues>();
        queues.is_none_or(|queues| queues.keeps_list != Some(owner))
    };
    must_go.then_some(owner)
}

/// Removes the list of an owner if it is empty.
fn remove_empty_list(world: &mut World, owner: Entity) {
    if world.get::<Owned>(owner).is_some_and(Owned::is_empty) {
        world.entity_mut(owner).remove::<Owned>();
    }
}

/// Despawns an entity. Its owner keeps an empty list until [`end_kept_list`], because it may soon own another entity.
pub(crate) fn despawn_owned(world: &mut World, entity: Entity) {
    end_kept_list(world);
    if let Some(&OwnedBy(owner)) = world.get(entity)
        && let Some(mut queues) = world.get_resource_mut::<TimerQueues>()
    {
        queues.keeps_list = Some(owner);
    }
    world.try_despawn(entity).ok();
}

/// Removes the list that an owner has kept, if it is still empty.
pub(crate) fn end_kept_list(world: &mut World) {
    let queues = world.get_resource_mut::<TimerQueues>();
    if let Some(owner) = queues.and_then(|mut queues| queues.keeps_list.take()) {
        remove_empty_list(world, owner);
    }
}

/// Cancels the timer of an entity whose owner does not exist, and despawns the entity. In a world without
/// the plugin, owners are plain data.
fn on_orphan(world: &mut DeferredWorld, entity: Entity) {
    if !world.contains_resource::<TimerQueues>() {
        return;
    }
    // The timer may arrive in the same bundle.
    world.commands().queue(move |world: &mut World| {
        cancel(&mut world.into(), entity, CancelReason::OwnerGone);
        world.flush();
        retire_later(world, entity);
    });
}

/// Returns the owner of the timer and callback on an entity: the entity itself, unless it belongs
/// to another one.
pub(crate) fn owner_of(entity: EntityRef) -> Entity {
    entity.get::<OwnedBy>().map_or(entity.id(), |by| by.0)
}

/// Returns an entity and its owners, the nearest first. `owner` finds the direct owner of each.
pub(crate) fn with_owners<E: Copy + PartialEq>(
    entity: E,
    mut owner: impl FnMut(E) -> Option<E>,
) -> impl Iterator<Item = E> {
    // Entities may own each other in a ring: a walk that comes back to an earlier step ends (Brent, 1980).
    let (mut earlier, mut steps, mut limit) = (entity, 0, 1);
    iter::successors(Some(entity), move |&entity| {
        let owner = owner(entity).filter(|&owner| owner != earlier)?;
        steps += 1;
        if steps == limit {
            (earlier, steps, limit) = (owner, 0, 2 * limit);
        }
        Some(owner)
    })
}

/// Returns an entity and all that it owns, directly or not, owners first.
pub(crate) fn with_all_owned(world: &World, entity: Entity) -> SmallVec<[Entity; 8]> {
    let mut all = SmallVec::from_slice(&[entity]);
    let mut at = 0;
    while let Some(&owner) = all.get(at) {
        at += 1;
        let owned = owned_by(world, owner).into_iter();
        // Entities may own each other in a ring.
        all.extend(owned.filter(|&owned| owned != entity));
    }
    all
}

/// Returns the entities that belong to an entity.
pub(crate) fn owned_by(world: &World, owner: Entity) -> Vec<Entity> {
    let owned = world.get::<Owned>(owner);
    owned.into_iter().flat_map(Owned::iter).collect()
}
