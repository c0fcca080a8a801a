//! Clocks: time lines with a speed, a pause and a reading.

mod find;
mod hooks;
mod packed;
mod read;
mod reading;
mod speed;
mod table;
mod visits;

use core::{fmt, time::Duration};

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use crate::queue::NEVER;
pub use find::{Clocks, ClocksMut, OnClock};
pub(crate) use find::{FoundClock, add_missing_clock, clock_of, clock_on, find_clock};
pub(crate) use hooks::{add_clock, warn};
pub(crate) use packed::PackedClockId;
pub(crate) use read::{AnyClocks, FRAME, Tick, Times, is_running, is_running_clock};
pub(crate) use reading::{Reading, saturating_nanos, shift};
pub use speed::InvalidSpeed;
use speed::Speed;
pub(crate) use table::{Age, Cadence, ClockKey, ClockTable, Row, Scope};

/// Names a clock of a world: a built-in one, or an entity with a [`Clock`].
///
/// # Examples
///
/// ```
/// use bevy_due::{ClockId, Timer};
///
/// // Runs even while the game is paused.
/// let autosave = Timer::every_secs(300.0).on(ClockId::Real);
/// assert_eq!(autosave.clock(), Some(ClockId::Real));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Clone, Debug, Default, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum ClockId {
    /// Real time: Bevy's `Time<Real>`.
    Real,
    /// Game time, the default: Bevy's `Time<Virtual>`.
    #[default]
    Virtual,
    /// One second per frame, even while the game is paused.
    Frames,
    /// The time of the fixed schedule: Bevy's `Time<Fixed>`. Its timers fire in
    /// [`FixedPreUpdate`](bevy_app::FixedPreUpdate).
    Fixed,
    /// The clock on this entity.
    Own(Entity),
}

impl MapEntities for ClockId {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        if let Self::Own(clock) = self {
            *clock = mapper.get_mapped(*clock);
        }
    }
}

impl From<Entity> for ClockId {
    fn from(clock: Entity) -> Self {
        Self::Own(clock)
    }
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("real"),
            Self::Virtual => f.write_str("virtual"),
            Self::Frames => f.write_str("frames"),
            Self::Fixed => f.write_str("fixed"),
            Self::Own(clock) => write!(f, "{clock}"),
        }
    }
}

/// The error for a clock that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchClock(pub ClockId);

impl fmt::Display for NoSuchClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ClockId::Own(entity) => {
                write!(
                    f,
                    "no clock on entity {entity}: insert a `Clock` there first"
                )
            }
            built_in => write!(
                f,
                "no {built_in} clock: its entity was despawned, or the app has no `DuePlugin`"
            ),
        }
    }
}

impl core::error::Error for NoSuchClock {}

/// A time line with its own speed and pause, driven by a parent clock.
///
/// Spawn one, then put timers on it. Use [`Timer::on`](crate::Timer::on) for a single timer, or
/// [`OnClock`] for everything on an entity. Timers on the clock's own entity use that clock by
/// default. Setting the speed or pausing is a single write, no matter how many timers are on the
/// clock.
///
/// A clock starts at zero. It is read once per run, and shows the same time throughout that run.
///
/// The four built-in clocks have a `Clock` too. [`Clocks`] and [`ClocksMut`] find them. Their
/// speed, pause and shift affect only their timers, not Bevy's `Time`. To pause the game, pause
/// `Time<Virtual>`: its clock stops with it, and timers on [`ClockId::Real`] still fire.
///
/// While a clock is paused or its speed is zero, nothing on it fires, not even an overdue timer.
/// When a clock is despawned or replaced, its timers are cancelled with
/// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone). A clock stops for good when its
/// parent despawns. The clock of a disabled entity counts as paused. The parent is fixed when the
/// clock is inserted; to change it, insert another clock. The built-in clocks are ordinary
/// entities: code that despawns every entity despawns them too.
///
/// # Time complexity
///
/// A run is *O*(*c*) in the number of clocks, about a tenth of a microsecond each. Hundreds of
/// clocks cost next to nothing in practice. Let thousands of entities share a clock.
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
/// app.world_mut().spawn(Timer::every_secs(1.0).on(arena));
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
#[derive(Component, Clone, Copy, Debug)]
#[component(map_entities, on_insert = hooks::on_insert, on_discard = hooks::on_discard)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(opaque),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(
    feature = "serialize",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "ClockData", try_from = "ClockData")
)]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub struct Clock {
    parent: ClockId,
    speed: Speed,
    paused: bool,
    /// The nanoseconds that have passed, counted from [`START`], always less than [`NEVER`].
    now: u64,
    /// A fraction of a nanosecond, in units of 2^-64.
    carry: u64,
    /// The difference between the time shown and the time passed.
    offset: i128,
}

