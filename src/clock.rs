//! Clocks: time lines with a speed, a pause and a reading.

mod copy;
mod due;
mod id;
mod load;
mod modifier;
mod params;
mod read;
mod row;
#[cfg(feature = "serialize")]
mod save;
mod table;
#[cfg(test)]
mod tests;
mod time;

use core::time::Duration;

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

#[cfg(feature = "worlds")]
pub(crate) use copy::is_changed;
pub(crate) use copy::{ChangedClocks, ClocksCopy, put_clocks_back};
pub(crate) use due::DueClock;
pub(crate) use id::PackedClockId;
pub use id::{ClockError, ClockId};
use load::SavedTime;
pub(crate) use modifier::on_modify_speed;
#[cfg(feature = "serialize")]
pub(crate) use modifier::update_clock_later;
pub use modifier::{SpeedModifier, SpeedModifiers};
pub use params::{Clocks, ClocksMut, OnClock};
pub(crate) use params::{
    add_missing_clock, clock_besides, clock_of, clock_on, find_clock, is_game_stopped, is_running,
    read_running,
};
#[cfg(feature = "serialize")]
pub(crate) use read::take_settings;
pub(crate) use read::{
    ClockComponents, EditedClocks, ReadClocks, add_clock, bevy_time, is_any_written, read_clocks,
    take_changes, warn,
};
use row::Row;
pub(crate) use row::{Age, Cadence, ClockKey, built_in_id};
#[cfg(feature = "serialize")]
pub use save::TimePassed;
#[cfg(feature = "serialize")]
pub(crate) use save::{ClockTimes, load_built_in, load_clock, save_built_in, write_clocks};
pub(crate) use table::{Changes, ClockTable, FRAME, FoundClock, Scope, Tick};
use time::Speed;
pub(crate) use time::{Reading, saturating_nanos, shift};

