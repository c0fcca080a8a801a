//! Queries of armed timers.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt, time::Duration};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, system::SystemParam};

use super::{KeyTable, Keyed, RunStats, Timer, TimerLines, lines::TimerLine};
use crate::{
    clock::{
        Cadence, Clock, ClockId, ClockTable, NoSuchClock, Reading, Row, Scope, saturating_nanos,
    },
    owner::Owned,
    queue::TimerKey,
};

/// The state of an armed or paused timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimerStatus {
    /// The entity that carries the [`Timer`].
    pub entity: Entity,
    /// The owner of the timer, or its own entity if it has none.
    pub owner: Entity,
    /// The clock of the timer.
    pub clock: ClockId,
    /// The next deadline, as the clock shows it. For a paused timer, this is the deadline it would
    /// have if it resumed now.
    pub deadline: Duration,
    /// The time until the deadline, on the clock, or zero if the timer is overdue.
    pub remaining: Duration,
    /// The time waited so far, counted from arming or from the last deadline.
    pub elapsed: Duration,
    /// The length of the wait.
    pub wait: Duration,
    /// The number of firings.
    pub count: u64,
    /// The number of firings left, or `None` if the timer fires forever.
    pub left: Option<u32>,
    /// Whether its entity or its owner pauses the timer. A stopped clock does not count.
    pub paused: bool,
}

impl TimerStatus {
    /// Returns the fraction of the wait that has passed, from 0 to 1, for a progress bar.
    #[must_use]
    pub fn fraction(&self) -> f32 {
        if self.wait.is_zero() {
            1.0
        } else {
            self.elapsed.div_duration_f32(self.wait)
        }
    }
}

/// Finds the armed and paused timers of a world, and their state.
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
#[doc(alias("remaining", "elapsed", "is_scheduled"))]
#[derive(SystemParam)]
pub struct ArmedTimers<'w, 's> {
    table: Res<'w, ClockTable>,
    lines: Res<'w, TimerLines>,
    timers: Query<'w, 's, &'static Timer, Allow<Disabled>>,
    owners: Query<'w, 's, &'static Owned, Allow<Disabled>>,
    keys: Query<'w, 's, &'static Keyed, Allow<Disabled>>,
    key_table: Res<'w, KeyTable>,
    names: Query<'w, 's, &'static Name, Allow<Disabled>>,
    clocks: Query<'w, 's, &'static Clock, Allow<Disabled>>,
}

impl ArmedTimers<'_, '_> {
    /// Returns the state of the timer on `entity`, or `None` if the entity has no armed or paused
    /// timer.
    ///
    /// A timer in its last firing is no longer armed.
    #[must_use]
    pub fn get(&self, entity: Entity) -> Option<TimerStatus> {
        let timer = self.timers.get(entity).ok()?;
        let (clock, key) = timer.seat()?;
        let line = self.lines.get(clock)?;
        let armed = line.queue.get(key)?;
        let reading = self.read(self.table.get(clock)?);
        let deadline = line.deadline(key, reading.now)?;
        let wait = line.wait(key, timer.first_wait())?;
        // A new timer counts from Bevy's time, which may be ahead of the last run.
        let remaining = deadline.saturating_sub(reading.now).min(wait);
        Some(TimerStatus {
            entity,
            owner: armed.owner,
            clock: self.table.id(clock)?,
            deadline: reading.shown(deadline),
            remaining: Duration::from_nanos(remaining),
            elapsed: Duration::from_nanos(wait.saturating_sub(remaining)),
            wait: Duration::from_nanos(wait),
            count: armed.count(),
            left: armed.left(),
            paused: line.is_paused(key),
        })
    }

    /// Returns the timers of `owner`: first the timer on `owner` itself, then the owned ones.
    pub fn of(&self, owner: Entity) -> impl Iterator<Item = TimerStatus> {
        let owned = self.owners.get(owner).into_iter().flatten().copied();
        let entities = core::iter::once(owner).chain(owned);
        entities.filter_map(|entity| self.get(entity))
    }

