//! A cancellation: its event, for the observers of the timer and of its owner, and its message.

use alloc::{borrow::Cow, vec::Vec};
use core::{mem, ops::Deref, time::Duration};

use bevy_ecs::prelude::*;
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;

use super::{IntoKey, Keyed, events::is_observed, key::KeyId};
use crate::{
    clock::{ClockId, PackedClockId, saturating_nanos},
    recent_peak::RecentPeak,
};

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
/// Timers that the crate itself arms also report their cancellation, except for lifetimes and the time-outs of
/// requests.
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
#[derive(EntityEvent, Message, Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The number of firings so far.
    pub(super) count: u64,
    /// The time until the next deadline, in nanoseconds.
    pub(super) remaining: u64,
    /// The number of firings left, or zero if the timer never ends.
    pub(super) left: u32,
    pub(super) reason: CancelReason,
    /// Whether the owner is notified.
    pub(super) is_announced: bool,
}

impl TimerCancelled {
    /// Creates the event of a cancelled timer on `entity`, to test a handler.
    ///
    /// The timer has no owner and no key, is on [`ClockId::Virtual`], and would have fired once, now. The
    /// `with_*` methods change the values.
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
    ///     if cancelled.has_key("drain") && cancelled.reason() == CancelReason::Cancelled {
    ///         mana.get_mut(cancelled.owner())?.0 += 5 * cancelled.left().unwrap_or(0);
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let mut world = World::new();
    /// world.add_observer(refund);
    /// let mage = world.spawn(Mana(0)).id();
    /// let drain = world.spawn_empty().id();
    /// let cancelled = TimerCancelled::new(drain, CancelReason::Cancelled);
    /// world.trigger(cancelled.with_owner(mage).with_key("drain").with_left(Some(4)));
    /// assert_eq!(world.get::<Mana>(mage).unwrap().0, 20);
    /// ```
    #[must_use]
    pub fn new(entity: Entity, reason: CancelReason) -> Self {
        Self {
            entity,
            owner: entity,
            clock: ClockId::Virtual.into(),
            key: None,
            count: 0,
            remaining: 0,
            left: 1,
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

    /// Sets the number of firings.
    #[must_use]
    pub fn with_count(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    /// Sets the number of firings that were left, or `None` for a timer that fires forever.
    #[must_use]
    pub fn with_left(mut self, left: Option<u32>) -> Self {
        self.left = left.unwrap_or(0);
        self
    }

    /// Sets the time that remained.
    #[must_use]
    pub fn with_remaining(mut self, remaining: Duration) -> Self {
        self.remaining = saturating_nanos(remaining);
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
        self.key.is_some() && self.key == KeyId::find(&key.name())
    }

    /// Returns the clock of the timer. It may be gone.
    #[must_use]
    pub fn clock(&self) -> ClockId {
        self.clock.into()
    }

    /// Returns the number of firings.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of firings that were left, or `None` if the timer would have fired forever.
    #[must_use]
    pub fn left(&self) -> Option<u32> {
        (self.left != 0).then_some(self.left)
    }

    /// Returns the time that remained until the next firing, on the clock. It is zero for a timer that was
    /// overdue, or whose clock did not exist.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        Duration::from_nanos(self.remaining)
    }

    /// Returns the cause.
    #[must_use]
    pub fn reason(&self) -> CancelReason {
        self.reason
    }

    /// Returns the owner, if it gets an event of its own.
    pub(super) fn notified_owner(&self) -> Option<Entity> {
        (self.is_announced && self.owner != self.entity).then_some(self.owner)
    }

    /// Returns `true` if the event of a timer has an observer, or that of its owner.
    #[inline]
    pub(super) fn is_observed(world: &World, timer: Entity, owner: Option<Entity>) -> bool {
        is_observed::<Self>(world, timer)
            || owner.is_some_and(|owner| is_observed::<OwnedTimerCancelled>(world, owner))
    }

    /// Triggers the event for the timer's entity, then for its owner.
    pub(super) fn trigger(self, world: &mut World) {
        world.trigger(self);
        world.flush();
        let owner = self.notified_owner();
        if owner.is_some_and(|owner| is_observed::<OwnedTimerCancelled>(world, owner)) {
            world.trigger(OwnedTimerCancelled::new(self));
            world.flush();
        }
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

/// Cancellations in the order in which they happened, to be written as messages in the next run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellations {
    /// Those that the last run has written. Observers may not have seen these yet.
    written: Vec<TimerCancelled>,
    unwritten: Vec<TimerCancelled>,
    /// The number of the first one that is kept.
    first: u64,
    peak: RecentPeak,
}

impl Cancellations {
    /// Adds a cancellation, and returns its number.
    #[inline]
    pub(super) fn push(&mut self, cancelled: TimerCancelled) -> u64 {
        let number = self.first + (self.written.len() + self.unwritten.len()) as u64;
        self.unwritten.push(cancelled);
        number
    }

    /// Returns the cancellation with this number, unless it was written before the last run.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut TimerCancelled> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        match index.checked_sub(self.written.len()) {
            None => self.written.get_mut(index),
            Some(index) => self.unwritten.get_mut(index),
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TimerCancelled> {
        self.written.iter_mut().chain(&mut self.unwritten)
    }

    /// Returns the number of cancellations that have not been written.
    pub(super) fn len(&self) -> u64 {
        self.unwritten.len() as u64
    }

    /// Forgets what the previous run has written, at the start of a run. Gives back memory that was not needed
    /// recently.
    #[inline]
    pub(super) fn forget_written(&mut self) {
        if self.written.is_empty() && self.peak.is_over() {
            return;
        }
        self.peak.note(self.written.len());
        self.first += self.written.len() as u64;
        self.written.clear();
        for buffer in [&mut self.written, &mut self.unwritten] {
            buffer.shrink_to(self.peak.enough(buffer.capacity()));
        }
    }

    /// Writes all cancellations, after the run has [forgotten](Self::forget_written) the earlier ones.
    pub(super) fn write(&mut self, messages: &mut Messages<TimerCancelled>) {
        debug_assert!(self.written.is_empty(), "{} are left", self.written.len());
        mem::swap(&mut self.written, &mut self.unwritten);
        messages.write_batch(self.written.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a run after this many cancellations, and returns the capacity of the buffers.
    fn run(reports: &mut Cancellations, cancelled: usize) -> usize {
        let report = TimerCancelled::new(Entity::PLACEHOLDER, CancelReason::Removed);
        for _ in 0..cancelled {
            reports.push(report);
        }
        reports.forget_written();
        reports.write(&mut Messages::default());
        reports.written.capacity() + reports.unwritten.capacity()
    }

    #[test]
    fn written_cancellations_give_their_memory_back() {
        let mut reports = Cancellations::default();
        let full = run(&mut reports, 10_000);
        assert!(full >= 10_000, "{full}");
        for _ in 0..1000 {
            run(&mut reports, 0);
        }
        let capacity = run(&mut reports, 0);
        assert!(capacity < 400, "{capacity}");
    }

    #[test]
    fn a_cancellation_can_be_changed_until_the_next_run() {
        let mut reports = Cancellations::default();
        let report = TimerCancelled::new(Entity::PLACEHOLDER, CancelReason::Removed);
        let [first, second] = [0, 1].map(|_| reports.push(report));
        run(&mut reports, 0);
        let third = reports.push(report);
        for number in [first, second, third] {
            assert!(reports.get_mut(number).is_some(), "{number}");
        }
        run(&mut reports, 0);
        assert!(
            reports.get_mut(second).is_none(),
            "written before the last run"
        );
        assert!(reports.get_mut(third).is_some());
        run(&mut reports, 0);
        assert!(reports.get_mut(third).is_none());
    }
}
