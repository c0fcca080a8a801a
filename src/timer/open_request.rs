//! The time-out of a request.

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::prelude::*;

use super::{Timer, TimerQueues, arm, cancel};

/// Marks the entity of a request that is open, and holds its time-out.
///
/// At the deadline, [`on_time_out`](TimerQueues::on_time_out) is called. No event is triggered, and no `TimerFired` is
/// written. A timer with an interval is over at its first deadline.
#[derive(Component, MapEntities, Clone, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = arm::on_insert_request, on_discard = cancel::on_discard_request)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(opaque, Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
pub(crate) struct OpenRequest(#[entities] pub(crate) Timer);

/// Completes a request whose deadline is reached, or whose clock is gone.
pub(super) fn time_out(world: &mut World, request: Entity) {
    if let Some(queues) = world.get_resource::<TimerQueues>() {
        (queues.on_time_out)(world, request);
        world.flush();
    }
}
