//! The events of timers: their contents, their targets, and how they become messages.

use alloc::{borrow::Cow, format, vec::Vec};
use core::{fmt, mem, ops::Deref, time::Duration};

use bevy_ecs::{event::EntityTrigger, message::Message, observer::CachedObservers, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};
use bevy_time::{Time, Virtual};

use super::{Keyed, insert_for, key::IntoKey, key::KeyId, queued::ArmedTimer};
use crate::{
    call::report,
    clock::{ClockId, PackedClockId, Reading, saturating_nanos},
};

/// Triggered when a timer fires.
///
/// The event reaches the observers of the timer's entity and global observers, once per firing.
/// Observers of the owner get an [`OwnedTimerFired`] instead. Timers fire one at a time, in exact
/// order. Each firing is also written as one buffered message, for systems that read everything
/// that fired in a frame. An observer may arm, re-arm, cancel or despawn anything, including the
/// timer that is firing.
///
/// Bevy keeps messages until a step of the fixed schedule has run. While the game is paused and no
/// step runs, the plugin keeps the messages of the last two frames and at most 65,536 earlier ones. Bevy's
/// error handler gets a warning with the number of the messages that are dropped.
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
#[derive(EntityEvent, Message, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Clone, Debug, PartialEq)
)]
pub struct TimerFired {
    entity: Entity,
    owner: Entity,
    clock: PackedClockId,
    /// As the clock shows it, in nanoseconds.
    deadline: u64,
    lateness: u64,
    /// The number of firings: the low part.
    count: u32,
    /// The number of firings: the high part.
    count_high: u16,
    /// The number of missed deadlines: the high part.
    missed_high: u16,
    /// The number of missed deadlines: the low part.
    missed: u32,
    /// Twice the number of the key, plus one for the last firing.
    key_and_last: u32,
}

