//! Fast-forward: running timers at their deadlines without waiting.

use core::{mem, time::Duration};

use bevy_ecs::{prelude::*, system::SystemState};

use super::{
    RunStats, TimerQueues,
    arm::swap,
    run::{RunDepth, run},
    turn::FireParams,
};
use crate::{
    clock::{
        Age, ClockError, ClockId, ClockKey, ClockTable, EditedClocks, Scope, is_running,
        saturating_nanos, take_changes,
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
    let mut forward = Forward::new(world, clock)?;
    forward.run(world);
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
        forward.run(world);
    }
    Ok(forward.stats)
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
        queues.forwards.push((clock, span));
        return Ok(());
    }
    fast_forward(world, clock, span).map(|_| ())
}

/// Runs the clocks for which the handlers of a run have asked. What handlers ask for on the way waits for the next
/// run.
pub(super) fn fast_forward_asked(world: &mut World) {
    if world.resource::<TimerQueues>().forwards.is_empty() || RunDepth::is_active(world) {
        return;
    }
    let asked = mem::take(&mut world.resource_mut::<TimerQueues>().forwards);
    for (clock, span) in asked {
        if let Err(error) = fast_forward(world, clock, span) {
            report::<Forward>(world, error.into());
        }
    }
}

/// Runs a clock up to the next deadline, and returns the distance.
pub(crate) fn fast_forward_to_next(
    world: &mut World,
    clock: ClockId,
) -> Result<Option<Duration>, ClockError> {
    let mut forward = Forward::new(world, clock)?;
    let next = forward.until_next(world, 0);
    let next = next.filter(|_| forward.is_running(world));
    if let Some(next) = next {
        forward.advance(world, next);
        forward.run(world);
    }
    Ok(next.map(Duration::from_nanos))
}

/// A clock that is being fast-forwarded.
struct Forward {
    root: ClockKey,
    age: Age,
    clocks: EditedClocks,
    firing: FireParams,
    stats: RunStats,
}

impl Forward {
    fn new(world: &mut World, clock: ClockId) -> Result<Self, ClockError> {
        let unknown = ClockError::NoSuchClock(clock);
        // Pending commands may change timers.
        world.flush();
        if RunDepth::is_active(world) {
            return Err(ClockError::Running);
        }
        let table = world.get_resource::<ClockTable>().ok_or(unknown)?;
        let root = table.find(clock)?;
        let mut forward = Self {
            root: root.key,
            age: root.age,
            clocks: SystemState::new(world),
            firing: SystemState::new(world),
            stats: RunStats::default(),
        };
        forward.take_changes(world);
        forward.advance(world, 0);
        if !forward.is_running(world) {
            return Err(ClockError::Stopped(clock));
        }
        Ok(forward)
    }

    /// Lets clocks follow the changes of their components.
    fn take_changes(&mut self, world: &mut World) {
        // Each deadline on the way has its own run.
        if let Err(error) = take_changes(world, &mut self.clocks) {
            report::<Self>(world, error);
        }
        world.flush();
    }

    /// Returns `true` if the clock exists and is not stopped itself. Its parent may be stopped.
    fn is_running(&self, world: &World) -> bool {
        is_running(world, (self.root, self.age), Scope::Under(self.root))
    }

    /// Advances the clock and its descendants.
    fn advance(&mut self, world: &mut World, nanos: u64) {
        if let Some(mut table) = world.get_resource_mut::<ClockTable>() {
            table.fast_forward(self.root, nanos);
        }
    }

    /// Arms new timers, and fires due timers.
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

    /// Returns how far the clock must advance until something is due. An overdue timer counts as
    /// due after `overdue`.
    fn until_next(&mut self, world: &mut World, overdue: u64) -> Option<u64> {
        self.take_changes(world);
        let span = world.try_resource_scope(|world, mut table: Mut<ClockTable>| {
            let queues = world.get_resource::<TimerQueues>()?;
            queues.until_next(&mut table, self.root, TimerQueue::next_deadline)
        });
        span?.map(|span| if span == 0 { overdue } else { span })
    }
}
