//! Queries of armed timers.

use alloc::vec::Vec;
use core::{
    fmt,
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, query::QueryData, system::SystemParam};

use super::{
    Arms, DespawnAfter, IntoKey, KeyTable, Keyed, Kind, RunStats, Timer, TimerLines, TimerState,
    key_id::KeyId,
    line::TimerLine,
    pending::{Pending, Start},
    place::Place,
    saving::Wait,
    setting::Setting,
};
use crate::{
    clock::{
        Cadence, Clock, ClockId, ClockKey, ClockTable, NoSuchClock, OnClock, Reading, Scope,
        SpeedModifier, clock_on, saturating_nanos,
    },
    owner::{Owned, OwnedBy},
    pause::{Paused, PausedBy, Pauses},
    queue::Key,
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
    /// The time between two deadlines, the shortest if it is [random](Timer::every_between), or
    /// `None` for a one-shot timer.
    pub interval: Option<Duration>,
    /// The number of firings.
    pub count: u64,
    /// The number of firings left, or `None` if the timer fires forever.
    pub left: Option<u32>,
    /// Whether its entity or its owner pauses the timer. A stopped clock does not count.
    pub paused: bool,
}

impl TimerStatus {
    /// Returns the state of a timer that is not armed: nothing remains, and the
    /// [`fraction`](Self::fraction) is 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{ArmedTimers, TimerStatus};
    /// use bevy_ecs::prelude::*;
    ///
    /// fn bar(entity: Entity, timers: ArmedTimers) -> f32 {
    ///     timers.get(entity).unwrap_or(TimerStatus::done(entity)).fraction()
    /// }
    /// # let _ = bar;
    /// ```
    #[must_use]
    pub fn done(entity: Entity) -> Self {
        Self {
            entity,
            owner: entity,
            clock: ClockId::Virtual,
            deadline: Duration::ZERO,
            remaining: Duration::ZERO,
            elapsed: Duration::ZERO,
            wait: Duration::ZERO,
            interval: None,
            count: 0,
            left: Some(0),
            paused: false,
        }
    }

    /// Returns the time until the last firing, on the clock, or `None` if the timer fires forever.
    ///
    /// Deadlines that a long frame skips do not count as firings, and random intervals count with
    /// their shortest length, so the time may turn out longer.
    #[must_use]
    pub fn total_remaining(&self) -> Option<Duration> {
        let further = self.left?.saturating_sub(1);
        let interval = self.interval.unwrap_or_default();
        Some(
            self.remaining
                .saturating_add(interval.saturating_mul(further)),
        )
    }

    fn waiting(self, reading: Reading, deadline: u64, wait: u64) -> Self {
        // A new timer counts from Bevy's time, which may be ahead of the last run.
        let remaining = deadline.saturating_sub(reading.now).min(wait);
        Self {
            deadline: reading.shown(deadline),
            remaining: Duration::from_nanos(remaining),
            elapsed: Duration::from_nanos(wait.saturating_sub(remaining)),
            wait: Duration::from_nanos(wait),
            ..self
        }
    }

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
    pub(super) table: Res<'w, ClockTable>,
    lines: Res<'w, TimerLines>,
    timers: Query<'w, 's, &'static Timer, Allow<Disabled>>,
    owners: Query<'w, 's, &'static Owned, Allow<Disabled>>,
    lifetimes: Query<'w, 's, &'static DespawnAfter, Allow<Disabled>>,
    parts: Query<'w, 's, SettingParts, Allow<Disabled>>,
    key_table: Res<'w, KeyTable>,
    pub(super) keys: Query<'w, 's, &'static Keyed, Allow<Disabled>>,
    pub(super) names: Query<'w, 's, &'static Name, Allow<Disabled>>,
}

/// The components that decide the setting of a timer.
#[derive(QueryData)]
struct SettingParts {
    on: Option<&'static OnClock>,
    has_clock: Has<Clock>,
    modifier: Option<&'static SpeedModifier>,
    owned: Option<&'static OwnedBy>,
    is_paused: Has<Paused>,
    pauses: Option<&'static Pauses>,
    is_paused_by: Has<PausedBy>,
    is_disabled: Has<Disabled>,
}