/// A time line with its own speed and pause, driven by a parent clock.
///
/// Spawn one, then put timers on it. Use [`Timer::on`](crate::Timer::on) for a single timer, or
/// [`OnClock`] for everything on an entity. The timers and callbacks on the clock's own entity, and those that the
/// entity [owns](crate::OwnedBy), use that clock by default. A clock that comes later moves them: a timer keeps its
/// remaining time. What chose a clock itself stays on that one. Setting the speed or pausing is a single write, no
/// matter how many timers are on the clock.
///
/// To slow a unit, spawn a [`SpeedModifier`]: a unit without a clock gets one. On an entity with
/// [`OnClock`], a clock created with [`new`](Self::new) is driven by the clock that `OnClock` names.
///
/// A clock starts at zero. The clocks are read once per frame, in [`First`](bevy_app::First) after
/// Bevy's time systems, and once per fixed step in [`FixedMain`](bevy_app::FixedMain), before its
/// schedules, for the clocks that the [fixed clock](ClockId::Fixed) drives. In between, every reader
/// sees the same time. The component holds the settings. For the time, ask [`Clocks::now`], or
/// [`clock_now`](crate::DueWorldExt::clock_now) in exclusive code.
///
/// A pause, a speed of zero and `Time::<Virtual>::pause` stop a clock at once, also in the middle of a
/// run. Only the fixed steps that Bevy has counted for the frame still run. Other changes count from the
/// clock's current time. You see their effect at the next reading.
///
/// There are four built-in clocks, and they are not entities. [`Clocks`] and [`ClocksMut`] find
/// them. Their speed, pause and shift affect only their timers, not Bevy's `Time`. To pause the
/// game, pause `Time<Virtual>`: its clock stops with it, and timers on [`ClockId::Real`] still
/// fire.
///
/// While a clock is paused or its speed is zero, nothing on it fires, not even an overdue timer.
/// When a clock is despawned or removed, its timers are cancelled with
/// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone), in the order in which they were
/// armed. A clock without a parent stands still: its parent has despawned, or has no clock yet. It goes on once
/// there is a clock on its parent, or once it [gets another parent](Self::set_parent). The clock of a disabled entity counts as paused.
///
/// # Replacing a clock
///
/// Inserting or assigning a new `Clock` over an old one replaces its speed, pause and parent, but keeps its
/// time, timers and callbacks. A clock's own time counts only if the entity had no clock: the time from
/// [`with_now`](Self::with_now), from a save, or from the world out of which the clock was taken. A clone of
/// a clock in a world starts at zero.
///
/// If the new parent is missing or would make a cycle, the clock keeps its parent, and Bevy's error
/// handler gets a warning with [`ClockError`] at the next reading.
///
/// # Loading
///
/// A serialized clock holds its time with the fraction of a nanosecond, its settings, and its place
/// in the order in which clocks run. To serialize a component, call
/// `World::write_timer_states` first. Clocks that are loaded between
/// two readings may arrive in any order, also before their parents. They run in the order of the saved
/// world, after the clocks that exist already.
///
/// # Reflection
///
/// With the feature `bevy_reflect`, an inspector or the remote protocol can set the fields `parent`,
/// `speed`, `paused`, `jump.set_now`, `jump.advance_by` and `jump.skip_by`. An invalid speed or parent leaves the clock
/// as it was, and Bevy's error handler gets a warning with [`ClockError`]. To serialize a clock,
/// reflection uses serde.
///
/// # Running only sometimes
///
/// [`run_clock_if`](crate::conditions::run_clock_if) makes clocks run only in a state, or under any
/// other condition. To slow a clock down for a while, use a [`SpeedModifier`].
///
/// # Time complexity
///
/// A reading looks at clocks only if one of them was written since the last reading, and then takes a few
/// nanoseconds per clock, no matter how many timers are on it. A change is *O*(*n*) in the number of clocks below it. To read a clock is *O*(*d*) in the number of
/// clocks above it.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use bevy_app::prelude::*;
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
/// use bevy_time::{TimePlugin, TimeUpdateStrategy};
///
/// #[derive(Resource, Default)]
/// struct Bites(u32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin::default()))
///     .init_resource::<Bites>()
///     .insert_resource(TimeUpdateStrategy::ManualDuration(Duration::from_millis(250)))
///     .add_observer(|_: On<TimerFired>, mut bites: ResMut<Bites>| bites.0 += 1);
/// app.update(); // Bevy's first frame takes no time.
///
/// let arena = app.world_mut().spawn(Clock::new()).id();
/// app.world_mut().spawn(Timer::every(1.0).on(arena));
/// for _ in 0..40 {
///     app.update();
/// }
/// assert_eq!(app.world().resource::<Bites>().0, 10);
///
/// app.world_mut().get_mut::<Clock>(arena).unwrap().set_speed(0.25);
/// for _ in 0..40 {
///     app.update();
/// }
/// assert_eq!(app.world().resource::<Bites>().0, 12);
/// ```
#[doc(alias("time_scale", "slow_motion"))]
#[derive(Component, Clone, Debug, PartialEq)]
#[component(map_entities, on_insert = read::on_insert, on_remove = read::on_remove)]
#[component(summary_tick)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Clock {
    parent: ClockId,
    speed: f64,
    paused: bool,
    jump: Jump,
    start: Start,
}

/// The settings of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    parent: ClockId,
    speed: f64,
    paused: bool,
}

/// The change that the next reading makes to the time of a clock in a world: it advances the clock, skips time, and
/// then sets the time that it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Clone, Default)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
struct Jump {
    advance_by: Duration,
    #[cfg_attr(feature = "serialize", serde(default))]
    skip_by: Duration,
    set_now: Option<Duration>,
}

/// Where the time of a clock is.
#[derive(Clone, Debug)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque),
    reflect(Clone, Default, PartialEq)
)]
enum Start {
    /// Here: the clock is a value that is not in a world with the plugin.
    Value(SavedTime),
    /// In the table.
    World,
    /// In the table. This is a copy, which can be serialized as long as the counter shows this number.
    #[cfg(feature = "serialize")]
    Written(SavedTime, Changes, u64),
}

