//! Running timers without waiting for them.

use core::{fmt, time::Duration};

use bevy_ecs::{
    error::{BevyError, ErrorContext},
    message::Messages,
    system::{ResMut, SystemState},
    utils::prelude::DebugName,
    world::World,
};

use crate::{
    clock::{Clock, ClockId, UnknownClock, saturating_nanos},
    fire::{Together, fire_due},
    timer::{AnyClocks, ClockKey, RunStats, Scope, Timelines, TimerCancelled, Times, swap_added},
};

/// A handler that arms a timer without a delay is called again so much later: a frame of the fixed
/// schedule, as Bevy has it.
const SOON: u64 = 15_625_000;

/// Lets a clock run through a span of time at once, for tests, for tools, and for what has happened
/// while the player was away.
///
/// From deadline to deadline, there is a run for each: handlers find the clock at the very
/// deadline, nothing is late or missed, and what they arm fires on the way, too. The clock takes
/// those that run on it along. No schedule runs in between, and Bevy's `Time` stands still: the
/// clock is ahead of it afterwards.
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
pub trait FastForward {
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

impl FastForward for World {
    fn fast_forward(
        &mut self,
        clock: impl Into<ClockId>,
        span: Duration,
    ) -> Result<RunStats, FastForwardError> {
        let mut forward = Forward::new(self, clock.into())?;
        let mut total = forward.run(self, 0);
        let mut left = saturating_nanos(span);
        while left > 0 {
            let step = forward
                .until_next(self, SOON)
                .map_or(left, |next| next.min(left));
            left -= step;
            let stats = forward.run(self, step);
            total.armed += stats.armed;
            total.fired += stats.fired;
            total.missed += stats.missed;
            total.cancelled += stats.cancelled;
        }
        Ok(total)
    }

    fn fast_forward_to_next(
        &mut self,
        clock: impl Into<ClockId>,
    ) -> Result<Option<Duration>, FastForwardError> {
        let mut forward = Forward::new(self, clock.into())?;
        let next = forward.until_next(self, 0);
        if let Some(next) = next {
            forward.run(self, next);
        }
        Ok(next.map(Duration::from_nanos))
    }
}

type Stage = SystemState<(
    ResMut<'static, Timelines>,
    AnyClocks<'static, 'static>,
    Times<'static>,
    ResMut<'static, Messages<TimerCancelled>>,
)>;

/// A clock that is being fast-forwarded.
struct Forward {
    root: ClockKey,
    scope: Scope,
    stage: Stage,
    together: Together,
}

impl Forward {
    fn new(world: &mut World, clock: ClockId) -> Result<Self, FastForwardError> {
        let unknown = FastForwardError::UnknownClock(UnknownClock(clock));
        // Commands that wait may well be about timers.
        world.flush();
        let timelines = world.get_resource::<Timelines>().ok_or(unknown)?;
        let (root, line) = timelines.find(clock).map_err(|_| unknown)?;
        if timelines.is_running {
            return Err(FastForwardError::Running);
        }
        let its_clock = world.get::<Clock>(line.clock).ok_or(unknown)?;
        if its_clock.is_stopped() {
            return Err(FastForwardError::Stopped(clock));
        }
        let scope = Scope {
            is_fixed: line.is_fixed,
            root: Some(root),
        };
        Ok(Self {
            root,
            scope,
            stage: SystemState::new(world),
            together: SystemState::new(world),
        })
    }

    /// Lets the clock go on, and fires what is due.
    fn run(&mut self, world: &mut World, nanos: u64) -> RunStats {
        let result = self.try_run(world, nanos);
        if let Err(error) = result {
            let name = DebugName::type_name::<Self>();
            world.fallback_error_handler()(error, ErrorContext::Command { name });
        }
        world.resource::<Timelines>().stats[usize::from(self.scope.is_fixed)]
    }

    fn try_run(&mut self, world: &mut World, nanos: u64) -> Result<(), BevyError> {
        let (mut timelines, mut clocks, times, messages) = self.stage.get_mut(world)?;
        timelines.advance(self.root, nanos, &mut clocks);
        let mut last = timelines.get(self.root).map(|line| line.age);
        while let Some((key, line)) = timelines.next(self.scope, last) {
            last = Some(line.age);
            timelines.tick(key, &mut clocks, &times);
        }
        swap_added(self.scope)(timelines, messages);
        fire_due(self.scope)(world, &mut self.together)
    }

    /// Returns how far the clock has to go until something is due, of which what is overdue counts
    /// as due after `overdue`.
    fn until_next(&mut self, world: &mut World, overdue: u64) -> Option<u64> {
        let (timelines, clocks, ..) = self.stage.get_mut(world).ok()?;
        let lines = timelines.iter();
        let lines = lines.filter(|&(key, _)| timelines.is_in(key, self.scope));
        let next = |(key, _)| timelines.until_next(key, self.root, overdue, &clocks);
        lines.filter_map(next).min()
    }
}
