//! How often a world of a group runs.

use core::time::Duration;

use bevy_ecs::resource::Resource;

/// The time between two frames of a world of [`WorldGroups`](crate::WorldGroups) when no message
/// arrives from other threads. The default is a sixtieth of a second.
///
/// Due timers, and messages sent within the world, wait for its next frame. Messages that wait for
/// new callbacks, and refusals of parcels, do not wait for the interval: the world runs one extra
/// frame at once. For an interval of more than 250 ms, also raise `Time::<Virtual>::max_delta`, or
/// game time falls behind.
#[derive(Resource, Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopInterval(pub Duration);

impl Default for LoopInterval {
    fn default() -> Self {
        Self(Duration::from_secs(1) / 60)
    }
}
