//! Changing and cancelling armed timers.

use alloc::borrow::Cow;
use core::{fmt, iter, time::Duration};

use bevy_ecs::prelude::*;

use super::{
    CancelReason, CrateTimer, DespawnAfter, IntoDuration, IntoKey, Kind, Place, Timer,
    TimerCancelled, TimerQueues, WhenDone,
    cancel::{report, take_out},
    end::{Ended, end_recorded, end_unarmed},
    keyed::find_keyed,
    late_clock::follow_clock,
    place::NO_CLOCK,
    queued::{ArmedTimer, Mark},
    queues::is_queued,
};
use crate::{
    clock::{Cadence, ClockError, ClockId, ClockTable, FoundClock, Reading, saturating_nanos},
    owner::{OwnedBy, owned_by},
    pause::Paused,
};

/// The error for a timer that is not armed, or whose clock does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchTimer {
    /// The entity of the timer, or the owner of a keyed one.
    pub entity: Entity,
    /// The [key](crate::timer::Keyed) of the timer, if it was looked up by key.
    pub key: Option<Cow<'static, str>>,
    /// The clock of the timer, if there is a timer, but not this clock. The next run cancels the timer
    /// unless the clock exists by then.
    pub clock: Option<ClockId>,
}

impl fmt::Display for NoSuchTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entity, key, clock } = self;
        if let Some(clock) = *clock {
            match key {
                None => write!(f, "can't change the timer on entity {entity}: ")?,
                Some(key) => write!(f, "can't change the timer {key:?} of entity {entity}: ")?,
            }
            return fmt::Display::fmt(&ClockError::NoSuchClock(clock), f);
        }
        match key {
            None => write!(
                f,
                "no armed timer on entity {entity}: insert a `Timer` first, or use \
                 `delay_timers_by` or `change_timer` for timers that it owns"
            ),
            Some(key) => write!(f, "entity {entity} has no armed timer {key:?}"),
        }
    }
}

impl core::error::Error for NoSuchTimer {}

/// An armed timer that is being changed.
///
/// [`change_timer`](crate::DueEntityCommandsExt::change_timer) and
/// [`change_own_timer`](crate::DueEntityCommandsExt::change_own_timer) pass it to a closure.
/// The [`Timer`](crate::Timer) component keeps the settings with which it was inserted.
/// [`TimerStatus`](crate::timer::TimerStatus) has the current ones.
///
/// # Examples
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{ArmedTimers, Timer, prelude::*};
/// use bevy_ecs::{prelude::*, system::SystemState};
/// use bevy_time::TimePlugin;
/// # use core::time::Duration;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()));
/// let mut commands = app.world_mut().commands();
/// let victim = commands
///     .spawn_empty()
///     .set_timer("poison", Timer::every(1.0).times(5))
///     .change_timer("poison", |poison| {
///         poison.refresh();
///         poison.set_interval(0.5);
///     })
///     .id();
/// app.world_mut().flush();
///
/// let mut timers = SystemState::<ArmedTimers>::new(app.world_mut());
/// let poison = timers.get(app.world())?.keyed(victim, "poison").unwrap();
/// assert_eq!(poison.remaining, Duration::from_secs(1));
/// assert_eq!(poison.total_remaining(), Some(Duration::from_secs(3)));
/// # Ok::<(), BevyError>(())
/// ```
#[derive(Debug)]
pub struct TimerMut<'w> {
    world: &'w mut World,
    entity: Entity,
    /// The settings with which it was inserted.
    settings: Timer,
    place: Place,
    reading: Reading,
}

