//! The state of timers and clocks that belongs to no entity.

use core::time::Duration;

use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use serde::{Deserialize, Serialize};

use crate::{
    clock::{ClockState, load_built_in, save_built_in},
    timer::{TimerQueues, random::Numbers},
};

/// The state that belongs to no entity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorldState {
    /// Real, virtual, frames, fixed.
    built_in: [ClockState; 4],
    numbers: Numbers,
    /// The time that the fixed clock is behind.
    pub(crate) overstep: Duration,
}

/// The fixed steps that a loaded world catches up with, at most. More would freeze it: the data is damaged,
/// or comes from an app with much longer steps.
pub(crate) const MAX_STEPS: u32 = 10_000;

impl WorldState {
    /// Reads the state of a world with the plugin.
    pub(crate) fn read(world: &World) -> Option<Self> {
        let time = world.get_resource::<Time<Fixed>>();
        Some(Self {
            built_in: save_built_in(world)?,
            numbers: world.get_resource::<TimerQueues>()?.numbers(),
            overstep: time.map_or(Duration::ZERO, Time::<Fixed>::overstep),
        })
    }

    /// Gives a world with the plugin this state.
    pub(crate) fn put(&self, world: &mut World) {
        load_built_in(world, &self.built_in);
        if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
            queues.set_numbers(self.numbers);
        }
        if let Some(mut time) = world.get_resource_mut::<Time<Fixed>>() {
            let overstep = time.overstep();
            time.discard_overstep(overstep);
            time.accumulate_overstep(self.overstep);
        }
    }
}