impl ArmedTimers<'_, '_> {
    /// Returns the state of the timer on `entity`, or `None` if the entity has no armed or paused
    /// timer.
    ///
    /// A timer in its last firing is no longer armed.
    #[must_use]
    pub fn get(&self, entity: Entity) -> Option<TimerStatus> {
        let timer = self.timers.get(entity).ok()?;
        match timer.seat().place() {
            Place::Armed(clock, key) => self.armed(entity, timer, (clock, key)),
            Place::Pending(index) => self.pending(entity, timer, index),
            Place::Nowhere | Place::Reported(_) => None,
        }
    }

    /// Returns the state of a timer in the queue of a clock.
    fn armed(
        &self,
        entity: Entity,
        timer: &Timer,
        (clock, key): (ClockKey, Key),
    ) -> Option<TimerStatus> {
        let line = self.lines.get(clock)?;
        let armed = line.queue.get(key)?;
        let reading = self.table.current(clock)?;
        let deadline = line.deadline(key, reading.now)?;
        let wait = line.wait(key, timer.first_wait())?;
        let status = TimerStatus {
            entity,
            owner: armed.owner,
            clock: self.table.id(clock)?,
            interval: armed
                .interval
                .map(|interval| Duration::from_nanos(interval.get())),
            count: armed.count(),
            left: armed.left(),
            paused: line.is_paused(key),
            ..TimerStatus::done(entity)
        };
        Some(status.waiting(reading, deadline, wait))
    }

    /// Returns the state of a timer that was inserted since the last swap.
    fn pending(&self, entity: Entity, timer: &Timer, index: usize) -> Option<TimerStatus> {
        let setting = self.setting(entity, timer)?;
        let pending = self.lines.pending.get(index)?;
        let start = self.start(pending, timer);
        // The clock may not exist yet. Its time then counts from zero.
        let found = self.table.find(setting.clock).ok();
        let reading = found.and_then(|found| self.table.current(found.key));
        let reading = reading.unwrap_or_default();
        let start = start.filter(|start| found.is_some_and(|found| found.age == start.age));
        let saved = timer.loaded().and_then(TimerState::wait);
        let (deadline, wait) = match (start, saved) {
            (Some(mut start), _) => {
                start.resume_at(reading.now);
                let wait = saved.map_or(timer.first_wait(), |wait| wait.length);
                (start.deadline, wait)
            }
            (None, Some(wait)) => (wait.deadline(reading), wait.length),
            (None, None) => {
                let deadline = timer.first_deadline(reading, 0);
                (deadline, deadline.saturating_sub(reading.now))
            }
        };
        let status = TimerStatus {
            owner: setting.owner,
            clock: setting.clock,
            interval: timer.interval(),
            left: timer.max_firings(),
            paused: setting.is_paused,
            ..TimerStatus::done(entity)
        };
        let progress = timer.loaded().and_then(TimerState::progress);
        let status = progress.map_or(status, |progress| TimerStatus {
            count: progress.count,
            left: progress.left.map(NonZeroU32::get),
            interval: progress
                .interval
                .map(NonZeroU64::get)
                .map(Duration::from_nanos),
            ..status
        });
        Some(status.waiting(reading, deadline, wait))
    }

    /// Returns the setting of a timer that was inserted since the last swap.
    fn setting(&self, entity: Entity, timer: &Timer) -> Option<Setting> {
        let owned = self.parts.get(entity).ok()?.owned;
        let owner = owned.map_or(entity, |owned| owned.0);
        let clock = timer.chosen_clock();
        Some(Setting {
            owner,
            clock: clock.unwrap_or_else(|| self.clock_of(entity, owner)),
            is_paused: self.is_paused(entity) || self.is_paused_by_owner(entity, owner),
            is_in_transit: false,
            acts: false,
        })
    }

    /// Returns the clock of a cooldown on `entity`, and the time that it shows.
    pub(super) fn cooldown_clock(&self, entity: Entity) -> Option<(ClockId, Duration)> {
        let owned = self.parts.get(entity).ok()?.owned;
        let clock = self.clock_of(entity, owned.map_or(entity, |owned| owned.0));
        let reading = self.table.current(self.table.find(clock).ok()?.key)?;
        Some((clock, reading.shown(reading.now)))
    }

