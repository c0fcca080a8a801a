//! What the timers of a world wait for, between two runs.

use bevy_ecs::prelude::*;

use super::lines::TimerLines;
use crate::clock::{Cadence, ClockId, ClockTable, Scope};

/// Returns `true` if the next run of a cadence has something to do, whatever the time: new timers to
/// arm, cancellations to write, finished timers to clean up, or clocks to follow.
pub(crate) fn awaits_run(world: &World, cadence: Cadence) -> bool {
    let Some(lines) = world.get_resource::<TimerLines>() else {
        return false;
    };
    // The frame run does these for both cadences.
    let any_run = || {
        let table = world.get_resource::<ClockTable>();
        lines.pending.len() > 0
            || lines.cancelled.len() > 0
            || table.is_some_and(ClockTable::has_news)
    };
    !lines.ended.is_empty(cadence) || cadence == Cadence::Frame && any_run()
}

/// Returns the time of Bevy at which a run must look at the timers of a built-in clock and its
/// descendants, in nanoseconds: at the next deadline, or before it if many timers wait. New timers,
/// which [`awaits_run`] reports, are left out.
pub(crate) fn next_look(world: &World, clock: ClockId) -> Option<u64> {
    let (lines, table) = (
        world.get_resource::<TimerLines>()?,
        world.get_resource::<ClockTable>()?,
    );
    let root = table.find(clock).ok()?.key;
    lines.plan_touched(table, Scope::Under(root));
    table.next_due_on_source(root)
}
