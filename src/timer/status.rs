//! Asking after timers.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use bevy_ecs::{
    entity::Entity,
    entity_disabling::Disabled,
    name::Name,
    query::Allow,
    system::{Query, Res, SystemParam},
};

use super::{Keyed, RunStats, Timelines, Timer, Timers, timeline::Timeline, timelines::Scope};
use crate::{
    clock::{Clock, ClockId, Reading, UnknownClock, saturating_nanos},
    queue::TimerKey,
};

/// What is known of an armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimerStatus {
    /// The entity that carries the [`Timer`].
    pub entity: Entity,
    /// The entity that the timer belongs to; without an owner of its own, the entity itself.
    pub owner: Entity,
    /// The clock that it is on.
    pub clock: ClockId,
    /// When it is due next, as its clock will show; of a paused timer, if it went on now.
    pub deadline: Duration,
    /// How long until then, on its clock. Zero if it is overdue.
    pub remaining: Duration,
    /// How much of its wait is over: since it was armed, or since its last deadline.
    pub elapsed: Duration,
    /// How long that wait is in all.
    pub wait: Duration,
    /// How often it has fired.
    pub count: u64,
    /// How often it will fire yet, or `None` for ever.
    pub left: Option<u32>,
    /// Whether it is paused itself, or by its owner. Its clock may stand still, too.
    pub paused: bool,
}

impl TimerStatus {
    /// Returns how much of the wait is over, from 0 to 1: for a progress bar.
    #[must_use]
    pub fn fraction(&self) -> f32 {
        if self.wait.is_zero() {
            1.0
        } else {
            self.elapsed.div_duration_f32(self.wait)
        }
    }
}

/// Questions about the armed timers of a world.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
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
#[doc(alias("remaining", "elapsed", "is_scheduled"))]
#[derive(SystemParam)]
pub struct ArmedTimers<'w, 's> {
    timelines: Res<'w, Timelines>,
    timers: Query<'w, 's, &'static Timer, Allow<Disabled>>,
    owners: Query<'w, 's, &'static Timers, Allow<Disabled>>,
    keys: Query<'w, 's, &'static Keyed, Allow<Disabled>>,
    names: Query<'w, 's, &'static Name, Allow<Disabled>>,
    clocks: Query<'w, 's, &'static Clock, Allow<Disabled>>,
}

impl ArmedTimers<'_, '_> {
    /// Returns what is known of the timer on `entity`, or `None` if it has none that is armed or
    /// paused. One that is firing its last has none any more.
    #[must_use]
    pub fn get(&self, entity: Entity) -> Option<TimerStatus> {
        let timer = self.timers.get(entity).ok()?;
        let (line_key, key) = timer.armed()?;
        let line = self.timelines.get(line_key)?;
        let armed = line.queue.get(key)?;
        let reading = self.read(line);
        let deadline = line.deadline(key, reading.now)?;
        let remaining = deadline.saturating_sub(reading.now);
        let wait = line.wait(key, timer.first_wait())?;
        Some(TimerStatus {
            entity,
            owner: armed.owner,
            clock: self.timelines.id(line_key)?,
            deadline: reading.shown(deadline),
            remaining: Duration::from_nanos(remaining),
            elapsed: Duration::from_nanos(wait.saturating_sub(remaining)),
            wait: Duration::from_nanos(wait),
            count: armed.count(),
            left: armed.left(),
            paused: line.is_paused(key),
        })
    }

    /// Returns the timers of `owner`: its own first, then those that belong to it.
    pub fn of(&self, owner: Entity) -> impl Iterator<Item = TimerStatus> {
        let owned = self.owners.get(owner).into_iter().flatten().copied();
        let entities = core::iter::once(owner).chain(owned);
        entities.filter_map(|entity| self.get(entity))
    }

    /// Returns the timer of `owner` that has this [key](Keyed), or `None` if there is none.
    #[must_use]
    pub fn keyed(&self, owner: Entity, key: &str) -> Option<TimerStatus> {
        let is_of_key = |entity| self.keys.get(entity).is_ok_and(|keyed| keyed.0 == key);
        self.of(owner).find(|timer| is_of_key(timer.entity))
    }

