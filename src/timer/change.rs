//! Changing armed timers.

use alloc::{borrow::Cow, vec::Vec};
use core::{fmt, iter, time::Duration};

use bevy_ecs::prelude::*;

use super::{
    Arms, IntoKey, Timer, TimerLines, arm::draw, armed::ArmedTimer, build::or_panic,
    find::find_keyed, line::TimerLine, lines::is_armed, place::Place, resolve::resolve,
};
use crate::{
    clock::{ClockId, ClockKey, ClockTable, FoundClock, NoSuchClock, Reading, saturating_nanos},
    owner::Owned,
    pause::Paused,
    queue::Key,
};

/// The error for a timer that is not armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchTimer {
    /// The entity of the timer, or the owner of a keyed one.
    pub entity: Entity,
    /// The [key](crate::Keyed) of the timer, if it was looked up by key.
    pub key: Option<Cow<'static, str>>,
}

impl fmt::Display for NoSuchTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            None => write!(
                f,
                "no armed timer on entity {}: insert a `Timer` first, or use \
                 `delay_timers_by` or `change_timer` for timers that it owns",
                self.entity
            ),
            Some(key) => write!(f, "entity {} has no armed timer {key:?}", self.entity),
        }
    }
}

impl core::error::Error for NoSuchTimer {}

/// An armed timer that is being changed.
///
/// [`change_timer`](crate::DueEntityCommandsExt::change_timer) and
/// [`change_own_timer`](crate::DueEntityCommandsExt::change_own_timer) pass it to a closure.
/// The [`Timer`](crate::Timer) component keeps the settings with which it was inserted.
/// [`TimerStatus`](crate::TimerStatus) has the current ones.
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
///         poison.set_interval(Duration::from_millis(500));
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
    clock: ClockKey,
    key: Key,
    reading: Reading,
}

impl<'w> TimerMut<'w> {
    fn new(world: &'w mut World, entity: Entity) -> Option<Self> {
        if !is_armed::<Timer>(world, entity) {
            return None;
        }
        // Timers that were inserted earlier also come earlier among equal deadlines.
        resolve(world, None);
        let seat = world.get::<Timer>(entity)?.seat();
        seat.unwrite();
        let (clock, key) = seat.armed()?;
        let reading = world.get_resource::<ClockTable>()?.read_now(world, clock)?;
        world
            .get_resource::<TimerLines>()?
            .get(clock)?
            .queue
            .get(key)?;
        Some(Self {
            world,
            entity,
            clock,
            key,
            reading,
        })
    }

    /// Returns the entity of the timer.
    #[must_use]
    pub fn entity(&self) -> Entity {
        self.entity
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
        let Some(timer) = self.world.get::<Timer>(self.entity) else {
            return;
        };
        let (interval, times) = (timer.interval, timer.max_firings());
        let is_random = timer.interval_span().is_some();
        let random = match timer.has_jitter() {
            true => draw(&mut self.world.into()),
            false => 0,
        };
        let Some(timer) = self.world.get::<Timer>(self.entity) else {
            return;
        };
        let deadline = timer.first_deadline(self.reading, random);
        self.with_armed(|armed| armed.restart(interval, times, is_random));
        self.move_to(deadline, deadline.saturating_sub(self.reading.now));
    }

