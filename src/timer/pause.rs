//! Pauses: the components that stop the timers and callbacks of an entity, the rule, and what a pause does
//! to armed timers. A move to another world halts them in the same way.

use alloc::vec::Vec;

use bevy_ecs::{
    entity_disabling::Disabled, lifecycle::HookContext, prelude::*, world::DeferredWorld,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{
    Kind, TimerQueues,
    late_clock::follow_clock_later,
    owner::{Owned, OwnedBy, owned_by, owner_of, with_all_owned, with_owners},
    queued::Mark,
    queues::change_armed,
    setting::is_observed,
};
use crate::{
    clock::{Clock, ClockId, ClockTable, OnClock, clock_of},
    copies::{join_list, remove_if_empty},
};

/// Pauses the timers, lifetimes, update callbacks and request time-outs on this entity and on the
/// entities that [belong to it](crate::OwnedBy), at any depth.
///
/// Your own systems skip paused entities with the filter `(Without<Paused>, Without<PausedBy>)`. A
/// timer that must keep running, such as a poison during a stun, is on an entity of its own with
/// [`RunsWhilePaused`].
///
/// As soon as this component is inserted, the timers do not fire and the callbacks are not called,
/// not even later in the same run. Messages and replies still arrive. When the component is
/// removed, each timer continues with its remaining time, exact to the nanosecond. A timer that resumes
/// in the middle of a run fires in the next run at the earliest. Timers keep
/// their place among equal deadlines, and callbacks keep their place in the order. A timer that is
/// armed during the pause keeps its full delay until the pause ends.
///
/// A timer or a callback is paused while its entity or one of its owners has this component, is paused by
/// another entity ([`Pauses`]), or is [`Disabled`]. [`RunsWhilePaused`] is the exception. To pause
/// everything on a clock, [pause the clock](crate::clock::ClockMut::pause).
///
/// A [`Cooldown`](crate::Cooldown) or a [`Clock`](crate::Clock) on the same entity does not stop.
/// To be able to stop a cooldown, use it with a clock on the entity, and pause that clock.
///
/// The component is a marker, not a counter: one removal ends the pause, no matter how often it was
/// inserted. For pauses that overlap, such as two stuns, use [`Pauses`] or
/// [`pause_for`](crate::DueEntityCommandsExt::pause_for). The entity resumes once it has
/// neither this component nor [`PausedBy`].
///
/// # Time complexity
///
/// Inserting and removing are *O*(*n*) in the number of the entity's timers at any depth, amortized.
///
/// # Examples
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// fn open_shop(hero: Entity, mut commands: Commands) {
///     commands.entity(hero).insert(Paused);
/// }
///
/// fn close_shop(hero: Entity, mut commands: Commands) {
///     commands.entity(hero).remove::<Paused>();
/// }
///
/// fn prepare(mut commands: Commands) {
///     // Spawned paused.
///     commands.spawn((Timer::after(3.0), Paused));
/// }
/// # let _ = (open_shop, close_shop);
/// # bevy_ecs::system::assert_is_system(prepare);
/// ```
#[doc(alias("TimersPaused", "UpdatesPaused"))]
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Paused;

/// A pause of another entity: it lasts as long as this entity.
///
/// Pauses overlap, and the last end wins: the target runs again when its last pause has despawned and it
/// has no [`Paused`].
/// The pauses despawn with their target.
///
/// [`pause_for`](crate::DueEntityCommandsExt::pause_for) spawns a pause with a
/// [`DespawnAfter`](crate::DespawnAfter). The pause is not [owned](crate::OwnedBy) by its target, so
/// [`cancel_timers`](crate::DueEntityCommandsExt::cancel_timers) does not cancel it. An entity with this
/// component [runs while it is paused](RunsWhilePaused), so a pause never delays its own end, even if its
/// target owns it. For one pause per key, which a new one replaces, set a timer. The pause ends with its last firing. The
/// timer is on the clock of its owner, so a slow of the owner prolongs it, unless you choose another clock with
/// [`Timer::on`](crate::Timer::on):
///
/// ```
/// use bevy_due::{Timer, prelude::*, timer::Pauses};
/// use bevy_ecs::prelude::*;
///
/// fn freeze(enemy: &mut EntityCommands) {
///     let pause = Pauses(enemy.id());
///     enemy.set_timer("ice", (Timer::after(2.0), pause));
/// }
/// # let _ = freeze;
/// ```
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{PausedBy, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let mut commands = app.world_mut().commands();
/// let monster = commands.spawn_empty().id();
/// // Two stuns: the longer one counts.
/// commands.entity(monster).pause_for(Duration::from_secs(2)).pause_for(Duration::from_secs(1));
/// for _ in 0..7 {
///     app.update();
/// }
/// assert!(app.world().get::<PausedBy>(monster).is_some());
/// app.update();
/// assert!(app.world().get::<PausedBy>(monster).is_none());
/// ```
#[doc(alias("stun", "freeze", "PauseOf"))]
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[relationship(relationship_target = PausedBy)]
#[component(on_insert = join_list::<Self>)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::timer",
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct Pauses(pub Entity);

/// The [pauses](Pauses) of this entity. The entity is paused while it has this component.
#[derive(Component, Clone, Default, Debug, PartialEq, Eq)]
#[component(storage = "SparseSet", on_insert = on_insert_pauses)]
#[relationship_target(relationship = Pauses, linked_spawn)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Debug, Default, PartialEq)
)]
pub struct PausedBy(Vec<Entity>);

