//! Clocks: time lines with a speed, a pause and a reading.

mod change;
mod copy;
mod due;
mod frame;
mod id;
mod modifier;
mod params;
mod pending;
mod read;
mod row;
#[cfg(feature = "serialize")]
mod save;
mod table;
#[cfg(test)]
mod tests;
mod time;
mod wakes;

use core::time::Duration;

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

pub use change::ClockMut;
pub(crate) use change::change_clock;
pub(crate) use copy::{ChangedClocks, ClocksCopy, put_clocks_back};
pub(crate) use due::DueClock;
pub(crate) use id::PackedClockId;
pub use id::{ClockError, ClockId};
pub(crate) use modifier::on_modify_speed;
#[cfg(feature = "serialize")]
pub(crate) use modifier::update_clock_later;
pub use modifier::{SpeedModifier, SpeedModifiers};
pub use params::{Clocks, ClocksMut, OnClock};
pub(crate) use params::{
    add_missing_clock, clock_of, default_clock, find_clock, is_game_stopped, is_game_stopped_in,
};
pub(crate) use read::{
    add_clock, bevy_time, end_arrival, follow_on_clock, read_clocks, settle_clocks, warn,
};
pub(crate) use row::{Age, Cadence, ClockKey};
#[cfg(feature = "serialize")]
pub use save::TimePassed;
#[cfg(feature = "serialize")]
pub(crate) use save::{ClockState, ClockTimes, load_built_in, save_built_in};
pub(crate) use table::{ClockTable, FRAME, FoundClock, Scope, Tick};
use time::Speed;
pub(crate) use time::{Reading, saturating_nanos, shift};

use crate::seconds::{IntoDuration, or_panic};

/// A time line with its own speed and pause, driven by a parent clock.
///
/// Spawn one, then put timers on it. Use [`Timer::on`](crate::Timer::on) for a single timer, or
/// [`OnClock`] for everything on an entity. The timers and callbacks on the clock's own entity, and those that the
/// entity [owns](crate::OwnedBy), use that clock by default. A clock that comes later moves them: a timer keeps its
/// remaining time. A timer that chose its clock stays there. Setting the speed or pausing is a single write, no
/// matter how many timers are on the clock.
///
/// The component is immutable, so a clock never gets out of sync with the world. It holds the settings with which
/// it was inserted. To change a clock, use [`ClocksMut`], [`change_clock`](crate::DueEntityCommandsExt::change_clock)
/// or [insert another one](#replacing-a-clock). To read the present settings and the time, ask [`Clocks`], or call
/// [`clock_now`](crate::DueWorldExt::clock_now) in exclusive code.
///
/// To slow a unit, spawn a [`SpeedModifier`]: a unit without a clock gets one. On an entity with
/// [`OnClock`], a clock created with [`new`](Self::new) is driven by the clock that `OnClock` names.
///
/// A clock starts at zero. The clocks are read once per frame, in [`First`](bevy_app::First) after
/// Bevy's time systems, and once per fixed step in [`FixedMain`](bevy_app::FixedMain), before its
/// schedules, for the clocks that the [fixed clock](ClockId::Fixed) drives. In between, every reader
/// sees the same time, unless a clock is told to jump.
///
/// A change counts from the time that the clock shows, and takes effect at once. A pause, a speed of zero and
/// `Time::<Virtual>::pause` stop a clock even in the middle of a run. Only the fixed steps that Bevy has counted
/// for the frame still run.
///
/// There are four built-in clocks, and they are not entities. [`Clocks`] and [`ClocksMut`] find
/// them. Their speed, pause and shift affect only their timers, not Bevy's `Time`. To pause the
/// game, pause `Time<Virtual>`: its clock stops with it, and timers on [`ClockId::Real`] still
/// fire.
///
/// While a clock is paused or its speed is zero, nothing on it fires, not even an overdue timer.
/// When a clock is despawned or removed, its timers are cancelled with
/// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone), in the order in which they were
/// armed. A clock stands still if its parent has despawned, or has no clock yet. It goes on once
/// there is a clock on its parent, or once it [gets another parent](ClockMut::set_parent). The clock of a disabled
/// entity counts as paused.
///
/// # Manual clocks
///
/// A clock created with [`manual`](Self::manual) has no parent. It moves only when you move it. Use it for turns, for a
/// song, or for the time of a server.
///
/// # Replacing a clock
///
/// Inserting a new `Clock` over an old one replaces its speed, pause and parent, but keeps its
/// time, timers and callbacks. The time from [`with_now`](Self::with_now) counts only if the entity had no clock. A clone of a component starts like the original: with the time at which that was inserted. To copy a
/// clock with its present time, use [`Clocks::get`].
///
/// If the new parent is missing or would make a cycle, the clock keeps its parent, and Bevy's error
/// handler gets a warning with [`ClockError`]. A parent that arrives before the next reading is not missing.
///
/// # Serialization
///
/// The serialized form of a clock has its settings, and the time with which it starts. To save how far a clock has come,
/// use the module `save`.
///
/// # Running only sometimes
///
/// [`run_clock_if`](crate::conditions::run_clock_if) makes clocks run only in a state, or under any
/// other condition. To slow or stop a clock for a while, use a [`SpeedModifier`].
///
/// # Time complexity
///
/// A reading costs nothing per clock. A change is *O*(*n*) in the number of clocks below the clock. To read a clock is
/// *O*(*d*) in the number of clocks above it.
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
/// app.world_mut().change_clock(arena, |clock| clock.set_speed(0.25)).unwrap();
/// for _ in 0..40 {
///     app.update();
/// }
/// assert_eq!(app.world().resource::<Bites>().0, 12);
/// ```
#[doc(alias("time_scale", "slow_motion"))]
#[derive(Component, MapEntities, Clone, Debug, PartialEq)]
#[component(immutable, on_insert = read::on_insert, on_remove = read::on_remove)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Clock {
    #[entities]
    parent: Parent,
    #[cfg_attr(
        feature = "serialize",
        serde(deserialize_with = "save::deserialize_speed")
    )]
    speed: f64,
    paused: bool,
    /// The time with which the clock starts.
    now: Duration,
}