impl<'w> TimerMut<'w> {
    /// # Errors
    ///
    /// Returns the clock of the timer, if there is a timer, but not this clock.
    fn new(world: &'w mut World, entity: Entity) -> Result<Self, Option<ClockId>> {
        let waits = world
            .get::<Timer>(entity)
            .and_then(|timer| timer.seat.place())
            .is_some_and(|(clock, _)| clock == NO_CLOCK);
        if waits {
            // A clock may have arrived in the meantime.
            follow_clock(&mut world.into(), entity, Kind::Timer);
        }
        let timer = world.get::<Timer>(entity).ok_or(None)?;
        let settings = timer.clone();
        let place = timer.seat.place().filter(|_| is_queued(world, timer));
        let place = place.ok_or(None)?;
        if place.0 == NO_CLOCK {
            return Err(settings.clock());
        }
        // A clock that arrives later moves the timer with the change.
        let mut queues = world.resource_mut::<TimerQueues>();
        if let Some(armed) = queues.timer_mut(place) {
            armed.set(Mark::New, false);
        }
        let table = world.get_resource::<ClockTable>();
        let reading = table.and_then(|table| table.reading(place.0));
        let reading = reading.ok_or(None)?;
        Ok(Self {
            world,
            entity,
            settings,
            place,
            reading,
        })
    }

    /// Returns the entity of the timer.
    #[must_use]
    pub fn entity(&self) -> Entity {
        self.entity
    }