impl TimerFired {
    /// Creates the event of a one-shot timer on `entity`, to test a handler.
    ///
    /// The timer has no owner and no key, and is on [`ClockId::Virtual`]. The deadline, the
    /// lateness and the missed count are zero. The `with_*` methods change the values.
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
            clock: ClockId::Virtual.into(),
            deadline: 0,
            lateness: 0,
            count: 1,
            count_high: 0,
            missed_high: 0,
            missed: 0,
            key_and_last: 1,
        }
    }

    /// Sets the owner.
    #[must_use]
    pub fn with_owner(mut self, owner: Entity) -> Self {
        self.owner = owner;
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: impl IntoKey) -> Self {
        self.set_key(Some(Keyed::new(key).id()));
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Into<ClockId>) -> Self {
        self.clock = clock.into().into();
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = saturating_nanos(deadline);
        self
    }

    /// Sets the lateness.
    #[must_use]
    pub fn with_lateness(mut self, lateness: Duration) -> Self {
        self.lateness = saturating_nanos(lateness);
        self
    }

    /// Sets the number of missed deadlines.
    #[must_use]
    pub fn with_missed(mut self, missed: u64) -> Self {
        (self.missed, self.missed_high) = halves(missed);
        self
    }

    /// Sets the number of firings.
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        (self.count, self.count_high) = halves(count);
        self
    }

    /// Sets whether this is the last firing.
    #[must_use]
    pub fn with_last(mut self, is_last: bool) -> Self {
        self.key_and_last = self.key_and_last & !1 | u32::from(is_last);
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

    /// Returns the name of the timer's [key](crate::timer::Keyed), if it has one.
    ///
    /// A name that comes from data is forgotten some time after the last timer with it is gone.
    #[must_use]
    pub fn key(&self) -> Option<Cow<'static, str>> {
        self.key_id()?.name()
    }

    fn key_id(&self) -> Option<KeyId> {
        KeyId::from_number(self.key_and_last >> 1)
    }

    /// Returns `true` if the timer has this [key](crate::timer::Keyed).
    #[must_use]
    pub fn has_key(&self, key: impl IntoKey) -> bool {
        self.key_id()
            .is_some_and(|own| Some(own) == KeyId::find(&key.name()))
    }

    /// Returns the clock of the timer.
    #[must_use]
    pub fn clock(&self) -> ClockId {
        self.clock.into()
    }

    /// Returns the deadline, as the timer's clock shows it.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::from_nanos(self.deadline)
    }

    /// Returns the time from the deadline to this run, on the timer's clock.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        Duration::from_nanos(self.lateness)
    }

    /// Returns the number of later deadlines, up to and including now, that will not fire, at most
    /// 2^48 - 1.
    ///
    /// In a burst, this is zero unless the firing reaches the
    /// [limit](crate::DuePlugin::burst_limit).
    #[must_use]
    pub fn missed(&self) -> u64 {
        whole(self.missed, self.missed_high)
    }

    /// Returns the number of firings since the timer was armed, including this one.
    #[must_use]
    pub fn count(&self) -> u64 {
        whole(self.count, self.count_high)
    }

    /// Returns `true` if this is the last firing.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.key_and_last & 1 == 1
    }

    /// Returns the event of a firing that skips no deadline and is not the last.
    #[inline]
    pub(super) fn of(
        timer: &ArmedTimer,
        (clock, reading): (PackedClockId, &Reading),
        deadline: u64,
    ) -> Self {
        let (count, count_high) = timer.count_halves();
        Self {
            entity: timer.entity,
            owner: timer.entity,
            clock,
            deadline: reading.shown_nanos(deadline),
            lateness: reading.now - deadline,
            count,
            count_high,
            missed_high: 0,
            missed: 0,
            key_and_last: 0,
        }
    }

    /// Sets the owner and the key of an owned timer.
    pub(super) fn set_owned(&mut self, owner: Entity, key: Option<KeyId>) {
        self.owner = owner;
        self.set_key(key);
    }

    fn set_key(&mut self, key: Option<KeyId>) {
        let key = key.map_or(0, KeyId::number);
        self.key_and_last = key << 1 | self.key_and_last & 1;
    }

    /// Triggers the event for the timer's entity, then for its owner.
    pub(super) fn trigger(&mut self, world: &mut World) {
        // An observer may despawn the entity.
        let is_announced =
            self.owner != self.entity && world.get::<CrateTimer>(self.entity).is_none();
        world.trigger_ref_with(self, &mut EntityTrigger);
        world.flush();
        if is_announced && is_observed::<OwnedTimerFired>(world, self.owner) {
            world.trigger(OwnedTimerFired::new(*self));
            world.flush();
        }
    }
}

/// Splits a number into the low 32 and the next 16 bits. A larger number saturates.
fn halves(number: u64) -> (u32, u16) {
    match u16::try_from(number >> 32) {
        Ok(high) => (number as u32, high),
        Err(_) => (u32::MAX, u16::MAX),
    }
}

fn whole(low: u32, high: u16) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl fmt::Debug for TimerFired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerFired")
            .field("entity", &self.entity)
            .field("owner", &self.owner)
            .field("key", &self.key())
            .field("clock", &self.clock)
            .field("deadline", &self.deadline())
            .field("lateness", &self.lateness())
            .field("missed", &self.missed())
            .field("count", &self.count())
            .field("is_last", &self.is_last())
            .finish()
    }
}

