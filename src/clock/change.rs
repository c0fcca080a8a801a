//! Changes of a clock in a world.

use core::fmt;

use bevy_ecs::prelude::*;

use super::{
    Parent,
    id::{ClockError, ClockId},
    read::warn,
    row::{ClockKey, Row},
    table::ClockTable,
    time::{Speed, saturating_nanos},
};
use crate::seconds::{IntoDuration, or_panic};

/// A handle that changes a clock in a world.
///
/// A change counts from the time that the clock shows. It costs *O*(*n* × *d*) for *n* clocks below this one
/// and *d* above each of them, no matter how many timers are on them.
///
/// In exclusive code, [`change_clock`](crate::DueWorldExt::change_clock) makes each change at once. In a system,
/// [`ClocksMut`](crate::ClocksMut) and [`change_clock`](crate::DueEntityCommandsExt::change_clock) make it when the
/// commands of the system are applied. An observer's commands are applied when it has run, so a pause that it makes
/// stops the clock before the next timer fires.
///
/// # Panics
///
/// Each method that takes a span panics if the span is a negative, infinite or invalid number of seconds.
pub struct ClockMut<'a> {
    clock: ClockId,
    to: Target<'a>,
}

/// Where a change is made.
enum Target<'a> {
    Table(&'a mut ClockTable),
    /// Later, after it has been checked with the clocks as they are.
    Commands(&'a ClockTable, Commands<'a, 'a>),
}

impl<'a> ClockMut<'a> {
    pub(super) fn later(clock: ClockId, table: &'a ClockTable, commands: Commands<'a, 'a>) -> Self {
        let to = Target::Commands(table, commands);
        Self { clock, to }
    }

    /// Returns the clock.
    #[must_use]
    pub fn id(&self) -> ClockId {
        self.clock
    }

    /// Sets how many seconds pass on this clock per second on its parent, from now on.
    ///
    /// Speeds do not drift: fractions of a nanosecond carry over to the next run.
    ///
    /// # Panics
    ///
    /// Panics if `ratio` is negative, infinite or not a number. Use
    /// [`try_set_speed`](Self::try_set_speed) for a speed that comes from data.
    #[track_caller]
    pub fn set_speed(&mut self, ratio: f64) {
        or_panic(self.try_set_speed(ratio));
    }

    /// Sets the speed, or returns an error if it is invalid.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::InvalidSpeed`], and keeps the speed, if `ratio` is negative, infinite or not a
    /// number.
    pub fn try_set_speed(&mut self, ratio: f64) -> Result<(), ClockError> {
        Speed::try_from(ratio)?;
        self.change(move |row| row.settings.speed = ratio);
        Ok(())
    }

    /// Stops the clock.
    ///
    /// From now on, nothing on this clock fires, not even later in this run. Several causes that may overlap need a
    /// [`SpeedModifier`](crate::clock::SpeedModifier) of zero each.
    pub fn pause(&mut self) {
        self.change(|row| row.settings.paused = true);
    }

    /// Starts the clock again.
    ///
    /// Every timer keeps its remaining time. If a run ended the clock's turn because it was paused, its timers
    /// fire in the next run at the earliest.
    pub fn unpause(&mut self) {
        self.change(|row| row.settings.paused = false);
    }

    /// Puts the clock on another parent, from now on.
    ///
    /// The clock keeps its time, its timers and its callbacks. On a parent that is driven by the
    /// [fixed clock](ClockId::Fixed), they run in the fixed schedule from their next run on. A
    /// callback that changes its schedule is called after the others of its priority.
    ///
    /// # Errors
    ///
    /// Returns an error, and keeps the parent, if there is no such parent, if the clock would drive itself, or if
    /// it is a built-in one. If the parent is gone by the time at which the commands of [`ClocksMut`](crate::ClocksMut)
    /// are applied, Bevy's error handler gets a warning.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{ClockId, ClocksMut, clock::ClockError, prelude::*};
    /// # use bevy_ecs::{prelude::*, system::RunSystemOnce};
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let arena = world.spawn(Clock::new()).id();
    /// let spell = world.spawn(Clock::of(arena)).id();
    /// # world.run_system_once(move |mut clocks: ClocksMut| {
    /// let cycle = ClockError::Cycle(vec![arena, spell]);
    /// assert_eq!(clocks.get_mut(arena).unwrap().set_parent(spell), Err(cycle));
    /// assert_eq!(clocks.get_mut(arena).unwrap().set_parent(ClockId::Real), Ok(()));
    /// # }).unwrap();
    /// ```
    pub fn set_parent(&mut self, parent: impl Into<ClockId>) -> Result<(), ClockError> {
        let parent = parent.into();
        self.table().check_parent(self.clock, parent)?;
        self.make(move |table, key| table.set_parent(key, Parent::Chosen(parent)));
        Ok(())
    }

    /// Advances the clock, as a long frame would.
    ///
    /// Timers that become due fire in the next run, in order, and each deadline that has passed follows its
    /// [`MissedTicks`](crate::MissedTicks). Use this to test a weekly job in a second, or to drive a
    /// [manual clock](crate::Clock::manual). [`skip_by`](Self::skip_by) fires each timer once.
    /// [`set_now`](Self::set_now) moves the clock together with all deadlines.
    /// [`fast_forward`](crate::DueWorldExt::fast_forward) has a separate run for each deadline on the way.
    #[doc(alias = "adjust")]
    #[track_caller]
    pub fn advance_by(&mut self, by: impl IntoDuration) {
        let by = saturating_nanos(by.into_duration());
        self.change(move |row| row.time.jump(by));
    }

    /// Advances the clock until it shows `now`, as [`advance_by`](Self::advance_by) does.
    ///
    /// A clock that shows a later time stays as it is: the position of a song may jitter. Use
    /// [`set_now`](Self::set_now) to set a clock back.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{ClocksMut, DueSystems, prelude::*};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Resource)]
    /// struct Song {
    ///     clock: Entity,
    ///     position: Duration,
    /// }
    ///
    /// fn follow(song: Res<Song>, mut clocks: ClocksMut) -> Result {
    ///     clocks.get_mut(song.clock)?.advance_to(song.position);
    ///     Ok(())
    /// }
    ///
    /// # let mut app = App::new();
    /// // Before the timers run, so that they fire in the frame in which the song reaches their deadlines.
    /// app.add_systems(PreUpdate, follow.before(DueSystems::Timers));
    /// ```
    #[doc(alias("set_to", "seek"))]
    #[track_caller]
    pub fn advance_to(&mut self, now: impl IntoDuration) {
        let now = now.into_duration();
        self.change(move |row| row.time.jump_to(now));
    }

    /// Advances the clock, and lets each timer fire at most once for the time that is skipped.
    ///
    /// Sleep until the morning: the merchant who comes every day comes once, however many days have passed.
    /// [`TimerFired::missed`](crate::TimerFired::missed) counts the other deadlines, and the timer stays on its grid.
    /// This also holds for the clocks below this one. A deadline that was due before counts as skipped, too. Those that
    /// pass after the skip do not.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use bevy_app::prelude::*;
    /// use bevy_due::{Timer, prelude::*};
    /// use bevy_ecs::prelude::*;
    /// use bevy_time::TimePlugin;
    ///
    /// const DAY: Duration = Duration::from_secs(24 * 3600);
    ///
    /// #[derive(Resource, Default)]
    /// struct Visits(Vec<u64>);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default())).init_resource::<Visits>();
    /// let sun = app.world_mut().spawn(Clock::new()).id();
    /// app.world_mut().spawn(Timer::every(DAY).on(sun)).observe(
    ///     |visit: On<TimerFired>, mut visits: ResMut<Visits>| visits.0.push(visit.missed()),
    /// );
    /// app.update();
    /// app.world_mut().change_clock(sun, |clock| clock.skip_by(3 * DAY)).unwrap();
    /// app.update();
    /// assert_eq!(app.world().resource::<Visits>().0, [2]);
    /// ```
    #[doc(alias("sleep", "jump"))]
    #[track_caller]
    pub fn skip_by(&mut self, by: impl IntoDuration) {
        let by = saturating_nanos(by.into_duration());
        self.make(move |table, key| {
            table.skip(key, by);
            Ok(())
        });
    }

    /// Lets the clock show `now`.
    ///
    /// Deadlines move with the clock, so every timer keeps its remaining time. The cost does not
    /// depend on the number of timers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::prelude::*;
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
    ///
    /// let sun = app.world_mut().spawn(Clock::new()).id();
    /// app.world_mut().change_clock(sun, |clock| clock.set_now(WEEK)).unwrap();
    /// assert_eq!(app.world().clock_now(sun), Ok(WEEK));
    /// ```
    #[doc(alias("adjust", "shift"))]
    #[track_caller]
    pub fn set_now(&mut self, now: impl IntoDuration) {
        let now = now.into_duration();
        self.change(move |row| row.time.set_shown(now));
    }

    fn table(&self) -> &ClockTable {
        match &self.to {
            Target::Table(table) => table,
            Target::Commands(table, _) => table,
        }
    }

    /// Changes a clock from now on.
    fn change(&mut self, change: impl FnOnce(&mut Row) + Send + 'static) {
        self.make(|table, key| {
            table.change(key, change);
            Ok(())
        });
    }

    fn make(
        &mut self,
        change: impl FnOnce(&mut ClockTable, ClockKey) -> Result<(), ClockError> + Send + 'static,
    ) {
        let clock = self.clock;
        let make = move |table: &mut ClockTable| change(table, table.find(clock)?.key);
        match &mut self.to {
            // The clock is there, and the change has been checked.
            Target::Table(table) => {
                let made = make(table);
                debug_assert!(made.is_ok(), "a change of clock {clock}: {made:?}");
            }
            Target::Commands(_, commands) => commands.queue(move |world: &mut World| {
                let table = world.get_resource_mut::<ClockTable>();
                match table.map(|mut table| make(&mut table)) {
                    None | Some(Ok(())) => {}
                    // It has despawned in the meantime, which is normal.
                    Some(Err(ClockError::NoSuchClock(gone))) if gone == clock => {}
                    Some(Err(error)) => warn(&mut world.into(), error),
                }
            }),
        }
    }
}

/// Changes a clock at once.
pub(crate) fn change_clock<Out>(
    world: &mut World,
    clock: ClockId,
    change: impl FnOnce(&mut ClockMut) -> Out,
) -> Result<Out, ClockError> {
    // Pending commands may insert the clock.
    world.flush();
    let unknown = ClockError::NoSuchClock(clock);
    let table = world.get_resource_mut::<ClockTable>().ok_or(unknown)?;
    table.find(clock)?;
    let to = Target::Table(table.into_inner());
    Ok(change(&mut ClockMut { clock, to }))
}

impl ClockTable {
    /// Returns an error if a clock can't get this parent.
    fn check_parent(&self, clock: ClockId, parent: ClockId) -> Result<(), ClockError> {
        let ClockId::Own(_) = clock else {
            return Err(ClockError::BuiltIn(clock));
        };
        let (key, parent) = (self.find(clock)?.key, self.find(parent)?.key);
        self.cycle(key, parent)
            .map_or(Ok(()), |cycle| Err(ClockError::Cycle(cycle)))
    }
}

impl fmt::Debug for ClockMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClockMut").field(&self.clock).finish()
    }
}