    /// Returns the time until the next firing, on the timer's clock.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let next = self.deadline_and_wait();
        let deadline = next.map_or(0, |(deadline, _)| deadline);
        Duration::from_nanos(deadline.saturating_sub(self.reading.now))
    }

    /// Returns the number of firings so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        let queues = self.world.resource::<TimerQueues>();
        queues.timer(self.place).map_or(0, ArmedTimer::count)
    }

    /// Inserts [`Paused`](crate::Paused) on the timer's entity.
    pub fn pause(&mut self) {
        if let Ok(mut entity) = self.world.get_entity_mut(self.entity) {
            entity.insert(Paused);
        }
    }

    /// Removes [`Paused`](crate::Paused) from the timer's entity.
    pub fn resume(&mut self) {
        if let Ok(mut entity) = self.world.get_entity_mut(self.entity) {
            entity.remove::<Paused>();
        }
    }

    /// Starts the timer over with its first delay, as if it had just been armed.
    ///
    /// The timer gets the interval and the number of firings of its [`Timer`](crate::Timer) again.
    pub fn restart(&mut self) {
        let mut queues = self.world.resource_mut::<TimerQueues>();
        let mut numbers = queues.arming.numbers;
        let (deadline, _) = self.settings.start(self.reading, &mut numbers);
        if let Some(armed) = queues.timer_mut(self.place) {
            armed.restart(&self.settings);
            self.settings.begin_draws(armed, &mut numbers);
        }
        queues.arming.numbers = numbers;
        self.move_to(deadline, deadline.saturating_sub(self.reading.now));
    }

    /// Renews the timer: a periodic timer gets its number of firings again, and a one-shot timer starts over.
    ///
    /// A periodic timer keeps its next deadline. A poison that is renewed again and again therefore keeps
    /// ticking. As many firings are left as the [`Timer`](crate::Timer) component has in total.
    ///
    /// A one-shot timer waits for its whole delay, as after [`restart`](Self::restart).
    pub fn refresh(&mut self) {
        let times = self.settings.max_firings();
        let mut queues = self.world.resource_mut::<TimerQueues>();
        let armed = queues.timer_mut(self.place);
        if armed.is_some_and(|armed| !armed.refresh(times)) {
            self.restart();
        }
    }

    /// Sets the number of firings that are left.
    ///
    /// # Panics
    ///
    /// Panics if `left` is zero. Remove the `Timer` to cancel it.
    #[track_caller]
    pub fn set_left(&mut self, left: u32) {
        assert!(
            left > 0,
            "the number of firings left must not be zero: cancel the timer instead"
        );
        self.with_armed(|armed| armed.set_left(Some(left)));
    }

    /// Sets the interval, from the next deadline on. It is no longer random.
    ///
    /// A one-shot timer needs a further firing to become periodic: see [`set_left`](Self::set_left).
    ///
    /// # Panics
    ///
    /// Panics if `interval` is zero, or a negative, infinite or invalid number.
    #[track_caller]
    pub fn set_interval(&mut self, interval: impl IntoDuration) {
        let interval = Timer::every(interval).interval;
        let delay = self.settings.delay;
        self.with_armed(|armed| armed.set_interval(interval, delay));
    }

    /// Sets the time until the next deadline.
    ///
    /// The timer gets a new place in the order of equal deadlines, as if it had just been armed.
    ///
    /// # Panics
    ///
    /// Panics if `remaining` is a negative, infinite or invalid number.
    #[track_caller]
    pub fn set_remaining(&mut self, remaining: impl IntoDuration) {
        let wait = saturating_nanos(remaining.into_duration());
        self.move_to(self.reading.now.saturating_add(wait), wait);
    }

    /// Moves the next deadline to `deadline`, as the timer's clock shows it.
    ///
    /// The timer gets a new place in the order of equal deadlines. A deadline in the past fires in
    /// the next run.
    ///
    /// # Panics
    ///
    /// Panics if `deadline` is a negative, infinite or invalid number.
    #[track_caller]
    pub fn reschedule(&mut self, deadline: impl IntoDuration) {
        let deadline = self.reading.passed(deadline.into_duration());
        self.move_to(deadline, deadline.saturating_sub(self.reading.now));
    }

    /// Delays the next deadline, under the rules of [`reschedule`](Self::reschedule).
    ///
    /// # Panics
    ///
    /// Panics if `by` is a negative, infinite or invalid number.
    #[track_caller]
    pub fn delay_by(&mut self, by: impl IntoDuration) {
        let by = saturating_nanos(by.into_duration());
        if let Some((deadline, wait)) = self.deadline_and_wait() {
            self.move_to(deadline.saturating_add(by), wait.saturating_add(by));
        }
    }

    /// Brings the next deadline forward, under the rules of [`reschedule`](Self::reschedule).
    ///
    /// # Panics
    ///
    /// Panics if `by` is a negative, infinite or invalid number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{Timer, prelude::*};
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let wave = world.spawn(Timer::every(20.0)).id();
    /// world.change_timer(wave, |wave| {
    ///     wave.hasten_by(5);
    ///     assert_eq!(wave.remaining(), Duration::from_secs(15));
    /// })?;
    /// # Ok::<(), bevy_ecs::error::BevyError>(())
    /// ```
    #[track_caller]
    pub fn hasten_by(&mut self, by: impl IntoDuration) {
        let by = saturating_nanos(by.into_duration());
        if let Some((deadline, wait)) = self.deadline_and_wait() {
            self.move_to(deadline.saturating_sub(by), wait.saturating_sub(by));
        }
    }

    /// Moves the timer to another clock, where it keeps its remaining time, its count and its pause.
    ///
    /// The timer gets a new place in the order of equal deadlines. [`Timer::clock`] still returns the
    /// clock with which the timer was inserted.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError`], and leaves the timer where it is, if there is no such clock.
    pub fn set_clock(&mut self, clock: impl Into<ClockId>) -> Result<(), ClockError> {
        let clock = clock.into();
        let table = self.world.resource::<ClockTable>();
        let (FoundClock { key: to, .. }, there) = table.read(clock)?;
        let mut queues = self.world.resource_mut::<TimerQueues>();
        if to != self.place.0
            && let Some(place) = queues.carry(self.place, self.reading, (to, there))
        {
            (self.place, self.reading) = (place, there);
            if let Some(timer) = self.world.get::<Timer>(self.entity) {
                timer.seat.move_to(Some(place));
            }
        }
        self.with_armed(|timer| timer.set(Mark::Chosen, true));
        Ok(())
    }

    fn move_to(&mut self, deadline: u64, wait: u64) {
        let mut queues = self.world.resource_mut::<TimerQueues>();
        queues.reschedule(self.place, (deadline, wait), self.reading.now);
    }

    /// Returns the next deadline, and the length of the wait for it.
    fn deadline_and_wait(&self) -> Option<(u64, u64)> {
        let (clock, key) = self.place;
        let queue = self.world.resource::<TimerQueues>().get(clock)?;
        let deadline = queue.deadline(key, self.reading.now)?;
        let armed = queue.timers.get(key)?;
        Some((deadline, armed.wait(self.settings.delay)))
    }

    fn with_armed(&mut self, change: impl FnOnce(&mut ArmedTimer)) {
        let mut queues = self.world.resource_mut::<TimerQueues>();
        if let Some(armed) = queues.timer_mut(self.place) {
            change(armed);
        }
    }
}

