//! The events of timers: fired and cancelled.

use core::time::Duration;

use bevy_ecs::{
    event::{PropagateEntityTrigger, SetEntityEventTarget},
    observer::CachedObservers,
    prelude::*,
    traversal::Traversal,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::ArmedTimer;
use crate::clock::Reading;

/// Triggered when a timer fires.
///
/// The event reaches observers of the timer's entity, observers of its owner, and global observers.
/// Timers fire one at a time, in exact order. Each firing is also written as a buffered message,
/// for systems that read everything that fired in a frame. An observer may arm, re-arm, cancel or
/// despawn anything, including the timer that is firing.
///
/// The event propagates along [`OwnedBy`](crate::OwnedBy) to the owner, if the owner has an
/// observer. Call `fired.propagate(false)` to stop the propagation. As with every event that
/// propagates, global observers run at each step. Compare `fired.event_target()` with
/// [`entity`](Self::entity) where that matters.
///
/// The timers that the crate itself arms do not propagate: lifetimes, delayed commands and request
/// time-outs. Global observers and readers of the buffered message still see them.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
///
/// fn explode(fired: On<TimerFired>, mut commands: Commands) {
///     commands.entity(fired.entity()).despawn();
/// }
///
/// fn count(mut fired: MessageReader<TimerFired>) {
///     let late = fired.read().filter(|fired| fired.lateness().as_millis() > 100).count();
///     if late > 0 {
///         println!("{late} timers fired more than a tenth of a second late");
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
    entity: Entity,
    owner: Entity,
    deadline: Duration,
    lateness: Duration,
    missed: u64,
    count: u64,
    is_last: bool,
    /// Whether the event has propagated to the owner.
    at_owner: bool,
}

impl TimerFired {
    /// Creates the event of a one-shot timer on `entity`, to test a handler.
    ///
    /// The deadline, the lateness and the missed count are zero. The `with_*` methods change the
    /// values.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::TimerFired;
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Health(u32);
    ///
    /// fn bleed(fired: On<TimerFired>, mut health: Query<&mut Health>) {
    ///     if let Ok(mut health) = health.get_mut(fired.entity()) {
    ///         health.0 -= 1;
    ///     }
    /// }
    ///
    /// let mut world = World::new();
    /// world.add_observer(bleed);
    /// let victim = world.spawn(Health(10)).id();
    /// world.trigger(TimerFired::new(victim).with_count(3).with_last(false));
    /// assert_eq!(world.get::<Health>(victim).unwrap().0, 9);
    /// ```
    #[must_use]
    pub fn new(entity: Entity) -> Self {
        Self {
            entity,
            owner: entity,
            deadline: Duration::ZERO,
            lateness: Duration::ZERO,
            missed: 0,
            count: 1,
            is_last: true,
            at_owner: false,
        }
    }

    /// Sets the owner. By default, the event does not reach the observers of any owner.
    #[must_use]
    pub fn with_owner(mut self, owner: Entity) -> Self {
        self.owner = owner;
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the lateness.
    #[must_use]
    pub fn with_lateness(mut self, lateness: Duration) -> Self {
        self.lateness = lateness;
        self
    }

    /// Sets the number of missed deadlines.
    #[must_use]
    pub fn with_missed(mut self, missed: u64) -> Self {
        self.missed = missed;
        self
    }

    /// Sets the number of firings.
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// Sets whether this is the last firing.
    #[must_use]
    pub fn with_last(mut self, is_last: bool) -> Self {
        self.is_last = is_last;
        self
    }

    /// Returns the entity that carries the [`Timer`](crate::Timer).
    #[must_use]
    pub fn entity(&self) -> Entity {
        self.entity
    }

    /// Returns the [owner](crate::OwnedBy) of the timer, or its own entity if it has none.
    #[must_use]
    pub fn owner(&self) -> Entity {
        self.owner
    }

    /// Returns the deadline, as the timer's clock shows it.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the time from the deadline to this run, on the timer's clock.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.lateness
    }

    /// Returns the number of later deadlines, up to and including now, that will not fire.
    ///
    /// In a burst, this is zero unless the firing reaches the
    /// [limit](crate::DuePlugin::burst_limit).
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the number of firings since the timer was armed, including this one.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns `true` if this is the last firing.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    pub(super) fn of(
        timer: &ArmedTimer,
        clock: &Reading,
        deadline: u64,
        missed: u64,
        is_last: bool,
    ) -> Self {
        Self {
            entity: timer.entity,
            owner: timer.owner,
            deadline: clock.shown(deadline),
            lateness: Duration::from_nanos(clock.now - deadline),
            missed,
            count: timer.count(),
            is_last,
            at_owner: false,
        }
    }

    /// Triggers the event, and lets it propagate only if the owner has an observer.
    pub(crate) fn trigger(&mut self, world: &mut World) {
        let mut trigger = PropagateEntityTrigger::default();
        trigger.propagate = self.owner != self.entity
            && is_observed_on::<Self>(world, self.owner)
            && world.get::<Unannounced>(self.entity).is_none();
        world.trigger_ref_with(self, &mut trigger);
        self.at_owner = false;
    }
}

/// Marks a timer whose firings do not propagate to its owner, because it serves another feature.
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

/// Propagates from the timer to its owner, and no further.
impl Traversal<TimerFired> for Entity {
    fn traverse(entity: Entity, fired: &TimerFired) -> Option<Entity> {
        (fired.owner != entity).then_some(fired.owner)
    }
}

/// Triggered when a timer is cancelled before its last firing.
///
/// The event reaches observers of the timer's entity and global observers, once the operation that
/// cancelled the timer is done. Observers of a despawned entity still see the event. Each
/// cancellation is also written as a buffered message in the next run.
///
/// Unlike [`TimerFired`], it does not propagate to the owner. Timers that the crate itself arms
/// also report their cancellation. For example, a request that is answered in time cancels its
/// time-out.
///
/// A despawned entity has no components left to look up. If its observer needs them, capture them
/// when you add the observer.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{CancelReason, Timer, TimerCancelled, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Resource, Default)]
/// struct Interrupted(Option<CancelReason>);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default())).init_resource::<Interrupted>();
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
    /// The entity that carried the [`Timer`](crate::Timer). It may have despawned.
    pub entity: Entity,
    /// The owner of the timer, or its own entity if it has none. It may have despawned.
    pub owner: Entity,
    /// The cause.
    pub reason: CancelReason,
}

/// The reason why a timer was cancelled.
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
    /// Another [`Timer`](crate::Timer) was inserted in its place, or its owner got another timer
    /// with the same [key](crate::Keyed).
    Replaced,
    /// Its entity despawned.
    Despawned,
    /// Its owner despawned, and the timer with it.
    OwnerGone,
    /// Its clock was removed or despawned, or did not exist when the timer was armed.
    ClockGone,
}

/// Returns `true` if `E` has an observer on `entity`, or a global one.
pub(crate) fn is_observed<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}

/// Returns `true` if `E` has an observer on `entity`.
fn is_observed_on<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world)
        .is_some_and(|observers| observers.entity_observers().contains_key(&entity))
}

/// Returns `true` if `E` has any observer.
pub(crate) fn is_observed_at_all<E: EntityEvent>(world: &World) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty() || !observers.entity_observers().is_empty()
    })
}

fn observers<E: EntityEvent>(world: &World) -> Option<&CachedObservers> {
    world.observers().try_get_observers(world.event_key::<E>()?)
}
