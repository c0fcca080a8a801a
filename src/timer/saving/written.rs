//! Writing the states of all timers out, so that their components can be serialized.

#[cfg(feature = "serialize")]
use alloc::vec::Vec;

use bevy_ecs::prelude::*;
#[cfg(feature = "serialize")]
use bevy_ecs::{entity_disabling::Disabled, query::Allow};

#[cfg(feature = "serialize")]
use super::{capture::Capture, sheet::Written, world_state::SavedWorld};
use crate::timer::TimerLines;
#[cfg(feature = "serialize")]
use crate::{
    clock::{ClockTable, write_clocks},
    timer::{DespawnAfter, Kind, Timer},
};

/// Writes the states of all timers of a world, so that their components can be serialized.
#[cfg(feature = "serialize")]
pub(crate) fn write_timer_states(world: &mut World) {
    world.flush();
    forget_written(world);
    // Clocks that take settings over have changed, so they come first.
    write_clocks(world);
    let timers = world
        .query_filtered::<EntityRef, (Or<(With<Timer>, With<DespawnAfter>)>, Allow<Disabled>)>();
    let Some(mut capture) = Capture::new(world) else {
        return;
    };
    let mut lines = Vec::new();
    for timer in timers.query_manual(world).iter() {
        for kind in [Kind::Timer, Kind::Lifetime] {
            if let Some(state) = capture.state(timer, kind)
                && let Some(component) = kind.on(timer)
            {
                lines.push((timer.id(), kind, (component.seat.place(), state)));
            }
        }
    }
    let marks = capture.finished;
    let written = Written::new(world.resource::<ClockTable>().changes().clone(), &lines);
    for (entity, kind, page) in written.pages() {
        if let Some(timer) = kind.get(world, entity) {
            timer.seat.write(page);
        }
    }
    world.resource_mut::<TimerLines>().written = Some(written);
    for (entity, (_, mark)) in marks {
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.insert(mark);
        }
    }
    if let Some(saved) = SavedWorld::of(world) {
        world.insert_resource(saved);
    }
}

/// Throws the written states away, if there are any.
pub(crate) fn forget_written(world: &mut World) {
    let lines = world.get_resource_mut::<TimerLines>();
    let Some(written) = lines.and_then(|mut lines| lines.written.take()) else {
        return;
    };
    for (entity, kind, _) in written.pages() {
        if let Some(timer) = kind.get(world, entity) {
            timer.seat.unwrite();
        }
    }
    #[cfg(feature = "serialize")]
    world.remove_resource::<SavedWorld>();
}
