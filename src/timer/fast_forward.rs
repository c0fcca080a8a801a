//! Fast-forward: running timers at their deadlines without waiting.

use core::time::Duration;

use bevy_ecs::{prelude::*, system::SystemState};

use super::{
    RunStats, TimerQueues,
    arm::swap,
    run::{RunDepth, run},
    turn::FireParams,
};
use crate::{
    clock::{
        Age, ClockError, ClockId, ClockKey, ClockTable, Scope, is_game_stopped_in, saturating_nanos,
    },
    queue::TimerQueue,
    report::report,
};

/// The wait of a zero-delay timer that a handler arms: one step of Bevy's fixed schedule.
const SOON: u64 = 15_625_000;

/// Runs a clock for `span`, with a run at each deadline.
pub(crate) fn fast_forward(
    world: &mut World,
    clock: ClockId,
    span: Duration,
) -> Result<RunStats, ClockError> {
    refuse_in_run(world)?;
    forward(world, clock, span)
}

/// Returns an error if a handler of a timer is running. Otherwise, applies pending commands.
fn refuse_in_run(world: &mut World) -> Result<(), ClockError> {
    // Pending commands may change timers.
    world.flush();
    match RunDepth::is_active(world) {
        true => Err(ClockError::Running),
        false => Ok(()),
    }
}

fn forward(world: &mut World, clock: ClockId, span: Duration) -> Result<RunStats, ClockError> {
    let mut forward = Forward::begin(world, clock)?;
    forward.run(world);
    let mut left = saturating_nanos(span);
    while left > 0 && forward.is_running(world) {
        let next = forward.until_next(world, SOON);
        // A modifier may have ended the clock.
        if !forward.is_running(world) {
            break;
        }
        let step = next.map_or(left, |next| next.min(left));
        left -= step;
        forward.advance(world, step);
        forward.run(world);
    }
    Ok(forward.end(world))
}

/// Runs a clock for `span` now, or at the end of the run whose handler asks for it.
pub(crate) fn fast_forward_soon(
    world: &mut World,
    clock: ClockId,
    span: Duration,
) -> Result<(), ClockError> {
    if RunDepth::is_active(world)
        && let Some(mut queues) = world.get_resource_mut::<TimerQueues>()
    {
        queues.forwards.push_back((clock, span));
        return Ok(());
    }
    fast_forward(world, clock, span).map(|_| ())
}

/// Runs the clocks for which the handlers of a run have asked, up to `limit` of them. What handlers ask for on the way
/// waits for the next call. Returns how many more there may be.
pub(super) fn fast_forward_asked(world: &mut World, limit: usize) -> usize {
    let asked = world.resource::<TimerQueues>().forwards.len().min(limit);
    for _ in 0..asked {
        // A handler may panic. Then the others wait for the next run.
        let next = world.resource_mut::<TimerQueues>().forwards.pop_front();
        if let Some((clock, span)) = next
            && let Err(error) = forward(world, clock, span)
        {
            report::<Forward>(world, error.into());
        }
    }
    limit - asked
}

/// Ends a fast-forward or the way through an exact frame that a panic has broken off. Call this before the clocks are
/// read.
pub(crate) fn end_broken_run(world: &mut World) {
    if !RunDepth::is_active(world) {
        let mut table = world.resource_mut::<ClockTable>();
        table.end_forward();
        table.end_way();
    }
}

/// Runs a clock up to its next deadline, and returns the distance.
pub(crate) fn fast_forward_to_next(
    world: &mut World,
    clock: ClockId,
) -> Result<Option<Duration>, ClockError> {
    refuse_in_run(world)?;
    let mut forward = Forward::begin(world, clock)?;
    let next = forward.until_next(world, 0);
    let next = next.filter(|_| forward.is_running(world));
    if let Some(next) = next {
        forward.advance(world, next);
        forward.run(world);
    }
    forward.end(world);
    Ok(next.map(Duration::from_nanos))
}

/// A clock that is being fast-forwarded.
struct Forward {
    root: ClockKey,
    age: Age,
    firing: FireParams,
    stats: RunStats,
}

impl Forward {
    fn begin(world: &mut World, clock: ClockId) -> Result<Self, ClockError> {
        let unknown = ClockError::NoSuchClock(clock);
        world.flush();
        let is_game_stopped = is_game_stopped_in(world);
        let mut table = world.get_resource_mut::<ClockTable>().ok_or(unknown)?;
        let root = table.find(clock)?;
        // A panic may have kept an earlier one from it.
        table.end_forward();
        table.begin_forward(root.key, is_game_stopped);
        Ok(Self {
            root: root.key,
            age: root.age,
            firing: SystemState::new(world),
            stats: RunStats::default(),
        })
    }

    /// Returns `true` unless a handler has despawned or stopped the clock.
    fn is_running(&self, world: &World) -> bool {
        let table = world.get_resource::<ClockTable>();
        table.is_some_and(|table| {
            table.is_forward_running(self.root, self.age, is_game_stopped_in(world))
        })
    }

    fn advance(&mut self, world: &mut World, nanos: u64) {
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            table.fast_forward(self.root, nanos);
        }
    }

    fn run(&mut self, world: &mut World) {
        let scope = Scope::Under(self.root);
        swap(world);
        match run(world, scope, &mut self.firing) {
            Ok(()) => self
                .stats
                .add(world.resource::<TimerQueues>().reports.run(scope)),
            Err(error) => report::<Self>(world, error),
        }
    }

    /// Returns the time until the next deadline, or `overdue` if it has passed.
    fn until_next(&mut self, world: &mut World, overdue: u64) -> Option<u64> {
        swap(world);
        let span = world.try_resource_scope(|world, mut table: Mut<ClockTable>| {
            let queues = world.get_resource::<TimerQueues>()?;
            queues.until_next(&mut table, self.root, TimerQueue::next_deadline)
        });
        span?.map(|span| if span == 0 { overdue } else { span })
    }

    fn end(self, world: &mut World) -> RunStats {
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            table.end_forward();
        }
        self.stats
    }
}
