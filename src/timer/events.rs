//! What the world is told: that a timer fired, or that it never will.

use core::time::Duration;

use bevy_ecs::{
    component::Component,
    entity::Entity,
    event::{EntityEvent, Event, PropagateEntityTrigger, SetEntityEventTarget},
    message::Message,
    observer::CachedObservers,
    traversal::Traversal,
    world::World,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::ArmedTimer;
use crate::clock::Reading;

/// A timer has fired.
///
/// It is triggered for observers of the timer's entity, of its owner and for global observers, one
/// timer at a time in exact order, and written as a buffered message for systems that want all that
/// fired in this frame. Whoever observes it may do anything: arm, re-arm, cancel and despawn, also
/// the very timer that is firing.
///
/// It reaches the owner by Bevy's event propagation along [`TimerOf`](crate::TimerOf), if anybody
/// observes it there (but those of [`DespawnAfter`](crate::DespawnAfter) and of delayed commands); `fired.propagate(false)` ends that. As with every event that propagates,
/// global observers run at each step: where that matters, they compare `fired.event_target()` with
/// [`entity`](Self::entity).
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
///
/// fn explode(fired: On<TimerFired>, mut commands: Commands) {
///     commands.entity(fired.entity).despawn();
/// }
///
/// fn count(mut fired: MessageReader<TimerFired>) {
///     let late = fired.read().filter(|fired| fired.lateness.as_millis() > 100).count();
///     if late > 0 {
///         println!("{late} timers fired late by more than a tenth of a second");
///     }
/// }
/// # bevy_ecs::system::assert_is_system(count);
/// # World::new().add_observer(explode);
/// ```
#[derive(Message, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, PartialEq)
)]
pub struct TimerFired {
    /// The entity that carries the [`Timer`](crate::Timer).
    pub entity: Entity,
    /// The entity that the timer belongs to: see [`TimerOf`](crate::TimerOf). Without an owner
    /// of its own, the entity itself.
    pub owner: Entity,
    /// When it was due, on its clock.
    pub deadline: Duration,
    /// How long ago that was when the clock was read for this run.
    pub lateness: Duration,
    /// How many deadlines passed, up to and including now, that will have no firing of their
    /// own: zero but for the firing that ends a burst at the [`BurstLimit`](crate::BurstLimit).
    pub missed: u64,
    /// How often the timer has fired since it was armed, this time included.
    pub count: u64,
    /// Whether this was its last time.
    pub last: bool,
    /// Whether observers of the owner are being told.
    at_owner: bool,
}

impl TimerFired {
    pub(super) fn new(
        timer: &ArmedTimer,
        clock: Reading,
        deadline: u64,
        missed: u64,
        last: bool,
    ) -> Self {
        Self {
            entity: timer.entity,
            owner: timer.owner,
            deadline: clock.shown(deadline),
            lateness: Duration::from_nanos(clock.now - deadline),
            missed,
            count: timer.count(),
            last,
            at_owner: false,
        }
    }

    /// Tells the observers: everywhere, on the timer's entity, and, if there are any, on its owner.
    pub(crate) fn trigger(self, world: &mut World) {
        let mut trigger = PropagateEntityTrigger::default();
        trigger.propagate = self.owner != self.entity
            && is_observed_on::<Self>(world, self.owner)
            && world.get::<Unannounced>(self.entity).is_none();
        world.trigger_with(self, trigger);
    }
}

/// The timer is a means to an end that its owner's observers did not ask for.
#[derive(Component)]
pub(crate) struct Unannounced;

impl Event for TimerFired {
    type Trigger<'a> = PropagateEntityTrigger<true, Self, Entity>;
}

impl EntityEvent for TimerFired {
    fn event_target(&self) -> Entity {
        if self.at_owner {
            self.owner
        } else {
            self.entity
        }
    }
}

impl SetEntityEventTarget for TimerFired {
    fn set_event_target(&mut self, entity: Entity) {
        self.at_owner = entity != self.entity;
    }
}

/// From the timer to its owner, and no further.
impl Traversal<TimerFired> for Entity {
    fn traverse(entity: Entity, fired: &TimerFired) -> Option<Entity> {
        (fired.owner != entity).then_some(fired.owner)
    }
}

/// A timer was cancelled before its last firing.
///
/// It is triggered for observers of the timer's entity, also when that has just been despawned,
/// and for global observers; and written as a buffered message in the next run of
/// [`DueSystems::Swap`](crate::DueSystems::Swap).
///
/// A despawned entity has no components left to say what the timer was for. Where that matters,
/// observe the entity, and let the observer capture what it needs to know.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Resource, Default)]
/// struct Interrupted(Option<CancelReason>);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin)).init_resource::<Interrupted>();
/// let cast = app
///     .world_mut()
///     .spawn(Timer::after_secs(2.5))
///     .observe(|cancelled: On<TimerCancelled>, mut interrupted: ResMut<Interrupted>| {
///         interrupted.0 = Some(cancelled.reason);
///     })
///     .id();
///
/// app.world_mut().entity_mut(cast).remove::<Timer>();
/// assert_eq!(app.world().resource::<Interrupted>().0, Some(CancelReason::Removed));
/// ```
#[derive(EntityEvent, Message, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, PartialEq)
)]
pub struct TimerCancelled {
    /// The entity that carried the [`Timer`](crate::Timer). It may be despawned.
    pub entity: Entity,
    /// The entity that the timer belonged to, as in [`TimerFired::owner`]. It may be despawned.
    pub owner: Entity,
    /// What was done to the timer.
    pub reason: CancelReason,
}

/// Why a timer was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, PartialEq, Hash)
)]
#[non_exhaustive]
pub enum CancelReason {
    /// The [`Timer`](crate::Timer) was removed from its entity.
    Removed,
    /// Another [`Timer`](crate::Timer) was inserted in its place, or another timer of its
    /// [key](crate::Keyed) was given to its owner.
    Replaced,
    /// Its entity was despawned.
    Despawned,
    /// Its owner was despawned, and the timer with it.
    OwnerGone,
    /// Its clock was despawned, or was not there when the timer was armed.
    ClockGone,
}

/// Whether anybody observes `E` on `entity`, or everywhere.
pub(crate) fn is_observed<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}

/// Whether anybody observes `E` on `entity`.
fn is_observed_on<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world)
        .is_some_and(|observers| observers.entity_observers().contains_key(&entity))
}

/// Whether anybody observes `E` anywhere.
pub(crate) fn is_observed_at_all<E: EntityEvent>(world: &World) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty() || !observers.entity_observers().is_empty()
    })
}

fn observers<E: EntityEvent>(world: &World) -> Option<&CachedObservers> {
    world.observers().try_get_observers(world.event_key::<E>()?)
}