    /// Renews the number of firings, and keeps the next deadline.
    ///
    /// A poison that is renewed again and again keeps ticking. After this, as many firings are left
    /// as the [`Timer`](crate::Timer) component has in total.
    pub fn refresh(&mut self) {
        let times = self.world.get::<Timer>(self.entity);
        let times = times.and_then(Timer::max_firings);
        self.with_armed(|armed| armed.set_left(times));
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
    /// Panics if `interval` is zero.
    #[track_caller]
    pub fn set_interval(&mut self, interval: Duration) {
        let interval = or_panic(Timer::try_every(interval)).interval;
        let first_wait = self.world.get::<Timer>(self.entity).map(Timer::first_wait);
        let key = self.key;
        if let (Some(line), Some(first_wait)) = (self.line(), first_wait) {
            line.set_interval(key, interval, first_wait);
        }
    }

    /// Sets the time until the next deadline.
    ///
    /// The timer gets a new place in the order of equal deadlines, as if it had just been armed.
    pub fn set_remaining(&mut self, remaining: Duration) {
        let wait = saturating_nanos(remaining);
        self.move_to(self.reading.now.saturating_add(wait), wait);
    }

    /// Moves the next deadline to `deadline`, as the timer's clock shows it.
    ///
    /// The timer gets a new place in the order of equal deadlines. A deadline in the past fires in
    /// the next run.
    pub fn reschedule(&mut self, deadline: Duration) {
        let deadline = self.reading.passed(deadline);
        self.move_to(deadline, deadline.saturating_sub(self.reading.now));
    }

    /// Delays the next deadline, under the rules of [`reschedule`](Self::reschedule).
    pub fn delay_by(&mut self, by: Duration) {
        let by = saturating_nanos(by);
        let first_wait = self.world.get::<Timer>(self.entity).map(Timer::first_wait);
        let now = self.reading.now;
        let key = self.key;
        let Some(line) = self.line() else {
            return;
        };
        let deadline = line.deadline(key, now);
        let wait = first_wait.and_then(|first_wait| line.wait(key, first_wait));
        // A timer with slack chooses again, so its window moves.
        let shift = line.shift(key).unwrap_or(0);
        let moved = |time: u64| time.saturating_sub(shift).saturating_add(by);
        if let (Some(deadline), Some(wait)) = (deadline, wait) {
            self.move_to(moved(deadline), moved(wait));
        }
    }

    /// Moves the timer to another clock, where it keeps its remaining time, its count and its pause.
    ///
    /// The timer gets a new place in the order of equal deadlines. [`Timer::clock`] still returns the
    /// clock with which the timer was inserted.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`], and leaves the timer where it is, if there is no such clock.
    pub fn set_clock(&mut self, clock: impl Into<ClockId>) -> Result<(), NoSuchClock> {
        let clock = clock.into();
        let table = self.world.resource::<ClockTable>();
        let (FoundClock { key: to, .. }, there) = table.read(clock, self.world)?;
        let timer = self.world.get::<Timer>(self.entity);
        let Some(first_wait) = timer.map(Timer::first_wait).filter(|_| to != self.clock) else {
            return Ok(());
        };
        let from = (self.clock, self.key);
        let mut lines = self.world.resource_mut::<TimerLines>();
        let moved = lines.move_to(from, first_wait, self.reading.now, (to, there));
        if let Some(key) = moved {
            (self.clock, self.key, self.reading) = (to, key, there);
            if let Some(timer) = self.world.get::<Timer>(self.entity) {
                timer.seat().move_to(Place::Armed(to, key));
            }
        }
        Ok(())
    }

    fn move_to(&mut self, deadline: u64, wait: u64) {
        let (key, reading) = (self.key, self.reading);
        if let Some(line) = self.line() {
            line.reschedule(key, deadline, wait, reading);
        }
    }

    fn with_armed(&mut self, change: impl FnOnce(&mut ArmedTimer)) {
        let key = self.key;
        if let Some(armed) = self.line().and_then(|line| line.queue.get_mut(key)) {
            change(armed);
        }
    }

    fn line(&mut self) -> Option<&mut TimerLine> {
        let clock = self.clock;
        let lines = self.world.get_resource_mut::<TimerLines>()?;
        lines.into_inner().get_mut(clock)
    }
}

/// Changes the timer on `entity`.
pub(crate) fn change_timer(
    world: &mut World,
    entity: Entity,
    change: impl FnOnce(&mut TimerMut),
) -> Result<(), NoSuchTimer> {
    let unknown = NoSuchTimer { entity, key: None };
    let mut timer = TimerMut::new(world, entity).ok_or(unknown)?;
    change(&mut timer);
    Ok(())
}

/// Changes the timer of `owner` with this key.
pub(crate) fn change_keyed(
    world: &mut World,
    owner: Entity,
    key: impl IntoKey,
    change: impl FnOnce(&mut TimerMut),
) -> Result<(), NoSuchTimer> {
    let timer = find_keyed(world, owner, &key);
    let timer = timer.and_then(|timer| TimerMut::new(world, timer));
    let unknown = NoSuchTimer {
        entity: owner,
        key: Some(key.name()),
    };
    change(&mut timer.ok_or(unknown)?);
    Ok(())
}

/// Delays the timer on `owner` and all timers that belong to it.
pub(crate) fn delay_all(world: &mut World, owner: Entity, by: Duration) {
    for timer in timers_of(world, owner) {
        // A timer that is not armed has no deadline to move.
        change_timer(world, timer, |timer| timer.delay_by(by)).ok();
    }
}

/// Returns the entities that carry a timer of `owner`.
fn timers_of(world: &World, owner: Entity) -> Vec<Entity> {
    let owned = world.get::<Owned>(owner);
    let owned = owned.into_iter().flat_map(Owned::iter);
    let entities = iter::once(owner).chain(owned);
    entities
        .filter(|&entity| world.get::<Timer>(entity).is_some())
        .collect()
}
