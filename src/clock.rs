//! The clocks that timers live on: how fast they run, whether they stand still, what they show.

mod speed;

use core::{fmt, time::Duration};

use bevy_ecs::{
    component::Component,
    entity::{Entity, EntityMapper, MapEntities},
};
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use crate::queue::NEVER;
pub use speed::InvalidSpeed;
use speed::Speed;

/// One of the clocks of a world: those that are there from the start, or an entity with a
/// [`Clock`].
///
/// # Examples
///
/// ```
/// use bevy_due::{ClockId, Timer};
///
/// // Goes on while the game is paused.
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
    /// The time that really passes: Bevy's `Time<Real>`.
    Real,
    /// The time of the game: Bevy's `Time<Virtual>`. Timers live here unless told otherwise.
    #[default]
    Virtual,
    /// A second for each frame, whether or not the game is paused.
    Frames,
    /// The time of the fixed schedule: Bevy's `Time<Fixed>`. Its timers fire in
    /// [`FixedPreUpdate`](bevy_app::FixedPreUpdate), in step with it.
    Fixed,
    /// A clock of your own.
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

/// There is no such clock: the entity is gone, or has no [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownClock(pub ClockId);

impl fmt::Display for UnknownClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no clock {}", self.0)
    }
}

impl core::error::Error for UnknownClock {}

/// A time line of its own, with its own speed and pause, that runs on a parent clock.
///
/// Spawn one, and put timers on it with [`Timer::on`](crate::Timer::on), all timers of an entity
/// with [`OnClock`](crate::OnClock), or those of the very entity that carries the clock without
/// another word. Setting its speed or pausing it is one write, whatever number of timers is on it.
/// It starts at zero, follows its parent once a run, and shows the same time during all of that.
///
/// The four clocks that are there from the start have a `Clock`, too, which the system parameters
/// [`Clocks`](crate::Clocks) and [`ClocksMut`](crate::ClocksMut) find: a speed, pause or shift of theirs concerns their timers alone,
/// not Bevy's `Time`. To pause the game, pause `Time<Virtual>`: its clock stands still with it, and
/// timers on [`ClockId::Real`] go on.
///
/// While a clock is paused or its speed is zero, nothing on it fires, not even what is due. When
/// it is despawned, or another `Clock` put in its place, its timers are cancelled, as
/// [`CancelReason::ClockGone`](crate::CancelReason::ClockGone). A clock whose parent has gone
/// stands still. A disabled clock entity counts as paused. The parent is chosen for good when the
/// clock is inserted; to choose another, insert another clock. The clocks that are there from the
/// start are entities like any other: who despawns everything despawns them, too, and there is no
/// such clock from then on.
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
/// app.add_plugins((TimePlugin, DuePlugin))
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
#[derive(Component, Clone, Copy, Debug, PartialEq)]
#[component(map_entities)]
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
    /// Nanoseconds that have passed, and [`START`]; [`NEVER`] itself is not reached.
    now: u64,
    /// A fraction of a nanosecond, in units of 2^-64.
    carry: u64,
    /// What is shown beyond what has passed.
    offset: i128,
}

/// What has passed when a clock shows zero at its start: 73 years, so that a clock that is set to a
/// later time can have deadlines before that.
const START: u64 = 1 << 61;

impl Clock {
    /// Creates a clock that runs on the time of the game, [`ClockId::Virtual`].
    #[must_use]
    pub fn new() -> Self {
        Self::of(ClockId::Virtual)
    }

    /// Creates a clock that runs on another one. On the fixed clock, its timers fire in the fixed
    /// schedule.
    ///
    /// If there is no such parent when the clock is inserted, Bevy's error handler is told, as a
    /// warning, and the clock stands still.
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

    /// Sets what the clock shows at its start.
    #[must_use]
    pub fn with_now(mut self, now: Duration) -> Self {
        self.set_now(now);
        self
    }

    /// Returns the clock that this one runs on.
    #[must_use]
    pub fn parent(&self) -> ClockId {
        self.parent
    }

    /// Sets how much time passes here while a second passes on the parent clock, from now on.
    ///
    /// Speeds do not drift: fractions of a nanosecond carry over.
    ///
    /// # Panics
    ///
    /// Panics if `ratio` is negative, infinite or not a number. See
    /// [`try_set_speed`](Self::try_set_speed) for a speed that comes from data.
    #[track_caller]
    pub fn set_speed(&mut self, ratio: f64) {
        if let Err(error) = self.try_set_speed(ratio) {
            panic!("{error}");
        }
    }

