//! Running timers without waiting for them.

use core::{fmt, time::Duration};

use bevy_ecs::{
    error::{BevyError, ErrorContext},
    system::SystemState,
    utils::prelude::DebugName,
    world::World,
};

use crate::{
    clock::{ClockId, UnknownClock, saturating_nanos},
    fire::{FiringParams, ReadingParams, fire_scope},
    timer::{Age, ClockKey, RunStats, Scope, Timelines, goes_on},
};

/// A handler that arms a timer without a delay is called again so much later: a frame of the fixed
/// schedule, as Bevy has it.
const SOON: u64 = 15_625_000;

/// Lets a clock run through a span of time at once, for tests, for tools, and for what has happened
/// while the player was away.
///
/// From deadline to deadline, there is a run for each: handlers find the clock at the very
/// deadline, nothing is late or missed, and what they arm fires on the way, too. The clock takes
/// those that run on it along. What it runs on itself, Bevy's `Time` for one, may be paused. To let
/// only a part of the game go on, such as a farm but not a fight, put that on a clock of its own,
/// and fast-forward that. It ends early if a handler pauses or despawns it. No schedule runs in
/// between, and Bevy's `Time` stands still: the clock is ahead of it afterwards. Every firing is
/// written as a message, so a span with a million of them takes the memory.
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
/// struct Gold(u32);
///
/// let mut app = App::new();
/// app.add_plugins((TimePlugin, DuePlugin)).init_resource::<Gold>();
/// app.world_mut()
///     .spawn(Timer::every_secs(60.0))
///     .observe(|_: On<TimerFired>, mut gold: ResMut<Gold>| gold.0 += 1);
///
/// // The player comes back after eight hours.
/// let away = Duration::from_secs(8 * 3600);
/// let stats = app.world_mut().fast_forward(ClockId::Virtual, away)?;
/// assert_eq!(app.world().resource::<Gold>().0, 480);
/// assert_eq!(stats.fired, 480);
/// # Ok::<(), BevyError>(())
/// ```
#[doc(alias("offline", "simulate", "skip"))]
pub trait FastForwardWorldExt {
    /// Runs a clock for `span`, firing everything on the way in order, and returns what was done
    /// in all.
    ///
    /// What is due already fires first. A handler that arms a timer without a delay is called
    /// again 15.625 ms later, as in a game of 64 frames a second.
    ///
    /// # Errors
    ///
    /// [`FastForwardError`] if there is no such clock, if it is paused, or if a run is going on:
    /// call it from a system or between two frames, not from a handler.
    fn fast_forward(
        &mut self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<RunStats, FastForwardError>;

    /// Runs a clock up to the next deadline on it or on those that run on it, and returns how far
    /// that was, or `None` if nothing waits there. It is zero if something was due already.
    ///
    /// # Errors
    ///
    /// The same as of [`fast_forward`](Self::fast_forward).
    fn fast_forward_to_next(
        &mut self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, FastForwardError>;
}

/// Why a clock can't be fast-forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FastForwardError {
    /// There is no such clock, or the world does not run timers.
    UnknownClock(UnknownClock),
    /// The clock is paused, or its speed is zero.
    Stopped(ClockId),
    /// It was called by something that was fired.
    Running,
}

impl fmt::Display for FastForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownClock(error) => error.fmt(f),
            Self::Stopped(clock) => write!(f, "the clock {clock} stands still"),
            Self::Running => f.write_str("timers are being fired: it can't be done from a handler"),
        }
    }
}

impl core::error::Error for FastForwardError {}

impl FastForwardWorldExt for World {
    fn fast_forward(
        &mut self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<RunStats, FastForwardError> {
        let mut forward = Forward::new(self, clock.into())?;
        forward.fire(self);
        let mut left = saturating_nanos(span);
        while left > 0 && forward.goes_on(self) {
            let next = forward.until_next(self, SOON);
            let step = next.map_or(left, |next| next.min(left));
            left -= step;
            forward.read(self, step);
            forward.fire(self);
        }
        Ok(forward.stats)
    }

    fn fast_forward_to_next(
        &mut self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, FastForwardError> {
        let mut forward = Forward::new(self, clock.into())?;
        let next = forward.until_next(self, 0);
        if let Some(next) = next {
            forward.read(self, next);
            forward.fire(self);
        }
        Ok(next.map(Duration::from_nanos))
    }
}

/// A clock that is being fast-forwarded.
struct Forward {
    root: ClockKey,
    age: Age,
    scope: Scope,
    reading: ReadingParams,
    firing: FiringParams,
    /// What has been done in all.
    stats: RunStats,
}

impl Forward {
    fn new(world: &mut World, clock: ClockId) -> Result<Self, FastForwardError> {
        let unknown = FastForwardError::UnknownClock(UnknownClock(clock));
        // Commands that wait may well be about timers.
        world.flush();
        let timelines = world.get_resource::<Timelines>().ok_or(unknown)?;
        if timelines.is_firing {
            return Err(FastForwardError::Running);
        }
        let (root, line) = timelines.find(clock).map_err(|_| unknown)?;
        let mut forward = Self {
            root,
            age: line.age,
            scope: Scope::Under(line.age),
            reading: SystemState::new(world),
            firing: SystemState::new(world),
            stats: RunStats::default(),
        };
        if !forward.goes_on(world) {
            return Err(FastForwardError::Stopped(clock));
        }
        forward.read(world, 0);
        Ok(forward)
    }

    /// Whether the clock is still there, and has not been stopped. What it runs on may stand still.
    fn goes_on(&self, world: &World) -> bool {
        let timelines = world.resource::<Timelines>();
        let line = timelines.get(self.root).filter(|line| line.age == self.age);
        let clock = line
            .filter(|line| !timelines.is_cut_off(line))
            .and_then(|line| line.clock);
        clock.is_some_and(|clock| goes_on(world, clock))
    }

    /// Lets the clock go on, and reads those that run on it.
    fn read(&mut self, world: &mut World, nanos: u64) {
        if let Ok((mut timelines, mut clocks, times, _)) = self.reading.get_mut(world) {
            timelines.advance(self.root, nanos, &mut clocks);
            timelines.read(self.scope, Some(self.age), &mut clocks, &times);
        }
    }

    /// Arms what has been added, and fires what is due.
    fn fire(&mut self, world: &mut World) {
        if let Err(error) = self.try_fire(world) {
            let name = DebugName::type_name::<Self>();
            world.fallback_error_handler()(error, ErrorContext::Command { name });
        }
        let RunStats {
            armed,
            fired,
            missed,
            cancelled,
        } = world.resource::<Timelines>().stats(self.scope);
        self.stats.armed += armed;
        self.stats.fired += fired;
        self.stats.missed += missed;
        self.stats.cancelled += cancelled;
    }

    fn try_fire(&mut self, world: &mut World) -> Result<(), BevyError> {
        let (mut timelines, .., mut messages) = self.reading.get_mut(world)?;
        timelines.swap_added(self.scope, &mut messages);
        fire_scope(world, self.scope, &mut self.firing)
    }

    /// Returns how far the clock has to go until something is due, of which what is overdue counts
    /// as due after `overdue`.
    fn until_next(&mut self, world: &mut World, overdue: u64) -> Option<u64> {
        let (timelines, clocks, ..) = self.reading.get_mut(world).ok()?;
        let lines = timelines.iter().map(|(_, line)| line);
        let lines = lines.filter(|line| timelines.is_in(line, self.scope));
        let until = |line| match timelines.until_next(line, self.age, &clocks)? {
            0 => Some(overdue),
            until => Some(until),
        };
        lines.filter_map(until).min()
    }
}