fn on_insert_pauses(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    remove_if_empty::<PausedBy>(&mut world, entity);
}

/// Lets the timer, the lifetime and the update callback on this entity run while a pause would stop them.
///
/// Neither a pause of an [owner](crate::OwnedBy), at any depth, nor a [pause by another entity](Pauses) stops
/// them. This is for effects that take their time whatever happens to the unit: a poison, a shield, a
/// silence. [`insert_for`](crate::DueEntityCommandsExt::insert_for) and [`Pauses`] work this way without
/// this component.
///
/// A [`Paused`] on the entity itself still stops them, as do a [`Disabled`] of the entity or of an owner,
/// and a clock that is stopped. What the entity owns follows its own rule: it runs only if it has this
/// component, too.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*, timer::RunsWhilePaused};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)));
/// app.update(); // Bevy's first frame takes no time.
///
/// let mut unit = app.world_mut().spawn_empty();
/// unit.set_timer("shield", (Timer::after(3.0), RunsWhilePaused))
///     .set_timer("cast", Timer::after(3.0))
///     .pause_for(2.0); // A stun.
/// let unit = unit.id();
/// for _ in 0..12 {
///     app.update();
/// }
/// app.world_mut().with_timers(|timers| {
///     assert!(timers.keyed(unit, "shield").is_none(), "three seconds are three seconds");
///     let cast = timers.keyed(unit, "cast").map(|cast| cast.remaining);
///     assert_eq!(cast, Some(Duration::from_secs(2)), "the cast waited");
/// });
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::timer",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct RunsWhilePaused;

/// Spawns a pause of `target`, on the clock around the target.
pub(crate) fn pause_for(world: &mut World, target: Entity, lifetime: impl Bundle) {
    let Ok(entity) = world.get_entity(target) else {
        return;
    };
    let clock = clock_around(world, entity);
    world.spawn((Pauses(target), clock, lifetime));
    world.flush();
}

/// Returns the clock of the effects on an entity: the parent of the entity's own clock, so that a slow does
/// not prolong them, or else the clock of its timers.
pub(super) fn clock_around(world: &World, entity: EntityRef) -> OnClock {
    let clock = clock_of(world, entity, owner_of(entity), None);
    let table = world.get_resource::<ClockTable>();
    let parent = table.and_then(|table| table.parent_of(entity.id()));
    let own = ClockId::Own(entity.id());
    OnClock(parent.filter(|_| clock == own).unwrap_or(clock))
}

/// What decides whether an entity is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PauseMark {
    Paused,
    PausedBy,
    Disabled,
    /// [`RunsWhilePaused`] or [`Pauses`].
    RunsWhilePaused,
}

/// The rule of a pause: it stops everything on its entity and on what this one owns, at any depth, except
/// for what [runs while it is paused](RunsWhilePaused).
///
/// The entity comes first, and then its owners. `has` says which marks each of them has.
#[inline]
pub(crate) fn stops<E: Copy>(
    mut with_owners: impl Iterator<Item = E>,
    has: impl Fn(E, PauseMark) -> bool,
) -> bool {
    let Some(entity) = with_owners.next() else {
        return false;
    };
    let runs_while_paused = has(entity, PauseMark::RunsWhilePaused);
    let stops = |it| {
        let is_paused = || has(it, PauseMark::Paused) || has(it, PauseMark::PausedBy);
        has(it, PauseMark::Disabled) || !runs_while_paused && is_paused()
    };
    has(entity, PauseMark::Paused) || stops(entity) || with_owners.any(stops)
}

