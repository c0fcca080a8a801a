//! A step of the fixed schedule: all stages in one go.

use bevy_ecs::{error::BevyError, world::World};

use crate::{
    fire::{FiringParams, ReadingParams, fire_scope},
    timer::Scope,
};

/// Does all that a run does, for the clocks of the fixed schedule.
pub(crate) fn run_fixed(
    world: &mut World,
    reading: &mut ReadingParams,
    firing: &mut FiringParams,
) -> Result<(), BevyError> {
    let (mut timelines, mut clocks, times, mut messages) = reading.get_mut(world)?;
    timelines.is_read_in_steps = true;
    timelines.read(Scope::Fixed, None, &mut clocks, &times);
    let has_timers = timelines.has_fixed_timers() || timelines.has_work(Scope::Fixed);
    if has_timers {
        timelines.swap_added(Scope::Fixed, &mut messages);
    } else {
        timelines.reset_stats(Scope::Fixed);
    }
    if has_timers {
        fire_scope(world, Scope::Fixed, firing)?;
    }
    Ok(())
}