    /// Returns the clock of everything on `entity` that chooses none.
    fn clock_of(&self, entity: Entity, owner: Entity) -> ClockId {
        let clock = self.clock_on(entity);
        clock.or_else(|| self.clock_on(owner)).unwrap_or_default()
    }

    fn clock_on(&self, entity: Entity) -> Option<ClockId> {
        let modifiers = self.parts.get(entity).ok()?;
        let clock = clock_on(entity, modifiers.on, modifiers.has_clock);
        clock.or_else(|| self.table.parent_of(modifiers.modifier?.clock()))
    }

    fn is_paused_by_owner(&self, entity: Entity, owner: Entity) -> bool {
        let pauses = self.parts.get(entity).ok().and_then(|it| it.pauses);
        pauses != Some(&Pauses(owner)) && self.is_paused(owner)
    }

    fn is_paused(&self, entity: Entity) -> bool {
        let modifiers = self.parts.get(entity);
        modifiers.is_ok_and(|it| it.is_paused || it.is_paused_by || it.is_disabled)
    }

    /// Returns the timers of `owner`: first the timer on `owner` itself, then the owned ones.
    pub fn of(&self, owner: Entity) -> impl Iterator<Item = TimerStatus> {
        let owned = self.owners.get(owner);
        let owned = owned.into_iter().flat_map(Owned::iter);
        let entities = core::iter::once(owner).chain(owned);
        entities.filter_map(|entity| self.get(entity))
    }

    /// Returns the timer of `owner` with this [key](crate::Keyed), if any.
    #[must_use]
    pub fn keyed(&self, owner: Entity, key: impl IntoKey) -> Option<TimerStatus> {
        let key = KeyId::find(&key.name())?;
        self.get(self.key_table.get(owner, key)?)
    }

    /// Returns the remaining lifetime of an entity with a [`DespawnAfter`], if it has one.
    #[must_use]
    pub fn lifetime(&self, entity: Entity) -> Option<Duration> {
        let lifetime = self.lifetimes.get(entity).ok()?;
        let remaining = match lifetime.seat().place() {
            Place::Armed(clock, key) => {
                let now = self.table.current(clock)?.now;
                let deadline = self.lines.get(clock)?.deadline(key, now)?;
                Duration::from_nanos(deadline.saturating_sub(now))
            }
            Place::Pending(index) => {
                let pending = self.lines.pending.get(index)?;
                let start = self.start(pending, lifetime);
                let saved = lifetime.loaded().and_then(TimerState::wait);
                let delay = saved.map_or(lifetime.delay(), Wait::remaining);
                start.map_or(delay, |start| {
                    let now = self.table.current(start.clock).map(|reading| reading.now);
                    let now = now.filter(|_| !start.is_paused).unwrap_or(start.now);
                    Duration::from_nanos(start.deadline.saturating_sub(now))
                })
            }
            Place::Nowhere | Place::Reported(_) => return None,
        };
        Some(remaining.min(lifetime.delay()))
    }

    /// Returns the timer of `owner` with the least remaining time, if any.
    ///
    /// Paused timers are skipped.
    #[must_use]
    pub fn next_of(&self, owner: Entity) -> Option<TimerStatus> {
        let waiting = self.of(owner).filter(|timer| !timer.paused);
        waiting.min_by_key(|timer| timer.remaining)
    }

    /// Returns the next deadline of a timer or a [`DespawnAfter`] on a clock, as the clock shows it,
    /// or `None` if none waits on that clock.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    pub fn next_deadline(
        &self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, NoSuchClock> {
        let clock = clock.into();
        let key = self.table.find(clock)?.key;
        let next = self.lines.get(key).and_then(TimerLine::next_deadline);
        let next = next.and_then(|next| Some(self.table.current(key)?.shown(next)));
        let pending = self.pending_on(clock).map(|timer| timer.deadline);
        let lifetimes = self.pending_lifetimes_on(key);
        Ok(next.into_iter().chain(pending).chain(lifetimes).min())
    }

