//! Timers that are loaded after their last firing.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::Reflect;
#[cfg(all(feature = "bevy_reflect", feature = "serialize"))]
use bevy_reflect::{ReflectDeserialize, ReflectSerialize};

use super::{Arms, Kind, Timer, TimerLines, WhenDone, ended::Ended};
use crate::clock::Cadence;

/// Marks an entity whose timer has fired its last, and which despawns in the next run.
///
/// [`write_timer_states`](crate::DueWorldExt::write_timer_states) inserts this component, so that a
/// saved entity also despawns after it is loaded. It means nothing to a game.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = on_insert_finished)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due::save",
    reflect(opaque),
    reflect(Component, Clone, Debug, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    all(feature = "bevy_reflect", feature = "serialize"),
    reflect(Serialize, Deserialize)
)]
#[cfg_attr(
    not(feature = "serialize"),
    allow(unreachable_pub, reason = "only saving exports it")
)]
pub struct Finished {
    pub(super) when_done: WhenDone,
    /// Whether the next run of the frame ends the timer.
    pub(super) in_frame: bool,
    /// Whether the next run of the fixed schedule ends the timer.
    pub(super) in_fixed_step: bool,
}

fn on_insert_finished(mut world: DeferredWorld, HookContext { entity, .. }: HookContext) {
    let Some(&finished) = world.get::<Finished>(entity) else {
        return;
    };
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        let when_done = finished.when_done;
        let ended = Ended::timer(entity, when_done);
        if finished.in_frame {
            lines.ended.push(Cadence::Frame, ended);
        }
        if finished.in_fixed_step {
            lines.ended.push(Cadence::FixedStep, ended);
        }
    }
}

/// Ends a timer or a lifetime that was loaded after its last firing, unless a mark says when.
pub(super) fn end_in_next_run<C: Arms>(world: &mut DeferredWorld, entity: Entity) {
    if C::KIND == Kind::Timer && world.get::<Finished>(entity).is_some() {
        return;
    }
    let ended = match C::KIND {
        Kind::Timer => {
            let when_done = world.get::<Timer>(entity).map(Timer::when_done);
            Ended::timer(entity, when_done.unwrap_or_default())
        }
        Kind::Lifetime => Ended::lifetime(entity),
    };
    if let Some(mut lines) = world.get_resource_mut::<TimerLines>() {
        lines.ended.push_for_any_run(ended);
    }
}