/// Triggered on the owner when one of its [owned](crate::OwnedBy) timers fires.
///
/// It has the methods of the [`TimerFired`], which is triggered first, for the timer's entity:
/// [`entity`](TimerFired::entity) is the timer's, and [`owner`](TimerFired::owner) is the observed
/// one. An observer of [`TimerFired`] on the owner sees only the owner's own timer.
///
/// The event is not triggered for timers that the crate itself arms: those of delayed commands,
/// request time-outs and [`insert_for`](crate::DueEntityCommandsExt::insert_for).
///
/// # Examples
///
/// ```
/// use bevy_due::{OwnedTimerFired, Timer, TimerKey, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Burning;
///
/// impl TimerKey for Burning {
///     const NAME: &'static str = "burning";
/// }
///
/// #[derive(Component)]
/// struct Health(u32);
///
/// fn spawn_monster(mut commands: Commands) {
///     // Observed once, for all timers of the monster.
///     commands.spawn(Health(20)).observe(suffer);
/// }
///
/// fn suffer(fired: On<OwnedTimerFired>, mut health: Query<&mut Health>) -> Result {
///     if fired.has_key(Burning) {
///         health.get_mut(fired.owner())?.0 -= 1;
///     }
///     Ok(())
/// }
///
/// fn set_on_fire(monster: Entity, mut commands: Commands) {
///     commands.entity(monster).set_timer(Burning, Timer::every(0.5).times(6));
/// }
/// # let _ = set_on_fire;
/// # bevy_ecs::system::assert_is_system(spawn_monster);
/// ```
#[derive(EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedTimerFired {
    #[event_target]
    owner: Entity,
    fired: TimerFired,
}

impl OwnedTimerFired {
    /// Creates the event for the owner of `fired`, to test a handler.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{OwnedTimerFired, TimerFired};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Health(u32);
    ///
    /// fn suffer(fired: On<OwnedTimerFired>, mut health: Query<&mut Health>) -> Result {
    ///     health.get_mut(fired.owner())?.0 -= 1;
    ///     Ok(())
    /// }
    ///
    /// let mut world = World::new();
    /// let monster = world.spawn(Health(10)).observe(suffer).id();
    /// let burning = world.spawn_empty().id();
    /// world.trigger(OwnedTimerFired::new(TimerFired::new(burning).with_owner(monster)));
    /// assert_eq!(world.get::<Health>(monster).unwrap().0, 9);
    /// ```
    #[must_use]
    pub fn new(fired: TimerFired) -> Self {
        Self {
            owner: fired.owner,
            fired,
        }
    }
}

impl Deref for OwnedTimerFired {
    type Target = TimerFired;

    fn deref(&self) -> &TimerFired {
        &self.fired
    }
}

/// Triggered when a timer is cancelled before its last firing.
///
/// The event reaches the observers of the timer's entity and global observers. Observers of the
/// owner get an [`OwnedTimerCancelled`] instead. Each cancellation is also written as a buffered
/// message in the next run.
///
/// The calls of this crate that cancel timers trigger the event before they remove anything, so
/// observers still find the timer's components. After a plain removal or despawn, the event is
/// triggered when the operation is done. Observers of a despawned entity still get it, but its
/// components are gone.
///
/// Timers that the crate itself arms also report their cancellation. For example, a request that is
/// answered in time cancels its time-out.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{CancelReason, Timer, TimerCancelled, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// #[derive(Component)]
/// struct CastBar(&'static str);
///
/// #[derive(Resource, Default)]
/// struct Log(Vec<String>);
///
/// fn interrupted(cancelled: On<TimerCancelled>, bars: Query<&CastBar>, mut log: ResMut<Log>) {
///     if let Ok(bar) = bars.get(cancelled.entity()) {
///         log.0.push(format!("{} is interrupted", bar.0));
///     }
/// }
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .init_resource::<Log>()
///     .add_observer(interrupted);
/// let mut commands = app.world_mut().commands();
/// let mut boss = commands.spawn_empty();
/// boss.set_timer("cast", (Timer::after(2.5), CastBar("Meteor")));
/// boss.cancel_timer("cast");
/// app.world_mut().flush();
/// assert_eq!(app.world().resource::<Log>().0, ["Meteor is interrupted"]);
/// ```
#[derive(EntityEvent, Message, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Clone, Debug, PartialEq)
)]
pub struct TimerCancelled {
    pub(super) entity: Entity,
    pub(super) owner: Entity,
    pub(super) clock: PackedClockId,
    pub(super) key: Option<KeyId>,
    pub(super) reason: CancelReason,
    /// Whether the owner is notified.
    pub(super) is_announced: bool,
}

