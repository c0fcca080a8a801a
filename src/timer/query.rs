//! Queries of armed timers.

use alloc::{format, string::ToString, vec::Vec};
use core::{fmt, time::Duration};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, system::SystemParam};

use super::{
    DespawnAfter, IntoDuration, IntoKey, Keyed, Kind, RunStats, Timer, TimerQueues, TimerStatus,
    key::KeyId,
};
use crate::{
    clock::{
        Cadence, Clock, ClockError, ClockId, ClockTable, FoundClock, OnClock, Scope, SpeedModifier,
        default_clock, saturating_nanos,
    },
    owner::{Owned, OwnedBy},
};

/// Finds the armed and paused timers of a world, and their state.
///
/// Its [`Display`](core::fmt::Display) form is a table of all timers with their names, keys and owners,
/// sorted by clock, then by deadline.
///
/// # Examples
///
/// ```
/// use bevy_due::ArmedTimers;
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct ProgressBar(f32);
///
/// fn draw(mut bars: Query<(Entity, &mut ProgressBar)>, timers: ArmedTimers) {
///     for (entity, mut bar) in &mut bars {
///         bar.0 = timers.get(entity).map_or(0.0, |timer| timer.fraction());
///     }
/// }
/// # bevy_ecs::system::assert_is_system(draw);
/// ```
///
/// ```
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::TimePlugin;
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()));
/// let hero = app.world_mut().spawn(Name::new("hero")).id();
/// app.world_mut().commands().entity(hero).set_timer("potion", Timer::after(30.0));
/// app.update();
/// let table = app.world_mut().with_timers(|timers| timers.to_string());
/// assert!(table.lines().nth(1).is_some_and(|row| row.contains("\"potion\"") && row.contains("of hero")));
/// ```
#[doc(alias("remaining", "elapsed", "is_scheduled", "listing"))]
#[derive(SystemParam)]
pub struct ArmedTimers<'w, 's> {
    #[system_param(validation_message = "there is no `DuePlugin`: add it to the app")]
    table: Res<'w, ClockTable>,
    queues: Res<'w, TimerQueues>,
    timers: Query<'w, 's, &'static Timer, Allow<Disabled>>,
    owners: Query<'w, 's, &'static Owned, Allow<Disabled>>,
    lifetimes: Query<'w, 's, &'static DespawnAfter, Allow<Disabled>>,
    parts: Query<'w, 's, SettingParts, Allow<Disabled>>,
    keys: Query<'w, 's, &'static Keyed, Allow<Disabled>>,
    names: Query<'w, 's, &'static Name, Allow<Disabled>>,
}

/// The components that decide the setting of a timer.
type SettingParts = (
    (
        Option<&'static OnClock>,
        Has<Clock>,
        Option<&'static SpeedModifier>,
    ),
    Option<&'static OwnedBy>,
);

impl ArmedTimers<'_, '_> {
    /// Returns the state of the timer on `entity`, or `None` if the entity has no armed or paused
    /// timer.
    ///
    /// A timer in its last firing is no longer armed.
    #[must_use]
    pub fn get(&self, entity: Entity) -> Option<TimerStatus> {
        let timer = self.timers.get(entity).ok()?;
        let (clock, key) = timer.seat.place()?;
        let queue = self.queues.get(clock)?;
        let armed = queue.timers.get(key)?;
        let owner = self.owner_of(entity)?;
        // The clock of a new timer may not exist yet. Its time then counts from zero.
        let reading = self.table.reading(clock).unwrap_or_default();
        let id = self.table.id(clock).or_else(|| timer.clock());
        let deadline = queue.deadline(key, reading.now)?;
        let wait = armed.wait(timer.delay);
        // The delay of a timer without a clock has not started.
        let remaining = deadline.saturating_sub(reading.now).min(wait);
        let deadline = deadline.min(reading.now.saturating_add(wait));
        Some(TimerStatus {
            entity,
            owner,
            clock: id.unwrap_or_else(|| self.clock_of(entity, owner)),
            remaining: Duration::from_nanos(remaining),
            elapsed: Duration::from_nanos(wait.saturating_sub(remaining)),
            wait: Duration::from_nanos(wait),
            deadline: reading.shown(deadline),
            interval: armed
                .interval
                .map(|interval| Duration::from_nanos(interval.get())),
            count: armed.count(),
            left: armed.left(),
            paused: armed.paused_at().is_some(),
            ..TimerStatus::done(entity)
        })
    }

    /// Returns the owner and the clock of a cooldown on `entity`, and the time that the clock shows.
    pub(super) fn cooldown_clock(&self, entity: Entity) -> Option<(Entity, ClockId, Duration)> {
        let owner = self.owner_of(entity)?;
        let clock = self.clock_of(entity, owner);
        Some((owner, clock, self.table.now(clock).ok()?))
    }

    /// Returns the clock of everything on `entity` that chooses none.
    fn clock_of(&self, entity: Entity, owner: Entity) -> ClockId {
        let parts = |entity: Entity| Some(self.parts.get(entity).ok()?.0);
        default_clock(Some(&self.table), (entity, owner), parts)
    }

    fn owner_of(&self, entity: Entity) -> Option<Entity> {
        let (_, owned) = self.parts.get(entity).ok()?;
        Some(owned.map_or(entity, |owned| owned.0))
    }

    /// Returns the timers of `owner`: first the timer on `owner` itself, then the owned ones.
    pub fn of(&self, owner: Entity) -> impl Iterator<Item = TimerStatus> {
        let owned = self.owners.get(owner);
        let owned = owned.into_iter().flat_map(Owned::iter);
        let entities = core::iter::once(owner).chain(owned);
        entities.filter_map(|entity| self.get(entity))
    }

