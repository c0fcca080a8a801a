//! The next moment at which the timers of a world need a run.

use bevy_ecs::prelude::*;

use super::TimerLines;
use crate::{
    clock::{Cadence, ClockId, ClockTable, Scope, find_running, is_changed},
    queue::TimerQueue,
};

/// Returns `true` if the next run of a cadence has something to do, whatever the time: new timers to
/// arm, cancellations to write, finished timers to clean up, or clocks to follow.
pub(crate) fn awaits_run(world: &World, cadence: Cadence) -> bool {
    let Some(lines) = world.get_resource::<TimerLines>() else {
        return false;
    };
    // The frame run does these for both cadences.
    let any_run = || {
        let table = world.get_resource::<ClockTable>();
        !lines.arming.added.is_empty()
            || lines.reports.cancelled.len() > 0
            || table.is_some_and(ClockTable::is_loading)
            || is_changed(world)
            || is_any_waiting(world, lines, cadence)
    };
    !lines.reports.ended.is_empty(cadence) || cadence == Cadence::Frame && any_run()
}

/// Returns the time of Bevy at which a run must look at the timers of a built-in clock and its
/// descendants, in nanoseconds: at the next deadline, or before it if many timers wait. New timers,
/// which [`awaits_run`] reports, are left out.
///
/// Call [`plan`] first.
pub(crate) fn next_look(world: &World, clock: ClockId) -> Option<u64> {
    let table = world.get_resource::<ClockTable>()?;
    table.next_due_on_bevy(table.find(clock).ok()?.key)
}

/// Tells the clocks when to look at their timers.
pub(crate) fn plan(world: &mut World) {
    world.try_resource_scope(|world, mut table: Mut<ClockTable>| {
        if let Some(lines) = world.get_resource::<TimerLines>() {
            for clock in [
                ClockId::Real,
                ClockId::Virtual,
                ClockId::Frames,
                ClockId::Fixed,
            ] {
                if let Ok(found) = table.find(clock) {
                    lines.until_next(&mut table, found.key, TimerQueue::first_look);
                }
            }
        }
    });
}

/// Returns `true` if a timer waits for the budget, and its clock runs.
fn is_any_waiting(world: &World, lines: &TimerLines, cadence: Cadence) -> bool {
    let scope = Scope::Of(cadence);
    let mut waiting = lines.waiting.iter();
    waiting.any(|(clock, _)| find_running(world, clock, scope).is_some())
}
