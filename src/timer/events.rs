//! A firing: its event, for the observers of the timer and of its owner, and its message.

use alloc::{borrow::Cow, format};
use core::{fmt, ops::Deref, time::Duration};

use bevy_ecs::{event::EntityTrigger, message::Message, observer::CachedObservers, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{CrateTimer, IntoKey, Keyed, TimerCancelled, key::KeyId, queued::ArmedTimer};
use crate::{
    clock::{ClockId, PackedClockId, Reading, is_game_stopped_in, saturating_nanos},
    report::report,
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
        let own = self.key_id();
        own.is_some() && own == KeyId::find(&key.name())
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
        (owner, key): (Entity, Option<KeyId>),
        (clock, reading): (PackedClockId, &Reading),
        deadline: u64,
    ) -> Self {
        let (count, count_high) = timer.count_halves();
        Self {
            entity: timer.entity,
            owner,
            clock,
            deadline: reading.shown_nanos(deadline),
            lateness: reading.now - deadline,
            count,
            count_high,
            missed_high: 0,
            missed: 0,
            key_and_last: key.map_or(0, KeyId::number) << 1,
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

    /// Runs the observers of the timer, of its owner, and global ones.
    pub(super) fn trigger(&self, world: &mut World) {
        // An observer may despawn the entity.
        let is_announced =
            self.owner != self.entity && world.get::<CrateTimer>(self.entity).is_none();
        // An observer can write to its event, which changes nothing for others.
        world.trigger_ref_with(&mut self.clone(), &mut EntityTrigger);
        world.flush();
        if is_announced && is_observed::<OwnedTimerFired>(world, self.owner) {
            world.trigger(OwnedTimerFired::new(*self));
            world.flush();
        }
    }
}

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
/// The event is not triggered for timers that the crate itself arms: those of delayed commands and of
/// [`insert_for`](crate::DueEntityCommandsExt::insert_for).
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

/// Returns `true` if `E` has an observer on `entity`, or a global one.
#[inline]
pub(super) fn is_observed<E: EntityEvent>(world: &World, entity: Entity) -> bool {
    observers::<E>(world).is_some_and(|observers| {
        !observers.global_observers().is_empty()
            || observers.entity_observers().contains_key(&entity)
    })
}

/// Who observes firings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Observed {
    Nobody,
    /// Observers on entities: only firings of timers with [`Mark::Observed`](super::queued::Mark::Observed).
    OnEntities,
    /// Also global observers.
    Everywhere,
}

impl Observed {
    pub(super) fn of(world: &World) -> Self {
        let [timers, owned] = [
            observers::<TimerFired>(world),
            observers::<OwnedTimerFired>(world),
        ];
        let all = || [timers, owned].into_iter().flatten();
        if all().any(|it| !it.global_observers().is_empty()) {
            Self::Everywhere
        } else if all().any(|it| !it.entity_observers().is_empty()) {
            Self::OnEntities
        } else {
            Self::Nobody
        }
    }

    /// Returns `true` if a firing may be observed. Its entity or its owner may have an observer.
    #[inline]
    pub(super) fn sees(self, has_observer: bool) -> bool {
        match self {
            Self::Nobody => false,
            Self::OnEntities => has_observer,
            Self::Everywhere => true,
        }
    }
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
pub(super) fn limit_backlog(world: &mut World) {
    if !is_game_stopped_in(world) {
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

/// Drops the messages that a further frame follows if there are too many, and returns their number.
///
/// The messages since the previous drop stay: those of the last frame, and at most [`KEPT`] earlier ones.
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
            .with_deadline(Duration::from_nanos(u64::MAX))
            .with_lateness(Duration::from_secs(1))
            .with_last(false)
            .with_key("key of a firing");
        assert_eq!(fired.count(), 1 << 40);
        assert_eq!(fired.missed(), (1 << 48) - 1);
        assert_eq!(fired.deadline(), Duration::from_nanos(u64::MAX));
        assert_eq!(fired.lateness(), Duration::from_secs(1));
        assert_eq!(fired.key().as_deref(), Some("key of a firing"));
        assert!(!fired.is_last() && fired.with_last(true).is_last());
        assert_eq!(fired.with_missed(u64::MAX).missed(), (1 << 48) - 1);
    }
}