    /// Returns the timer of `owner` that has the least time to go, of those that are not paused.
    #[must_use]
    pub fn next_of(&self, owner: Entity) -> Option<TimerStatus> {
        let waiting = self.of(owner).filter(|timer| !timer.paused);
        waiting.min_by_key(|timer| timer.remaining)
    }

    /// Returns the next deadline on a clock, as that will show, or `None` if nothing waits there.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn next_deadline(
        &self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, UnknownClock> {
        let (_, line) = self.timelines.find(clock.into())?;
        let reading = self.read(line);
        Ok(line.next_deadline().map(|next| reading.shown(next)))
    }

    /// Returns what is due on a clock within `span` from now, in the order in which it is. Paused
    /// timers and those armed since the last run are left out.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the timers of the clock, and *O*(*k* log *k*) in those returned.
    pub fn due_within(
        &self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<Vec<TimerStatus>, UnknownClock> {
        let (_, line) = self.timelines.find(clock.into())?;
        let now = self.read(line).now;
        let until = now.saturating_add(saturating_nanos(span));
        let entity = |key: TimerKey| line.queue.get(key).map(|timer| timer.entity);
        let due = line.queue.waiting_until(until).into_iter();
        Ok(due.filter_map(|key| self.get(entity(key)?)).collect())
    }

    /// Returns all timers, clock by clock, in no particular order on each.
    pub fn iter(&self) -> impl Iterator<Item = TimerStatus> {
        let lines = self.timelines.iter();
        let timers = lines.flat_map(|(_, line)| line.queue.iter());
        timers.filter_map(|(.., timer)| self.get(timer.entity))
    }

    /// Returns how many timers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        let lines = self.timelines.iter();
        lines.map(|(_, line)| line.queue.len()).sum()
    }

    /// Returns what the last run of the frame did.
    #[must_use]
    pub fn last_run(&self) -> RunStats {
        self.timelines.stats(Scope::Frame)
    }

    /// Returns what the last run of the fixed schedule did.
    #[must_use]
    pub fn last_fixed_run(&self) -> RunStats {
        self.timelines.stats(Scope::Fixed)
    }

    /// Returns a table of all timers for people to read: by clock, the next to be due first, with
    /// names, keys and owners.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::prelude::*;
    /// fn list_timers(timers: ArmedTimers) {
    ///     println!("{}", timers.listing());
    /// }
    /// # bevy_ecs::system::assert_is_system(list_timers);
    /// ```
    #[must_use]
    pub fn listing(&self) -> String {
        let mut timers: Vec<TimerStatus> = self.iter().collect();
        timers.sort_by_key(|timer| (self.timelines.key(timer.clock), timer.remaining));
        let rows = timers.iter().map(|timer| self.row(timer));
        let rows: Vec<_> = rows.collect();
        format!(
            "{:<10} {:>14} {:>14} {:>6}  timer\n{}",
            "clock",
            "remaining",
            "wait",
            "fired",
            rows.join("\n")
        )
    }

    /// Reads a clock, which may have been set since the last run.
    fn read(&self, line: &Timeline) -> Reading {
        let clock = line.clock.and_then(|clock| self.clocks.get(clock).ok());
        clock.map_or(line.reading, Clock::read)
    }

    fn row(&self, timer: &TimerStatus) -> String {
        let name = |entity: Entity| match self.names.get(entity) {
            Ok(name) => format!("{name} ({entity})"),
            Err(_) => entity.to_string(),
        };
        let key = match self.keys.get(timer.entity) {
            Ok(key) => format!("{:?} ", key.0),
            Err(_) => "".to_string(),
        };
        let owner = if timer.owner == timer.entity {
            "".to_string()
        } else {
            format!(" of {}", name(timer.owner))
        };
        let paused = if timer.paused { ", paused" } else { "" };
        format!(
            "{:<10} {:>14} {:>14} {:>6}  {key}{}{owner}{paused}",
            timer.clock.to_string(),
            format!("{:?}", timer.remaining),
            format!("{:?}", timer.wait),
            timer.count,
            name(timer.entity),
        )
    }
}

impl fmt::Debug for ArmedTimers<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