/// The reading at which a clock starts, 73 years into the `u64`. A clock that is set to a later
/// time can therefore represent deadlines before that time.
const START: u64 = 1 << 61;

impl Clock {
    /// Creates a clock driven by game time, [`ClockId::Virtual`].
    #[must_use]
    pub fn new() -> Self {
        Self::of(ClockId::Virtual)
    }

    /// Creates a clock driven by another one.
    ///
    /// Timers on a clock driven by the fixed clock fire in the fixed schedule. If the parent does
    /// not exist when the clock is inserted, the clock stands still, and Bevy's error handler gets
    /// a warning.
    #[must_use]
    pub fn of(parent: impl Into<ClockId>) -> Self {
        Self {
            parent: parent.into(),
            speed: Speed::NORMAL,
            paused: false,
            now: START,
            carry: 0,
            offset: -i128::from(START),
        }
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

    /// Sets the time that the clock shows initially.
    #[must_use]
    pub fn with_now(mut self, now: Duration) -> Self {
        self.set_now(now);
        self
    }

    /// Returns the clock that drives this one.
    #[must_use]
    pub fn parent(&self) -> ClockId {
        self.parent
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
    /// Returns [`InvalidSpeed`], and keeps the speed, if `ratio` is negative, infinite or not a
    /// number.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_due::{Clock, InvalidSpeed};
    /// let mut clock = Clock::new().with_speed(0.5);
    /// assert_eq!(clock.try_set_speed(-1.0), Err(InvalidSpeed(-1.0)));
    /// assert_eq!(clock.speed(), 0.5);
    /// ```
    pub fn try_set_speed(&mut self, ratio: f64) -> Result<(), InvalidSpeed> {
        self.speed = ratio.try_into()?;
        Ok(())
    }

    /// Returns the speed. A pause does not change it.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed.ratio()
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

    /// Returns the time that the clock shows, on the same time line as
    /// [`TimerFired::deadline`](crate::TimerFired::deadline).
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(shift(self.now, self.offset))
    }

    /// Advances the clock, as a long frame would.
    ///
    /// Timers that become due fire in the next run, in order.
    ///
    /// Use this to test a weekly job in a second. In contrast, [`set_now`](Self::set_now) moves the
    /// clock together with all deadlines. [`fast_forward`](crate::DueWorldExt::fast_forward) has a
    /// separate run for each deadline on the way.
    #[doc(alias = "adjust")]
    pub fn advance_by(&mut self, by: Duration) {
        self.advance_by_nanos(saturating_nanos(by));
    }

    /// Sets the time that the clock shows.
    ///
    /// Deadlines move with the clock, so every timer keeps its remaining time. The cost does not
    /// depend on the number of timers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use core::time::Duration;
    /// # use bevy_due::Clock;
    /// const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
    ///
    /// let mut clock = Clock::new();
    /// clock.set_now(WEEK - Duration::from_secs(1));
    /// assert_eq!(clock.now().as_secs(), 604_799);
    /// ```
    #[doc(alias("adjust", "shift"))]
    pub fn set_now(&mut self, now: Duration) {
        let now = i128::from(saturating_nanos(now).min(NEVER - 1));
        self.offset = now - i128::from(self.now);
    }

    pub(crate) fn advance_by_nanos(&mut self, nanos: u64) {
        self.now = self.now.saturating_add(nanos).min(NEVER - 1);
    }

    /// Returns the span on the parent clock in which this clock advances by `nanos`, or `None` if
    /// this clock is stopped.
    pub(crate) fn parent_span(&self, nanos: u64) -> Option<u64> {
        if self.is_stopped() {
            return None;
        }
        self.speed.unscale(nanos, self.carry)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.paused || self.speed.is_zero()
    }

    /// Advances the clock as its parent moves from the time `from` to the time `to`.
    pub(crate) fn follow(&mut self, from: u64, to: u64) -> Reading {
        if !self.paused && from <= to {
            let (by, carry) = self.speed.scale(to - from, self.carry);
            self.carry = carry;
            self.advance_by_nanos(by);
        } else if !self.paused {
            // The parent was set back.
            let (by, _) = self.speed.scale(from - to, 0);
            self.now = self.now.saturating_sub(by);
        }
        self.read()
    }

    pub(crate) fn read(&self) -> Reading {
        Reading {
            now: self.now,
            stopped: self.is_stopped(),
            offset: self.offset,
        }
    }
}

impl MapEntities for Clock {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        self.parent.map_entities(mapper);
    }
}