impl TimerCancelled {
    /// Creates the event of a cancelled timer on `entity`, to test a handler.
    ///
    /// The timer has no owner and no key, and is on [`ClockId::Virtual`]. The `with_*` methods
    /// change the values.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{CancelReason, TimerCancelled};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Mana(u32);
    ///
    /// fn refund(cancelled: On<TimerCancelled>, mut mana: Query<&mut Mana>) -> Result {
    ///     if cancelled.has_key("cast") && cancelled.reason() == CancelReason::Cancelled {
    ///         mana.get_mut(cancelled.owner())?.0 += 20;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let mut world = World::new();
    /// world.add_observer(refund);
    /// let mage = world.spawn(Mana(0)).id();
    /// let cast = world.spawn_empty().id();
    /// let cancelled = TimerCancelled::new(cast, CancelReason::Cancelled);
    /// world.trigger(cancelled.with_owner(mage).with_key("cast"));
    /// assert_eq!(world.get::<Mana>(mage).unwrap().0, 20);
    /// ```
    #[must_use]
    pub fn new(entity: Entity, reason: CancelReason) -> Self {
        Self {
            entity,
            owner: entity,
            clock: ClockId::Virtual.into(),
            key: None,
            reason,
            is_announced: true,
        }
    }

    /// Sets the owner.
    #[must_use]
    pub fn with_owner(mut self, owner: Entity) -> Self {
        self.owner = owner;
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: impl IntoKey) -> Self {
        self.key = Some(Keyed::new(key).id());
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Into<ClockId>) -> Self {
        self.clock = clock.into().into();
        self
    }

    /// Returns the entity that carried the [`Timer`](crate::Timer). It may have despawned.
    #[must_use]
    pub fn entity(&self) -> Entity {
        self.entity
    }

    /// Returns the [owner](crate::OwnedBy) of the timer, or its own entity if it has none. It may
    /// have despawned.
    #[must_use]
    pub fn owner(&self) -> Entity {
        self.owner
    }

    /// Returns the name of the timer's [key](crate::timer::Keyed), if it has one.
    ///
    /// A name that comes from data is forgotten some time after the last timer with it is gone.
    #[must_use]
    pub fn key(&self) -> Option<Cow<'static, str>> {
        self.key?.name()
    }

    /// Returns `true` if the timer has this [key](crate::timer::Keyed).
    #[must_use]
    pub fn has_key(&self, key: impl IntoKey) -> bool {
        self.key
            .is_some_and(|own| Some(own) == KeyId::find(&key.name()))
    }

    /// Returns the clock of the timer. It may be gone.
    #[must_use]
    pub fn clock(&self) -> ClockId {
        self.clock.into()
    }

    /// Returns the cause.
    #[must_use]
    pub fn reason(&self) -> CancelReason {
        self.reason
    }

    /// Returns `true` if the event has an observer.
    pub(super) fn is_observed(&self, world: &World) -> bool {
        is_observed::<Self>(world, self.entity) || self.is_observed_by_owner(world)
    }

    fn is_observed_by_owner(&self, world: &World) -> bool {
        self.is_announced
            && self.owner != self.entity
            && is_observed::<OwnedTimerCancelled>(world, self.owner)
    }

    /// Triggers the event for the timer's entity, then for its owner.
    pub(super) fn trigger(self, world: &mut World) {
        world.trigger(self);
        world.flush();
        if self.is_observed_by_owner(world) {
            world.trigger(OwnedTimerCancelled::new(self));
            world.flush();
        }
    }
}

impl fmt::Debug for TimerCancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerCancelled")
            .field("entity", &self.entity)
            .field("owner", &self.owner)
            .field("key", &self.key())
            .field("clock", &self.clock)
            .field("reason", &self.reason)
            .finish()
    }
}