impl Clock {
    /// Creates a clock driven by game time, [`ClockId::Virtual`]. On an entity with [`OnClock`], the clock that this
    /// names drives it.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parent: ClockId::Virtual,
            speed: 1.0,
            paused: false,
            jump: Jump::default(),
            start: Start::default(),
        }
    }

    /// Creates a clock driven by another one, whatever clock its entity is on.
    ///
    /// Timers on a clock driven by the fixed clock fire in the fixed schedule. The parent may be
    /// inserted after this clock. If it does not exist at the next reading, this clock stands still until it
    /// does, and Bevy's error handler gets a warning with [`ClockError::NoSuchClock`].
    #[must_use]
    pub fn of(parent: impl Into<ClockId>) -> Self {
        let mut clock = Self::new();
        clock.set_parent(parent);
        clock
    }

    /// Sets the speed, as in [`set_speed`](Self::set_speed).
    ///
    /// # Panics
    ///
    /// Panics if `ratio` is negative, infinite or not a number.
    #[must_use]
    #[track_caller]
    pub fn with_speed(mut self, ratio: f64) -> Self {
        self.set_speed(ratio);
        self
    }

    /// Sets the time that the clock shows initially. A clock that replaces another one keeps the time
    /// of that one.
    #[must_use]
    pub fn with_now(mut self, now: Duration) -> Self {
        let names_parent = self.start.time().is_none_or(|time| time.names_parent);
        self.start = Start::Value(SavedTime {
            now,
            names_parent,
            ..SavedTime::default()
        });
        self
    }

    /// Returns the clock that drives this one.
    #[must_use]
    pub fn parent(&self) -> ClockId {
        self.parent
    }

    /// Puts the clock on another parent, from now on.
    ///
    /// The clock keeps its time, its timers and its callbacks. On a parent that is driven by the
    /// [fixed clock](ClockId::Fixed), they run in the fixed schedule from their next run on. A
    /// callback that changes its schedule is called after the others of its priority.
    ///
    /// If there is no such clock at the next reading, or if the clock would drive itself, it keeps its
    /// parent, and Bevy's error handler gets a warning with [`ClockError`]. To get the error instead, use
    /// [`ClocksMut::set_parent`].
    pub fn set_parent(&mut self, parent: impl Into<ClockId>) {
        self.parent = parent.into();
        if let Start::Value(time) = &mut self.start {
            time.names_parent = true;
        }
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
        if let Err(error) = self.try_set_speed(ratio) {
            panic!("{error}");
        }
    }

    /// Sets the speed, or returns an error if it is invalid.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::InvalidSpeed`], and keeps the speed, if `ratio` is negative, infinite or not a
    /// number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Clock, clock::ClockError};
    /// let mut clock = Clock::new().with_speed(0.5);
    /// assert_eq!(clock.try_set_speed(-1.0), Err(ClockError::InvalidSpeed(-1.0)));
    /// assert_eq!(clock.speed(), 0.5);
    /// ```
    pub fn try_set_speed(&mut self, ratio: f64) -> Result<(), ClockError> {
        Speed::try_from(ratio)?;
        self.speed = ratio;
        Ok(())
    }

    /// Returns the speed. A pause or a [`SpeedModifier`] does not change it.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Stops the clock immediately.
    ///
    /// From now on, nothing on this clock fires, not even later in this run.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Starts the clock again.
    ///
    /// Every timer keeps its remaining time.
    pub fn unpause(&mut self) {
        self.paused = false;
    }

    /// Returns `true` if this clock itself is paused.
    ///
    /// A pause of its parent or of Bevy's `Time` does not count.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Advances the clock at the next reading, as a long frame would.
    ///
    /// Timers that become due fire in the next run, in order.
    ///
    /// Use this to test a weekly job in a second. Each deadline that has passed follows its
    /// [`MissedTicks`](crate::MissedTicks). [`skip_by`](Self::skip_by) fires each timer once.
    /// [`set_now`](Self::set_now) moves the clock together with all deadlines.
    /// [`fast_forward`](crate::DueWorldExt::fast_forward) has a separate run for each deadline on the way.
    #[doc(alias = "adjust")]
    pub fn advance_by(&mut self, by: Duration) {
        self.jump(by, |jump| &mut jump.advance_by);
    }

    /// Advances the clock at the next reading, and lets each timer fire at most once for the time that is skipped.
    ///
    /// Sleep until the morning: the merchant who comes every day comes once, however many days have passed.
    /// [`TimerFired::missed`](crate::TimerFired::missed) counts the other deadlines, and the timer stays on its grid.
    /// This also holds for the clocks below this one. It counts in the run that follows the reading: a clock that
    /// is stopped then fires what it has missed as after a [long frame](Self::advance_by).
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
    /// app.world_mut().get_mut::<Clock>(sun).unwrap().skip_by(3 * DAY);
    /// app.update();
    /// assert_eq!(app.world().resource::<Visits>().0, [2]);
    /// ```
    #[doc(alias("sleep", "jump"))]
    pub fn skip_by(&mut self, by: Duration) {
        self.jump(by, |jump| &mut jump.skip_by);
    }

    /// Adds to a jump of the clock in a world, or to the time of a clock that is a value.
    fn jump(&mut self, by: Duration, part: impl FnOnce(&mut Jump) -> &mut Duration) {
        if let Start::Value(time) = &mut self.start {
            time.now = time.now.saturating_add(by);
            return;
        }
        let part = part(&mut self.jump);
        *part = part.saturating_add(by);
        if let Some(now) = &mut self.jump.set_now {
            *now = now.saturating_add(by);
        }
    }

    /// Sets the clock to `now`. At the next reading, it shows `now` plus the time that passed since this one.
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
    /// let mut clock = app.world_mut().get_mut::<Clock>(sun).unwrap();
    /// clock.set_now(WEEK);
    /// app.update(); // Bevy's first frame takes no time.
    /// assert_eq!(app.world().clock_now(sun), Ok(WEEK));
    /// ```
    #[doc(alias("adjust", "shift"))]
    pub fn set_now(&mut self, now: Duration) {
        match &mut self.start {
            Start::Value(time) => time.now = now,
            _ => self.jump.set_now = Some(now),
        }
    }

    /// Returns `true` if the clock itself stands still.
    pub(crate) fn is_stopped(&self) -> bool {
        self.paused || self.speed == 0.0
    }

    /// Returns `true` if the next reading has something to take over from the component of a clock.
    fn is_edited(&self, row: &Row) -> bool {
        let is_new = matches!(self.start, Start::Value(_));
        is_new || self.jump != Jump::default() || self.settings() != row.settings
    }

    fn settings(&self) -> Settings {
        Settings {
            parent: self.parent,
            speed: self.speed,
            paused: self.paused,
        }
    }

    fn set_settings(&mut self, settings: Settings) {
        (self.parent, self.speed) = (settings.parent, settings.speed);
        self.paused = settings.paused;
    }

    /// Returns `true` while the clock brings its place among the clocks of a saved world.
    pub(crate) fn is_loaded(&self) -> bool {
        self.start.time().is_some_and(|time| time.order.is_some())
    }

    /// Leaves the time to the table from now on, and returns the time that the clock brings.
    fn enter_world(&mut self) -> SavedTime {
        let start = core::mem::replace(&mut self.start, Start::World);
        // A copy of a clock of this world runs on the same parent.
        start.time().copied().unwrap_or(SavedTime {
            names_parent: true,
            ..SavedTime::default()
        })
    }

    /// Takes the time back from the table.
    fn leave_world(&mut self, time: SavedTime) {
        self.start = Start::Value(time);
    }
}

impl Jump {
    fn apply(self, time: &mut Reading) {
        time.advance(saturating_nanos(self.advance_by));
        time.advance(saturating_nanos(self.skip_by));
        if let Some(now) = self.set_now {
            time.set_shown(now);
        }
    }
}

impl Start {
    /// Returns the time that the clock brings to a world.
    fn time(&self) -> Option<&SavedTime> {
        match self {
            Self::Value(time) => Some(time),
            Self::World => None,
            #[cfg(feature = "serialize")]
            Self::Written(time, ..) => Some(time),
        }
    }
}

impl PartialEq for Start {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a == b,
            (Self::Value(_), _) | (_, Self::Value(_)) => false,
            _ => true,
        }
    }
}

impl Default for Start {
    fn default() -> Self {
        Self::Value(SavedTime::default())
    }
}

impl MapEntities for Clock {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        self.parent.map_entities(mapper);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
