//! Changing armed timers.

use alloc::{borrow::Cow, vec::Vec};
use core::{fmt, iter, time::Duration};

use bevy_ecs::prelude::*;

use super::{
    Arms, Timer, TimerLines,
    armed::ArmedTimer,
    build::or_panic,
    find::find_keyed,
    lines::{TimerLine, is_armed},
    place::Place,
    resolve::resolve,
};
use crate::{
    clock::{ClockId, ClockKey, ClockTable, NoSuchClock, Reading, saturating_nanos},
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
            None => write!(f, "no armed timer on entity {}", self.entity),
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
///     .set_timer("poison", Timer::every_secs(1.0).times(5))
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
        if !is_armed(world, entity) {
            return None;
        }
        // Timers that were inserted earlier also come earlier among equal deadlines.
        resolve(world, None);
        let (clock, key) = world.get::<Timer>(entity)?.seat().armed()?;
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
        self.world.entity_mut(self.entity).insert(Paused);
    }

    /// Removes [`Paused`](crate::Paused) from the timer's entity.
    pub fn resume(&mut self) {
        self.world.entity_mut(self.entity).remove::<Paused>();
    }

    /// Starts the timer over with its first delay, as if it had just been armed.
    ///
    /// The interval and the number of firings become those of the [`Timer`](crate::Timer) component.
    pub fn restart(&mut self) {
        let Some(timer) = self.world.get::<Timer>(self.entity) else {
            return;
        };
        let (interval, times) = (timer.interval, timer.max_firings());
        let is_random = timer.interval_span().is_some();
        let deadline = timer.first_deadline(self.reading, 0);
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
        self.with_armed(|armed| armed.set_interval(interval));
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
        if let (Some(deadline), Some(wait)) = (deadline, wait) {
            self.move_to(deadline.saturating_add(by), wait.saturating_add(by));
        }
    }

    fn move_to(&mut self, deadline: u64, wait: u64) {
        let (key, now) = (self.key, self.reading.now);
        if let Some(line) = self.line() {
            line.reschedule(key, deadline, wait, now);
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
    key: Cow<'static, str>,
    change: impl FnOnce(&mut TimerMut),
) -> Result<(), NoSuchTimer> {
    let timer = find_keyed(world, owner, &key);
    let timer = timer.and_then(|timer| TimerMut::new(world, timer));
    let unknown = NoSuchTimer {
        entity: owner,
        key: Some(key),
    };
    change(&mut timer.ok_or(unknown)?);
    Ok(())
}

/// Moves the timer on `entity` to another clock, where it keeps its remaining time, its count and
/// its pause. Among equal deadlines it comes last, as if it had just been armed.
///
/// Does nothing if the entity has no armed timer.
#[cfg_attr(not(test), expect(dead_code, reason = "`set_clock` will call it"))]
pub(crate) fn move_to_clock(
    world: &mut World,
    entity: Entity,
    clock: ClockId,
) -> Result<(), NoSuchClock> {
    let Some(table) = world.get_resource::<ClockTable>() else {
        return Err(NoSuchClock(clock));
    };
    let to = table.find(clock)?.key;
    if let Some(timer) = world.get::<Timer>(entity)
        && let Some((from, key)) = timer.seat().armed()
        && from != to
        && let Some(now) = table.read_now(world, from)
        && let Some(there) = table.read_now(world, to)
    {
        let first_wait = timer.first_wait();
        let mut lines = world.resource_mut::<TimerLines>();
        let moved = lines.move_to((from, key), first_wait, now.now, (to, there.now));
        if let Some(key) = moved
            && let Some(timer) = world.get::<Timer>(entity)
        {
            timer.seat().move_to(Place::Armed(to, key));
        }
    }
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

#[cfg(test)]
mod tests {
    use std::{prelude::rust_2024::*, vec};

    use bevy_app::App;
    use bevy_ecs::system::SystemState;
    use bevy_time::{TimePlugin, TimeUpdateStrategy};

    use super::*;
    use crate::{ArmedTimers, Clock, DuePlugin, Paused, TimerFired, TimerStatus};

    const STEP: Duration = Duration::from_millis(10);

    #[derive(Resource, Default)]
    struct Log(Vec<(u64, Duration)>);

    fn app() -> App {
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .insert_resource(TimeUpdateStrategy::ManualDuration(STEP))
            .init_resource::<Log>()
            .add_observer(|fired: On<TimerFired>, mut log: ResMut<Log>| {
                log.0.push((fired.count(), fired.deadline()));
            });
        app.update();
        app
    }

    fn status(app: &mut App, timer: Entity) -> TimerStatus {
        let mut state = SystemState::<ArmedTimers>::new(app.world_mut());
        let timers = state.get(app.world()).expect("the parameters are valid");
        timers.get(timer).expect("the timer is armed")
    }

    #[test]
    fn a_timer_that_moves_to_another_clock_keeps_its_remaining_time() {
        let mut app = app();
        let slow = Clock::new().with_speed(0.5).with_now(STEP * 100);
        let slow = app.world_mut().spawn(slow).id();
        let timer = app.world_mut().spawn(Timer::every(STEP * 5)).id();
        for _ in 0..7 {
            app.update();
        }
        let before = status(&mut app, timer);
        move_to_clock(app.world_mut(), timer, slow.into()).expect("the clock exists");
        let after = status(&mut app, timer);
        assert_eq!(after.clock, slow.into());
        assert_eq!((after.remaining, after.elapsed), (STEP * 3, STEP * 2));
        assert_eq!((after.wait, after.count), (before.wait, before.count));
        for _ in 0..16 {
            app.update();
        }
        let at = |step: u32| STEP / 2 * (200 + 7 + step);
        let log = &app.world().resource::<Log>().0;
        assert_eq!(log[1..], vec![(2, at(6)), (3, at(16))]);
    }

    #[test]
    fn a_paused_timer_stays_paused_on_its_new_clock() {
        let mut app = app();
        let other = app.world_mut().spawn(Clock::new()).id();
        let timer = app.world_mut().spawn((Timer::after(STEP * 2), Paused)).id();
        app.update();
        move_to_clock(app.world_mut(), timer, other.into()).expect("the clock exists");
        for _ in 0..5 {
            app.update();
        }
        assert!(app.world().resource::<Log>().0.is_empty());
        app.world_mut().entity_mut(timer).remove::<Paused>();
        app.update();
        assert_eq!(status(&mut app, timer).remaining, STEP);
    }

    #[test]
    fn a_timer_stays_where_it_is_if_the_clock_does_not_exist() {
        let mut app = app();
        let timer = app.world_mut().spawn(Timer::after(STEP)).id();
        let missing = ClockId::Own(timer);
        let result = move_to_clock(app.world_mut(), timer, missing);
        assert_eq!(result, Err(NoSuchClock(missing)));
        app.update();
        assert_eq!(app.world().resource::<Log>().0.len(), 1);
    }
}