/// Triggered on the owner when one of its [owned](crate::OwnedBy) timers is cancelled.
///
/// It has the methods of the [`TimerCancelled`], which is triggered first, for the timer's
/// entity. The event is not triggered for timers that the crate itself arms.
///
/// A handler that sets another timer under the same key must ignore [`CancelReason::Replaced`].
/// Otherwise the two timers replace each other forever.
#[derive(EntityEvent, Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedTimerCancelled {
    #[event_target]
    owner: Entity,
    cancelled: TimerCancelled,
}

impl OwnedTimerCancelled {
    /// Creates the event for the owner of `cancelled`, to test a handler.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{CancelReason, OwnedTimerCancelled, TimerCancelled};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Casting;
    ///
    /// fn stop(cancelled: On<OwnedTimerCancelled>, mut commands: Commands) {
    ///     commands.entity(cancelled.owner()).remove::<Casting>();
    /// }
    ///
    /// let mut world = World::new();
    /// let mage = world.spawn(Casting).observe(stop).id();
    /// let cast = world.spawn_empty().id();
    /// let cancelled = TimerCancelled::new(cast, CancelReason::Removed).with_owner(mage);
    /// world.trigger(OwnedTimerCancelled::new(cancelled));
    /// world.flush();
    /// assert!(!world.entity(mage).contains::<Casting>());
    /// ```
    #[must_use]
    pub fn new(cancelled: TimerCancelled) -> Self {
        Self {
            owner: cancelled.owner,
            cancelled,
        }
    }
}

impl Deref for OwnedTimerCancelled {
    type Target = TimerCancelled;

    fn deref(&self) -> &TimerCancelled {
        &self.cancelled
    }
}

/// The reason why a timer was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Clone, Debug, PartialEq, Hash)
)]
#[non_exhaustive]
pub enum CancelReason {
    /// A call of this crate cancelled it, such as
    /// [`cancel_timer`](crate::DueEntityCommandsExt::cancel_timer).
    Cancelled,
    /// The [`Timer`](crate::Timer) was removed from its entity.
    Removed,
    /// Another [`Timer`](crate::Timer) was inserted in its place, or its owner got another timer
    /// with the same [key](crate::timer::Keyed).
    Replaced,
    /// Its entity despawned.
    Despawned,
    /// Its owner despawned, and the timer with it.
    OwnerGone,
    /// Its clock was removed or despawned, or did not exist when the timer was armed.
    ClockGone,
}

/// A timer that the crate itself arms for a feature. Its owner is not told of its events.
#[derive(Component, Clone, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = insert_for::on_insert, on_remove = insert_for::on_remove)]
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
pub(crate) enum CrateTimer {
    /// Commands that run later.
    Commands,
    /// The time-out of a request.
    Request,
    /// The time of a component on the owner. The key is the type name of the component, and also the
    /// key of the timer.
    InsertFor(Keyed),
    /// The time of a component that was removed early.
    Over,
}

impl CrateTimer {
    /// Returns `true` if a call that cancels all timers of the owner leaves the timer alone.
    pub(super) fn survives_cancel_all(&self) -> bool {
        !matches!(self, Self::Commands)
    }
}

/// Cancellations in the order in which they happened, to be written as messages in the next run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellations {
    pending: Vec<TimerCancelled>,
    /// The cancellations written in the last run, which observers may not have seen yet.
    written: Vec<TimerCancelled>,
    /// The number of the first pending cancellation.
    first_pending: u64,
}

impl Cancellations {
    /// Adds a cancellation, and returns its number.
    pub(super) fn push(&mut self, cancelled: TimerCancelled) -> u64 {
        self.pending.push(cancelled);
        self.first_pending + self.pending.len() as u64 - 1
    }

