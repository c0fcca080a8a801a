//! The state of timers and clocks that belongs to no entity.

use core::time::Duration;

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, ReflectDeserialize, ReflectSerialize};
use bevy_time::{Fixed, Time};
use serde::{Deserialize, Serialize};

use crate::{
    clock::{Clock, load_built_in, save_built_in},
    timer::{TimerQueues, end::Origin, random::Numbers},
};

/// The state that belongs to no entity.
///
/// As a resource, it carries the state of the world that wrote it into a scene. A world that loads
/// the scene takes the state over.
#[derive(Resource, Clone, Debug, Serialize, Deserialize)]
#[component(immutable, on_insert = on_insert)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::save",
    reflect(opaque),
    reflect(Resource, Clone, Debug, Serialize, Deserialize)
)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedWorld {
    /// Real, virtual, frames, fixed.
    built_in: [Clock; 4],
    numbers: Numbers,
    /// The time that the fixed clock is behind.
    overstep: Duration,
    #[serde(skip)]
    origin: Origin,
}

/// The fixed steps that a loaded world catches up with, at most. More would freeze it: the data is damaged,
/// or comes from an app with much longer steps.
pub(crate) const MAX_STEPS: u32 = 10_000;

impl SavedWorld {
    /// Returns the state of a world with the plugin.
    pub(crate) fn of(world: &World) -> Option<Self> {
        let time = world.get_resource::<Time<Fixed>>();
        Some(Self {
            built_in: save_built_in(world)?,
            numbers: world.get_resource::<TimerQueues>()?.arming.numbers,
            overstep: time.map_or(Duration::ZERO, Time::<Fixed>::overstep),
            origin: Origin::Own,
        })
    }

    /// Returns the time that the fixed clock is behind.
    pub(crate) fn overstep(&self) -> Duration {
        self.overstep
    }

    /// Gives a world with the plugin this state.
    pub(crate) fn load(&self, world: &mut World) {
        load_built_in(world, &self.built_in);
        if let Some(mut queues) = world.get_resource_mut::<TimerQueues>() {
            queues.set_numbers(self.numbers);
        }
        if let Some(mut time) = world.get_resource_mut::<Time<Fixed>>() {
            let overstep = time.overstep();
            time.discard_overstep(overstep);
            // Scenes are loaded without a check.
            let longest = time.timestep().saturating_mul(MAX_STEPS);
            // Room for the time of the next frame.
            let longest = longest.min(Duration::MAX / 2);
            time.accumulate_overstep(self.overstep.min(longest));
        }
    }
}

/// Loads the state that was inserted before the plugin was added.
pub(crate) fn load_world_state(world: &mut World) {
    let Some(saved) = world.get_resource::<SavedWorld>() else {
        return;
    };
    if saved.origin == Origin::Saved && world.contains_resource::<TimerQueues>() {
        let saved = saved.clone();
        world.remove_resource::<SavedWorld>();
        saved.load(world);
    }
}

fn on_insert(mut world: DeferredWorld, _: HookContext) {
    world.commands().queue(load_world_state);
}