/// Returns `true` if an entity or one of its owners pauses the timer and the callback on the entity.
pub(crate) fn is_paused(world: &World, entity: EntityRef) -> bool {
    stops(and_owners(world, entity), has)
}

/// Returns an entity and its owners.
fn and_owners<'w>(world: &'w World, entity: EntityRef<'w>) -> impl Iterator<Item = EntityRef<'w>> {
    with_owners(entity, |entity| {
        world.get_entity(entity.get::<OwnedBy>()?.0).ok()
    })
}

fn has(entity: EntityRef, mark: PauseMark) -> bool {
    match mark {
        PauseMark::Paused => entity.contains::<Paused>(),
        PauseMark::PausedBy => entity.contains::<PausedBy>(),
        PauseMark::Disabled => entity.contains::<Disabled>(),
        PauseMark::RunsWhilePaused => {
            entity.contains::<RunsWhilePaused>() || entity.contains::<Pauses>()
        }
    }
}

/// Pauses the timers of the entities on a list whose owner is paused: a scene inserts the list after both. What the
/// owner owns may wait although the owner itself runs while it is paused.
pub(super) fn follow_list(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    remove_if_empty::<Owned>(&mut world, entity);
    let marks = [PauseMark::Paused, PauseMark::PausedBy, PauseMark::Disabled];
    let may_wait = world.get_entity(entity).is_ok_and(|entity| {
        let is_stopped = |it| marks.iter().any(|&mark| has(it, mark));
        and_owners(&world, entity).any(is_stopped)
    });
    if may_wait {
        pause_or_resume(&mut world, entity);
    }
    // The list of a scene may arrive after the clock of its entity.
    if world.get::<Clock>(entity).is_some() || world.get::<OnClock>(entity).is_some() {
        for owned in owned_by(&world, entity) {
            follow_clock_later(&mut world, owned, false);
        }
    }
}

/// Lets the timers of an entity follow an owner that it gets or loses.
pub(super) fn follow_owner(world: &mut DeferredWorld, entity: Entity, is_owned: bool) {
    let follows = world.get_entity(entity).is_ok_and(|entity| {
        let mut timers = Kind::ALL.iter().filter_map(|kind| kind.on(entity));
        entity.contains::<Owned>() || timers.any(|timer| timer.seat.place().is_some())
    });
    if !follows {
        return;
    }
    let is_observed = is_observed(world, entity);
    change_armed(world, entity, |timer| {
        timer.set(Mark::Owned, is_owned);
        timer.set(Mark::Observed, is_observed);
    });
    match is_owned {
        true => {
            pause_or_resume(world, entity);
            follow_clock_later(world, entity, false);
        }
        // The owner that is being removed is still there.
        false => {
            let mut commands = world.commands();
            commands.queue(move |world: &mut World| pause_or_resume(&mut world.into(), entity));
            follow_clock_later(world, entity, true);
        }
    }
}

/// Notes the observers of an entity for its timer and for those that it owns.
pub(crate) fn follow_observers(world: &mut DeferredWorld, entity: Entity) {
    for entity in core::iter::once(entity).chain(owned_by(world, entity)) {
        change_armed(world, entity, |timer| timer.set(Mark::Observed, true));
    }
}

/// Pauses or resumes the timers of an entity and of everything that it owns.
pub(crate) fn pause_or_resume(world: &mut DeferredWorld, entity: Entity) {
    for entity in with_all_owned(world, entity) {
        for kind in Kind::ALL {
            update(world, entity, kind);
        }
    }
}

/// Pauses or resumes a timer, depending on its entity and its owners.
fn update(world: &mut DeferredWorld, entity: Entity, kind: Kind) -> Option<()> {
    let entity_ref = world.get_entity(entity).ok()?;
    let timer = kind.on(entity_ref)?;
    let place = timer.seat.place()?;
    let is_paused = is_paused(world, entity_ref);
    let queues = world.get_resource::<TimerQueues>()?;
    if queues.timer(place)?.is_paused() == is_paused {
        return None;
    }
    // The delay of a timer without a clock has not started.
    let reading = world.get_resource::<ClockTable>()?.reading(place.0);
    let now = reading.map_or(0, |reading| reading.now);
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.set_paused(place, is_paused, now);
    Some(())
}