    /// Returns the timers that are due on a clock within `span` from now, in order.
    ///
    /// Paused timers are skipped.
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
        let clock = clock.into();
        let key = self.table.find(clock)?.key;
        let Some(reading) = self.table.current(key) else {
            return Ok(Vec::new());
        };
        let until = reading.now.saturating_add(saturating_nanos(span));
        let line = self.lines.get(key);
        let due = line.map_or_else(Vec::new, |line| line.due_until(until));
        let entity = |key: Key| {
            let timer = line?.queue.get(key)?;
            (timer.kind() == Kind::Timer).then_some(timer.entity)
        };
        let due = due.into_iter().filter_map(|key| self.get(entity(key)?));
        let until = reading.shown(until);
        let pending = self.pending_on(clock);
        let mut due: Vec<_> = due
            .chain(pending.filter(|timer| timer.deadline <= until))
            .collect();
        // The sort is stable, so equal deadlines keep the order of arming.
        due.sort_by_key(|timer| timer.deadline);
        Ok(due)
    }

    /// Returns all timers, grouped by clock, in no particular order within each clock.
    pub fn iter(&self) -> impl Iterator<Item = TimerStatus> {
        let timers = self.lines.iter().flat_map(|line| line.queue.iter());
        let timers = timers.filter(|(.., timer)| timer.kind() == Kind::Timer);
        let armed = timers.filter_map(|(.., timer)| self.get(timer.entity));
        armed.chain(self.all_pending())
    }

    fn all_pending(&self) -> impl Iterator<Item = TimerStatus> {
        let pending = self.pending_of(Kind::Timer);
        pending.filter_map(|pending| self.get(pending.entity))
    }

    /// Returns the additions of a kind since the last swap.
    fn pending_of(&self, kind: Kind) -> impl Iterator<Item = &Pending> {
        let pending = self.lines.pending.iter();
        pending.filter(move |pending| pending.kind == kind)
    }

    /// Returns the start of a timer that was inserted since the last swap, if it has one.
    fn start<C: Arms>(&self, pending: &Pending, component: &C) -> Option<Start> {
        self.lines.pending.start(pending, component.first_wait())
    }

    /// Returns the deadlines of the lifetimes on a clock that were inserted since the last swap.
    fn pending_lifetimes_on(&self, clock: ClockKey) -> impl Iterator<Item = Duration> {
        let reading = self.table.current(clock);
        let lifetimes = self.pending_of(Kind::Lifetime);
        let starts = lifetimes.filter_map(|it| self.start(it, self.lifetimes.get(it.entity).ok()?));
        let starts = starts.filter(|start| !start.is_never());
        let starts = starts.filter(move |start| start.clock == clock && !start.is_paused);
        starts.filter_map(move |start| Some(reading?.shown(start.deadline)))
    }

    /// Returns the timers on a clock that were inserted since the last swap and are not paused.
    fn pending_on(&self, clock: ClockId) -> impl Iterator<Item = TimerStatus> {
        let pending = self.pending_of(Kind::Timer);
        let pending = pending.filter_map(move |pending| {
            let start = self.start(pending, self.timers.get(pending.entity).ok()?);
            let fires = start.is_none_or(|start| !start.is_never());
            fires.then(|| self.get(pending.entity))?
        });
        pending.filter(move |timer| timer.clock == clock && !timer.paused)
    }

    /// Returns the number of armed and paused timers, including those that were inserted since the
    /// last run.
    #[must_use]
    pub fn count(&self) -> usize {
        let armed: usize = self.lines.iter().map(TimerLine::count).sum();
        armed + self.pending_of(Kind::Timer).count()
    }

    /// Returns the number of deferrable timers that are due but had to wait in the last run, because the
    /// [`TimerBudget`](crate::TimerBudget) was spent. Paused timers are not included.
    #[must_use]
    pub fn deferred(&self) -> usize {
        let lines = self.lines.iter();
        lines.map(|line| line.deferrable.waiting().len()).sum()
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
}

impl fmt::Debug for ArmedTimers<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