/// Two clocks are equal if they show the same time and advance in the same way.
impl PartialEq for Clock {
    fn eq(&self, other: &Self) -> bool {
        let state = |clock: &Self| (clock.parent, clock.speed, clock.paused, clock.carry);
        state(self) == state(other) && self.now() == other.now()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// The serialized form of a [`Clock`].
#[cfg(feature = "serialize")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Clock", deny_unknown_fields)]
struct ClockData {
    parent: ClockId,
    speed: f64,
    paused: bool,
    now: Duration,
    /// The fraction of a nanosecond that has passed beyond `now`, in units of 2^-64.
    #[serde(default)]
    fraction: u64,
}

#[cfg(feature = "serialize")]
impl From<Clock> for ClockData {
    fn from(clock: Clock) -> Self {
        Self {
            parent: clock.parent,
            speed: clock.speed(),
            paused: clock.paused,
            now: clock.now(),
            fraction: clock.carry,
        }
    }
}

#[cfg(feature = "serialize")]
impl TryFrom<ClockData> for Clock {
    type Error = InvalidSpeed;

    fn try_from(data: ClockData) -> Result<Self, InvalidSpeed> {
        let mut clock = Self::of(data.parent).with_now(data.now);
        clock.paused = data.paused;
        clock.carry = data.fraction;
        clock.try_set_speed(data.speed)?;
        Ok(clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_stops_short_of_never() {
        let mut clock = Clock::new();
        assert_eq!(clock.follow(0, NEVER).now, NEVER - 1);
        clock.advance_by(Duration::MAX);
        assert_eq!(clock.read().now, NEVER - 1);
    }

    #[test]
    fn a_clock_follows_its_parent_back() {
        let mut clock = Clock::new().with_speed(2.0);
        clock.follow(0, 100);
        assert_eq!(clock.follow(100, 70).now, START + 140);
        assert_eq!(clock.follow(70, 80).now, START + 160);
    }

    #[test]
    fn the_time_shown_can_be_set_back() {
        let mut clock = Clock::new();
        clock.follow(0, 500);
        clock.set_now(Duration::from_nanos(20));
        assert_eq!(clock.now().as_nanos(), 20);
        let reading = clock.read();
        assert_eq!(reading.passed(Duration::from_nanos(30)), START + 510);
        assert_eq!(reading.shown(START + 510).as_nanos(), 30);
        assert_eq!(reading.shown(NEVER), Duration::from_nanos(NEVER));
    }
}