/// Changes the timer on `entity`.
pub(crate) fn change_timer(
    world: &mut World,
    entity: Entity,
    change: impl FnOnce(&mut TimerMut),
) -> Result<(), NoSuchTimer> {
    let timer = TimerMut::new(world, entity);
    change(&mut timer.map_err(|clock| NoSuchTimer {
        entity,
        key: None,
        clock,
    })?);
    Ok(())
}

/// Changes the timer of `owner` with this key.
pub(crate) fn change_keyed(
    world: &mut World,
    owner: Entity,
    key: impl IntoKey,
    change: impl FnOnce(&mut TimerMut),
) -> Result<(), NoSuchTimer> {
    let timer = find_keyed(world, owner, &key).ok_or(None);
    let timer = timer.and_then(|timer| TimerMut::new(world, timer));
    change(&mut timer.map_err(|clock| NoSuchTimer {
        entity: owner,
        key: Some(key.name()),
        clock,
    })?);
    Ok(())
}

/// Delays the timer on `owner` and all timers that belong to it.
pub(crate) fn delay_all(world: &mut World, owner: Entity, by: Duration) {
    let owned = owned_by(world, owner).into_iter();
    for entity in iter::once(owner).chain(owned) {
        if changes_with_owner(world, entity) {
            // Without an armed timer, there is no deadline to move.
            change_timer(world, entity, |timer| timer.delay_by(by)).ok();
        }
    }
}

/// Cancels the timer of `entity` and triggers the event. Then ends the timer, unless an observer has
/// armed another one. Returns `true` if the timer was armed.
fn cancel_now(
    world: &mut World,
    entity: Entity,
    reason: CancelReason,
    when_done: WhenDone,
) -> bool {
    let Some((number, owner)) = take_out(&mut world.into(), entity, reason) else {
        end_unarmed(world, entity, when_done);
        return false;
    };
    let ended = Ended::timer(entity, when_done);
    end_recorded(world, Cadence::Frame, ended, |world| {
        if TimerCancelled::is_observed(world, entity, owner)
            && let Some(cancelled) = report(&mut world.into(), number)
        {
            cancelled.trigger(world);
        }
        end_unarmed(world, entity, when_done);
    });
    true
}

/// Cancels an owned timer and despawns its entity. Returns `true` if the timer was armed.
pub(super) fn cancel_and_despawn(world: &mut World, entity: Entity, reason: CancelReason) -> bool {
    cancel_now(world, entity, reason, WhenDone::Despawn)
}

/// Cancels the timer or the lifetime of `owner` with this key, and returns `true` if there was one.
pub(crate) fn cancel_keyed(world: &mut World, owner: Entity, key: &impl IntoKey) -> bool {
    let Some(timer) = find_keyed(world, owner, key) else {
        return false;
    };
    if world.get::<Timer>(timer).is_some() {
        return cancel_and_despawn(world, timer, CancelReason::Cancelled);
    }
    // A timer in its last firing is no longer armed.
    world.get::<DespawnAfter>(timer).is_some() && world.despawn(timer)
}

/// Cancels the timer on `owner` and all timers that belong to it.
pub(crate) fn cancel_all(world: &mut World, owner: Entity) {
    if changes_with_owner(world, owner) {
        cancel_now(world, owner, CancelReason::Cancelled, WhenDone::Keep);
    }
    for timer in owned_by(world, owner) {
        // A handler may have moved it to another owner.
        if world.get::<OwnedBy>(timer) == Some(&OwnedBy(owner)) && changes_with_owner(world, timer)
        {
            cancel_and_despawn(world, timer, CancelReason::Cancelled);
        }
    }
}

/// Returns `true` if the calls for all timers of an owner apply to the timer on an entity. Those that the crate arms
/// for other features are left out.
fn changes_with_owner(world: &World, timer: Entity) -> bool {
    let feature = world.get::<CrateTimer>(timer);
    world.get::<Timer>(timer).is_some() && feature.is_none_or(|it| *it == CrateTimer::Commands)
}