/// The settings of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    parent: Parent,
    speed: f64,
    paused: bool,
}

/// The clock that drives another one.
#[derive(MapEntities, Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::clock",
    reflect(Clone, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
enum Parent {
    /// No parent was chosen: the [`OnClock`] of its entity names this one, or it is the game clock.
    Default(#[entities] ClockId),
    Chosen(#[entities] ClockId),
    /// The clock is manual.
    None,
}

impl Parent {
    fn id(self) -> Option<ClockId> {
        match self {
            Self::Default(id) | Self::Chosen(id) => Some(id),
            Self::None => None,
        }
    }
}

impl Default for Parent {
    fn default() -> Self {
        Self::Default(ClockId::default())
    }
}

impl Clock {
    /// Creates a clock driven by game time, [`ClockId::Virtual`]. On an entity with [`OnClock`], the clock that this
    /// names drives it.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parent: Parent::default(),
            speed: 1.0,
            paused: false,
            now: Duration::ZERO,
        }
    }

    /// Creates a clock driven by another one, whatever clock its entity is on.
    ///
    /// Timers on a clock driven by the fixed clock fire in the fixed schedule. The parent may be
    /// inserted after this clock. If it does not exist at the next reading, this clock stands still until it
    /// does, and Bevy's error handler gets a warning with [`ClockError::NoSuchClock`].
    #[must_use]
    pub fn of(parent: impl Into<ClockId>) -> Self {
        Self {
            parent: Parent::Chosen(parent.into()),
            ..Self::new()
        }
    }

    /// Creates a clock without a parent, which moves only when you move it.
    ///
    /// [`advance_by`](ClockMut::advance_by), [`advance_to`](ClockMut::advance_to), [`skip_by`](ClockMut::skip_by) and
    /// [`set_now`](ClockMut::set_now) move it. Timers that become due fire in the next run, with the lateness that they
    /// have on this clock. A [fast-forward](crate::DueWorldExt::fast_forward) moves it, too, and fires each timer in
    /// the call, at its deadline. Otherwise the clock stands still, while the game runs and while it is paused. The
    /// speed of a manual clock does not matter, unless it is zero: then the clock is stopped.
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
    /// #[derive(Resource, Default)]
    /// struct Ticks(Vec<Duration>);
    ///
    /// let mut app = App::new();
    /// app.add_plugins((TimePlugin, DuePlugin::default())).init_resource::<Ticks>();
    /// let battle = app.world_mut().spawn(Clock::manual()).id();
    /// // A poison that ticks every two turns.
    /// app.world_mut().spawn(Timer::every(2).on(battle)).observe(
    ///     |tick: On<TimerFired>, mut ticks: ResMut<Ticks>| ticks.0.push(tick.deadline()),
    /// );
    /// app.update();
    /// app.world_mut().change_clock(battle, |clock| clock.advance_by(3)).unwrap();
    /// app.update();
    /// assert_eq!(app.world().resource::<Ticks>().0, [Duration::from_secs(2)]);
    /// app.update();
    /// assert_eq!(app.world().clock_now(battle), Ok(Duration::from_secs(3)), "it waits for the next turn");
    /// ```
    #[doc(alias("driven", "turns", "ManualDuration"))]
    #[must_use]
    pub fn manual() -> Self {
        Self {
            parent: Parent::None,
            ..Self::new()
        }
    }

    /// Sets the speed, as in [`ClockMut::set_speed`].
    ///
    /// # Panics
    ///
    /// Panics if `ratio` is negative, infinite or not a number. Use
    /// [`try_with_speed`](Self::try_with_speed) for a speed that comes from data.
    #[must_use]
    #[track_caller]
    pub fn with_speed(self, ratio: f64) -> Self {
        or_panic(self.try_with_speed(ratio))
    }

    /// Sets the speed, or returns an error if it is invalid.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::InvalidSpeed`] if `ratio` is negative, infinite or not a number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Clock, clock::ClockError};
    /// assert_eq!(Clock::new().try_with_speed(0.5).unwrap().speed(), 0.5);
    /// assert_eq!(Clock::new().try_with_speed(-1.0), Err(ClockError::InvalidSpeed(-1.0)));
    /// ```
    pub fn try_with_speed(self, ratio: f64) -> Result<Self, ClockError> {
        Speed::try_from(ratio)?;
        Ok(Self {
            speed: ratio,
            ..self
        })
    }

    /// Lets the clock start paused, as if by [`ClockMut::pause`].
    #[must_use]
    pub fn paused(self) -> Self {
        Self {
            paused: true,
            ..self
        }
    }

    /// Sets the time that the clock shows initially. A clock that replaces another one keeps the time
    /// of that one.
    ///
    /// # Panics
    ///
    /// Panics if `now` is a negative, infinite or invalid number.
    #[must_use]
    #[track_caller]
    pub fn with_now(self, now: impl IntoDuration) -> Self {
        Self {
            now: now.into_duration(),
            ..self
        }
    }

    /// Returns the clock that drives this one, or `None` for a [manual](Self::manual) clock.
    #[must_use]
    pub fn parent(&self) -> Option<ClockId> {
        self.parent.id()
    }

    /// Returns the speed. A pause or a [`SpeedModifier`] does not change it.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// Returns `true` if this clock itself is paused.
    ///
    /// A pause of its parent or of Bevy's `Time` does not count.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns the time with which the clock starts.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Creates a clock that is driven by another one unless an [`OnClock`] comes.
    pub(crate) fn beneath(parent: ClockId) -> Self {
        Self {
            parent: Parent::Default(parent),
            ..Self::new()
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            parent: self.parent,
            speed: self.speed,
            paused: self.paused,
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