    /// Returns the timer of `owner` with this [key](Keyed), if any.
    #[must_use]
    pub fn keyed(&self, owner: Entity, key: &str) -> Option<TimerStatus> {
        let is_own = self.keys.get(owner).is_ok_and(|keyed| keyed.0 == key);
        let own = if is_own { self.get(owner) } else { None };
        own.or_else(|| self.get(self.key_table.get(owner, key)?))
    }

    /// Returns the timer of `owner` with the least remaining time, if any.
    ///
    /// Paused timers are skipped.
    #[must_use]
    pub fn next_of(&self, owner: Entity) -> Option<TimerStatus> {
        let waiting = self.of(owner).filter(|timer| !timer.paused);
        waiting.min_by_key(|timer| timer.remaining)
    }

    /// Returns the next deadline on a clock, as the clock shows it, or `None` if no timer waits on
    /// that clock.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    pub fn next_deadline(
        &self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, NoSuchClock> {
        let (key, row) = self.table.find(clock.into())?;
        let next = self.lines.get(key).and_then(TimerLine::next_deadline);
        Ok(next.map(|next| self.read(row).shown(next)))
    }

    /// Returns the timers that are due on a clock within `span` from now, in order.
    ///
    /// Paused timers, and timers armed since the last run, are skipped.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    ///
    /// # Time complexity
    ///
    /// *O*(*n*) in the number of timers on the clock, plus *O*(*k* log *k*) in the number of timers
    /// returned.
    pub fn due_within(
        &self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<Vec<TimerStatus>, NoSuchClock> {
        let (key, row) = self.table.find(clock.into())?;
        let Some(line) = self.lines.get(key) else {
            return Ok(Vec::new());
        };
        let until = self.read(row).now.saturating_add(saturating_nanos(span));
        let entity = |key: TimerKey| line.queue.get(key).map(|timer| timer.entity);
        let due = line.queue.waiting_until(until).into_iter();
        Ok(due.filter_map(|key| self.get(entity(key)?)).collect())
    }

    /// Returns all timers, grouped by clock, in no particular order within each clock.
    pub fn iter(&self) -> impl Iterator<Item = TimerStatus> {
        let timers = self.lines().flat_map(|line| line.queue.iter());
        timers.filter_map(|(.., timer)| self.get(timer.entity))
    }

    /// Returns the number of armed and paused timers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines().map(|line| line.queue.len()).sum()
    }

    /// Returns the statistics of the last per-frame run.
    #[must_use]
    pub fn last_run(&self) -> RunStats {
        self.lines.stats.get(Scope::Of(Cadence::Frame))
    }

    /// Returns the statistics of the last run of the fixed schedule.
    #[must_use]
    pub fn last_fixed_run(&self) -> RunStats {
        self.lines.stats.get(Scope::Of(Cadence::FixedStep))
    }

    /// Returns a readable table of all timers, with their names, keys and owners.
    ///
    /// The rows are sorted by clock, then by remaining time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::ArmedTimers;
    /// fn list_timers(timers: ArmedTimers) {
    ///     println!("{}", timers.listing());
    /// }
    /// # bevy_ecs::system::assert_is_system(list_timers);
    /// ```
    #[must_use]
    pub fn listing(&self) -> String {
        let mut timers: Vec<TimerStatus> = self.iter().collect();
        let key = |clock| self.table.find(clock).map(|(key, _)| key).ok();
        timers.sort_by_key(|timer| (key(timer.clock), timer.remaining));
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

    fn lines(&self) -> impl Iterator<Item = &TimerLine> {
        let clocks = self.table.iter();
        clocks.filter_map(|(key, _)| self.lines.get(key))
    }

    /// Reads a clock, which may have been set since the last run.
    fn read(&self, row: &Row) -> Reading {
        self.clocks.get(row.entity).map_or(row.reading, Clock::read)
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
