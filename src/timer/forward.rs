//! Fast-forward: running timers at their deadlines without waiting.

use core::{fmt, time::Duration};

use bevy_ecs::{prelude::*, system::SystemState};

use super::{
    RunStats,
    lines::TimerLines,
    resolve::resolve,
    run::{FireParams, RunDepth, fire},
};
use crate::{
    call::report,
    clock::{
        Age, ClockId, ClockKey, ClockTable, NoSuchClock, Scope, adopt_overwritten, saturating_nanos,
    },
};

/// The wait of a zero-delay timer that a handler arms: one step of Bevy's fixed schedule.
const SOON: u64 = 15_625_000;

/// The error for a clock that can't be fast-forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FastForwardError {
    /// There is no such clock, or the world does not run timers.
    NoSuchClock(NoSuchClock),
    /// The clock is paused, or its speed is zero.
    Stopped(ClockId),
    /// The call was made from a timer handler.
    Running,
}

impl fmt::Display for FastForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchClock(error) => error.fmt(f),
            Self::Stopped(clock) => write!(
                f,
                "the clock {clock} is stopped: unpause it or set its speed first"
            ),
            Self::Running => f.write_str(
                "can't fast-forward from a timer handler: call it from a system or between frames",
            ),
        }
    }
}

impl core::error::Error for FastForwardError {}

/// Runs a clock for `span`, with a run at each deadline.
pub(crate) fn fast_forward(
    world: &mut World,
    clock: ClockId,
    span: Duration,
) -> Result<RunStats, FastForwardError> {
    let mut forward = Forward::new(world, clock)?;
    forward.fire(world);
    let mut left = saturating_nanos(span);
    while left > 0 && forward.is_running(world) {
        let next = forward.until_next(world, SOON);
        // Handlers may have despawned the clock.
        if !forward.is_running(world) {
            break;
        }
        let step = next.map_or(left, |next| next.min(left));
        left -= step;
        forward.advance(world, step);
        forward.fire(world);
    }
    Ok(forward.stats)
}

/// Runs a clock up to the next deadline, and returns the distance.
pub(crate) fn fast_forward_to_next(
    world: &mut World,
    clock: ClockId,
) -> Result<Option<Duration>, FastForwardError> {
    let mut forward = Forward::new(world, clock)?;
    let next = forward.until_next(world, 0);
    let next = next.filter(|_| forward.is_running(world));
    if let Some(next) = next {
        forward.advance(world, next);
        forward.fire(world);
    }
    Ok(next.map(Duration::from_nanos))
}

/// A clock that is being fast-forwarded.
struct Forward {
    root: ClockKey,
    age: Age,
    reading: ForwardParams,
    firing: FireParams,
    stats: RunStats,
}

type ForwardParams = SystemState<(Res<'static, ClockTable>, ResMut<'static, TimerLines>)>;

impl Forward {
    fn new(world: &mut World, clock: ClockId) -> Result<Self, FastForwardError> {
        let unknown = FastForwardError::NoSuchClock(NoSuchClock(clock));
        // Pending commands may change timers.
        world.flush();
        if RunDepth::is_active(world) {
            return Err(FastForwardError::Running);
        }
        adopt_overwritten(world);
        let table = world.get_resource::<ClockTable>().ok_or(unknown)?;
        let root = table.find(clock).map_err(|_| unknown)?;
        let mut forward = Self {
            root: root.key,
            age: root.age,
            reading: SystemState::new(world),
            firing: SystemState::new(world),
            stats: RunStats::default(),
        };
        if !forward.is_running(world) {
            return Err(FastForwardError::Stopped(clock));
        }
        forward.advance(world, 0);
        Ok(forward)
    }

    /// Returns `true` if the clock exists and is not stopped itself. Its parent may be stopped.
    fn is_running(&mut self, world: &mut World) -> bool {
        let params = self.reading.get_mut(world);
        params.is_ok_and(|(table, _)| table.can_forward(self.root, self.age))
    }

    /// Advances the clock and its descendants.
    fn advance(&mut self, world: &mut World, nanos: u64) {
        if let Ok((table, _)) = self.reading.get_mut(world) {
            table.fast_forward(self.root, nanos);
        }
    }

    /// Arms new timers, and fires due timers.
    fn fire(&mut self, world: &mut World) {
        match self.try_fire(world) {
            Ok(stats) => self.stats.add(stats),
            Err(error) => report::<Self>(world, error),
        }
    }

    fn try_fire(&mut self, world: &mut World) -> Result<RunStats> {
        let scope = Scope::Under(self.root);
        resolve(world, Some(scope));
        let (table, mut lines) = self.reading.get_mut(world)?;
        lines.begin_run(&table, scope);
        fire(world, scope, &mut self.firing)?;
        Ok(world.resource::<TimerLines>().stats.get(scope))
    }

    /// Returns how far the clock must advance until something is due. An overdue timer counts as
    /// due after `overdue`.
    fn until_next(&mut self, world: &mut World, overdue: u64) -> Option<u64> {
        resolve(world, None);
        let (table, mut lines) = self.reading.get_mut(world).ok()?;
        let span = lines.until_next(&table, self.root)?;
        Some(if span == 0 { overdue } else { span })
    }
}