    /// Returns the cancellation with this number, unless it was written before the last run.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut TimerCancelled> {
        let written = self.written.len() as u64;
        let index = (number + written).checked_sub(self.first_pending)?;
        match index.checked_sub(written) {
            Some(index) => self.pending.get_mut(usize::try_from(index).ok()?),
            None => self.written.get_mut(usize::try_from(index).ok()?),
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TimerCancelled> {
        self.written.iter_mut().chain(&mut self.pending)
    }

    /// Returns the number of cancellations that have not been written.
    pub(super) fn len(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Writes all cancellations.
    pub(super) fn write(&mut self, messages: &mut Messages<TimerCancelled>) {
        self.first_pending += self.len();
        self.written.clear();
        mem::swap(&mut self.pending, &mut self.written);
        messages.write_batch(self.written.iter().copied());
    }
}

/// Returns `true` if `E` has an observer on `entity`, or a global one.
pub(super) fn is_observed<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}

/// Returns `true` if `E` has any observer.
pub(super) fn is_observed_at_all<E: EntityEvent>(world: &World) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty() || !observers.entity_observers().is_empty()
    })
}

fn observers<E: EntityEvent>(world: &World) -> Option<&CachedObservers> {
    world.observers().try_get_observers(world.event_key::<E>()?)
}

/// The number of messages of a type that are kept while the game is paused.
const KEPT: usize = 1 << 16;

/// Drops old messages if the game is paused and there are too many, and reports their number.
///
/// Bevy keeps all messages until a fixed step runs, so that systems in the fixed schedule don't miss
/// any. While the game is paused, timers of real time would fill the memory.
pub(crate) fn limit_backlog(world: &mut World) {
    let is_paused = |time: &Time<Virtual>| time.is_paused() || time.relative_speed_f64() == 0.0;
    if !world.get_resource().is_some_and(is_paused) {
        return;
    }
    let dropped = drop_old::<TimerFired>(world) + drop_old::<TimerCancelled>(world);
    if dropped > 0 {
        let error = format!(
            "{dropped} messages of timers were dropped, because more than {KEPT} wait while the game \
             is paused: read them in each frame, use an observer, or pause these timers, too"
        );
        report::<TimerFired>(world, BevyError::warning(error));
    }
}

/// Drops all messages but those of the last frame if there are too many, and returns their number.
fn drop_old<M: Message>(world: &mut World) -> usize {
    let messages = world.get_resource_mut::<Messages<M>>();
    let Some(mut messages) = messages.filter(|messages| messages.len() > KEPT) else {
        return 0;
    };
    let before = messages.len();
    messages.update();
    before - messages.len()
}

/// Creates a span with the name, the key, the entity and the owner of a timer that fires. Its name is its
/// `Name`, its key, or its entity.
#[cfg(feature = "trace")]
pub(super) fn span(world: &World, fired: &TimerFired) -> tracing::Span {
    let (entity, owner, key) = (fired.entity(), fired.owner(), fired.key());
    let name = world.get::<Name>(entity).map(Name::as_str);
    let name = name.or(key.as_deref()).map(Cow::Borrowed);
    tracing::info_span!(
        "timer",
        name = %name.unwrap_or_else(|| alloc::format!("{entity}").into()),
        key = key.as_deref(),
        %entity,
        owner = (owner != entity).then(|| tracing::field::display(owner)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firing_takes_56_bytes_and_keeps_every_value() {
        assert!(size_of::<TimerFired>() <= 56);
        let entity = World::new().spawn_empty().id();
        let fired = TimerFired::new(entity)
            .with_count(1 << 40)
            .with_missed((1 << 48) - 1)
            .with_last(false)
            .with_key("key of a firing");
        assert_eq!(fired.count(), 1 << 40);
        assert_eq!(fired.missed(), (1 << 48) - 1);
        assert_eq!(fired.key().as_deref(), Some("key of a firing"));
        assert!(!fired.is_last() && fired.with_last(true).is_last());
        assert_eq!(fired.with_missed(u64::MAX).missed(), (1 << 48) - 1);
    }
}