    /// Returns the timer of `owner` with this [key](crate::timer::Keyed), if any.
    #[must_use]
    pub fn keyed(&self, owner: Entity, key: impl IntoKey) -> Option<TimerStatus> {
        let key = KeyId::find(&key.name())?;
        self.get(self.queues.keys.get(owner, key)?)
    }

    /// Returns `true` if `owner` has an armed or paused timer with this [key](crate::timer::Keyed).
    #[must_use]
    pub fn has(&self, owner: Entity, key: impl IntoKey) -> bool {
        self.keyed(owner, key).is_some()
    }

    /// Returns the remaining lifetime of an entity with a [`DespawnAfter`], if it has one.
    #[must_use]
    pub fn lifetime(&self, entity: Entity) -> Option<Duration> {
        let lifetime = self.lifetimes.get(entity).ok()?;
        let (clock, key) = lifetime.0.seat.place()?;
        let now = self.table.reading(clock).map_or(0, |reading| reading.now);
        let queue = self.queues.get(clock)?;
        let remaining = queue.deadline(key, now)?.saturating_sub(now);
        let wait = queue.timers.get(key)?.wait(lifetime.0.delay);
        Some(Duration::from_nanos(remaining.min(wait)))
    }

    /// Returns the timer of `owner` with the least remaining time, if any.
    ///
    /// Paused timers are skipped.
    #[must_use]
    pub fn next_of(&self, owner: Entity) -> Option<TimerStatus> {
        let waiting = self.of(owner).filter(|timer| !timer.paused);
        waiting.min_by_key(|timer| timer.remaining)
    }

    /// Returns the next deadline of a timer, a [`DespawnAfter`] or a request on a clock, as the clock shows it,
    /// or `None` if none waits on that clock.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    pub fn next_deadline(&self, clock: impl Into<ClockId>) -> Result<Option<Duration>, ClockError> {
        let key = self.table.find(clock.into())?.key;
        let next = self.queues.next_deadline(key);
        Ok(next.and_then(|next| Some(self.table.reading(key)?.shown(next))))
    }

    /// Returns the timers that are due on a clock within `span` from now, in order.
    ///
    /// Paused timers are skipped.
    ///
    /// # Panics
    ///
    /// Panics if `span` is a negative, infinite or invalid number.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers on the clock, plus *O*(*k* log *k*) in the number of timers
    /// returned.
    #[track_caller]
    pub fn due_within(
        &self,
        clock: impl Into<ClockId>,
        span: impl IntoDuration,
    ) -> Result<Vec<TimerStatus>, ClockError> {
        let (FoundClock { key, .. }, reading) = self.table.read(clock.into())?;
        let span = saturating_nanos(span.into_duration());
        let until = reading.now.saturating_add(span);
        let due = self.queues.due_until(key, until).into_iter();
        let timers = due.filter_map(|due| self.queues.timer((key, due)));
        let timers = timers.filter(|timer| timer.kind() == Kind::Timer);
        Ok(timers.filter_map(|timer| self.get(timer.entity)).collect())
    }

    /// Returns all timers, grouped by clock, in no particular order within each clock.
    pub fn iter(&self) -> impl Iterator<Item = TimerStatus> {
        let timers = self
            .queues
            .iter()
            .flat_map(|(_, queue)| queue.timers.iter());
        let timers = timers.filter(|(.., timer)| timer.kind() == Kind::Timer);
        timers.filter_map(|(.., timer)| self.get(timer.entity))
    }

    /// Returns the number of armed and paused timers, including timers inserted since the
    /// last run.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queues.iter().map(|(_, queue)| queue.count()).sum()
    }

    /// Returns the statistics of the last per-frame run.
    #[must_use]
    pub fn last_run(&self) -> RunStats {
        self.queues.reports.run(Scope::Of(Cadence::Frame))
    }

    /// Returns the statistics of the last run of the fixed schedule.
    #[must_use]
    pub fn last_fixed_run(&self) -> RunStats {
        self.queues.reports.run(Scope::Of(Cadence::FixedStep))
    }
}

impl fmt::Debug for ArmedTimers<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Display for ArmedTimers<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clock, remaining, wait, fired) = ("clock", "remaining", "wait", "fired");
        write!(
            f,
            "{clock:<10} {remaining:>14} {wait:>14} {fired:>6}  timer"
        )?;
        let mut timers: Vec<TimerStatus> = self.iter().collect();
        let key = |clock| self.table.find(clock).map(|found| found.key).ok();
        timers.sort_by_key(|timer| (key(timer.clock), timer.remaining));
        timers.iter().try_for_each(|timer| self.write_row(f, timer))
    }
}

impl ArmedTimers<'_, '_> {
    fn write_row(&self, f: &mut fmt::Formatter<'_>, timer: &TimerStatus) -> fmt::Result {
        let clock = timer.clock.to_string();
        let remaining = format!("{:?}", timer.remaining);
        let wait = format!("{:?}", timer.wait);
        let fired = timer.count;
        write!(f, "\n{clock:<10} {remaining:>14} {wait:>14} {fired:>6}  ")?;
        let is_owned = timer.owner != timer.entity;
        if let (true, Ok(key)) = (is_owned, self.keys.get(timer.entity)) {
            write!(f, "{:?} ", key.name())?;
        }
        self.write_name(f, timer.entity)?;
        if is_owned {
            f.write_str(" of ")?;
            self.write_name(f, timer.owner)?;
        }
        f.write_str(if timer.paused { ", paused" } else { "" })
    }

    fn write_name(&self, f: &mut fmt::Formatter<'_>, entity: Entity) -> fmt::Result {
        match self.names.get(entity) {
            Ok(name) => write!(f, "{name} ({entity})"),
            Err(_) => write!(f, "{entity}"),
        }
    }
}