    /// Sets the speed, which may be bad.
    ///
    /// # Errors
    ///
    /// [`InvalidSpeed`] if `ratio` is negative, infinite or not a number. The speed stays what it
    /// was.
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

    /// Returns the speed. It says nothing of a pause.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed.ratio()
    }

    /// Lets no time pass, and nothing fire, from now on: not even what else is due in this run.
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Lets time pass again. The remaining times are what they were.
    pub fn unpause(&mut self) {
        self.paused = false;
    }

    /// Returns `true` if this clock itself is paused. What it runs on, such as Bevy's `Time`, may
    /// stand still, too, and does not show here.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns what the clock shows, as in [`TimerFired::deadline`](crate::TimerFired::deadline).
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(shift(self.now, self.offset))
    }

    /// Moves the clock on: what is passed fires in the next run, in order, as in a long frame.
    ///
    /// It is one way of testing a weekly job in a second. See [`set_now`](Self::set_now) for the
    /// other, and [`fast_forward`](crate::FastForwardWorldExt) for a run at every deadline on the way.
    #[doc(alias = "adjust")]
    pub fn advance_by(&mut self, by: Duration) {
        self.go(saturating_nanos(by));
    }

    /// Sets what the clock shows, and lets every timer keep its remaining time: the deadlines move
    /// with the clock. Nothing is touched but the clock.
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

    pub(crate) fn go(&mut self, nanos: u64) {
        self.now = self.now.saturating_add(nanos).min(NEVER - 1);
    }

    /// Returns how far the parent has to go until this clock has gone on by `nanos`, or `None` if
    /// it stands still.
    pub(crate) fn parent_time(&self, nanos: u64) -> Option<u64> {
        if self.is_stopped() {
            return None;
        }
        self.speed.unscale(nanos, self.carry)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.paused || self.speed.is_zero()
    }

    /// Goes on as its parent goes from one time to another, and returns what it says then.
    pub(crate) fn follow(&mut self, from: u64, to: u64) -> Reading {
        if !self.paused && from <= to {
            let (by, carry) = self.speed.scale(to - from, self.carry);
            self.carry = carry;
            self.go(by);
        } else if !self.paused {
            // Somebody has set the time back.
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

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// A [`Clock`] as it is written to a file.
#[cfg(feature = "serialize")]
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename = "Clock", deny_unknown_fields)]
struct ClockData {
    parent: ClockId,
    speed: f64,
    paused: bool,
    now: Duration,
}

#[cfg(feature = "serialize")]
impl From<Clock> for ClockData {
    fn from(clock: Clock) -> Self {
        Self {
            parent: clock.parent,
            speed: clock.speed(),
            paused: clock.paused,
            now: clock.now(),
        }
    }
}

#[cfg(feature = "serialize")]
impl TryFrom<ClockData> for Clock {
    type Error = InvalidSpeed;

    fn try_from(data: ClockData) -> Result<Self, InvalidSpeed> {
        let mut clock = Self::of(data.parent).with_now(data.now);
        clock.paused = data.paused;
        clock.try_set_speed(data.speed)?;
        Ok(clock)
    }
}

/// What a clock said when it was read for a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Nanoseconds that have passed; [`NEVER`] itself is not reached.
    pub(crate) now: u64,
    /// Whether nothing may fire.
    pub(crate) stopped: bool,
    /// What is shown beyond what has passed.
    pub(crate) offset: i128,
}

impl Reading {
    /// Returns what the clock shows, or will show, when so much has passed.
    pub(crate) fn shown(&self, passed: u64) -> Duration {
        Duration::from_nanos(shift(passed, self.offset))
    }

    /// Returns how much has passed when the clock shows `shown`.
    pub(crate) fn passed(&self, shown: Duration) -> u64 {
        shift(saturating_nanos(shown), -self.offset)
    }
}

/// Counts nanoseconds up to [`NEVER`].
pub(crate) fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

/// Moves a time by `nanos`, within a time line. What is never stays so.
pub(crate) fn shift(time: u64, nanos: i128) -> u64 {
    match time {
        NEVER => NEVER,
        time => u64::try_from((i128::from(time) + nanos).max(0)).unwrap_or(NEVER),
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
    fn a_clock_goes_back_with_its_parent() {
        let mut clock = Clock::new().with_speed(2.0);
        clock.follow(0, 100);
        assert_eq!(clock.follow(100, 70).now, START + 140);
        assert_eq!(clock.follow(70, 80).now, START + 160);
    }

    #[test]
    fn what_is_shown_can_be_turned_back() {
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
