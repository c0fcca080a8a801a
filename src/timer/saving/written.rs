//! Writing the states of all timers out, so that their components can be serialized.

#[cfg(feature = "serialize")]
use alloc::vec::Vec;

use bevy_ecs::prelude::*;
#[cfg(feature = "serialize")]
use bevy_ecs::{entity_disabling::Disabled, query::Allow};

#[cfg(feature = "serialize")]
use super::{
    capture::Capture,
    sheet::{Line, Written},
    world_state::{forget_world_state, write_world_state},
};
#[cfg(feature = "serialize")]
use crate::clock::{ClockTable, write_clocks};
use crate::timer::{Arms, DespawnAfter, Kind, Timer, TimerLines, place::TimerSeat};

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
        let states = [
            (Kind::Timer, capture.state::<Timer>(timer)),
            (Kind::Lifetime, capture.state::<DespawnAfter>(timer)),
        ];
        for (kind, state) in states {
            if let Some(state) = state
                && let Some(seat) = seat_of(world, timer.id(), kind)
            {
                let place = seat.place();
                lines.push((timer.id(), kind, Line { place, state }));
            }
        }
    }
    let marks = capture.finished;
    let written = Written::new(world.resource::<ClockTable>().changes().clone(), &lines);
    for (entity, kind, page) in written.pages() {
        if let Some(seat) = seat_of(world, entity, kind) {
            seat.write(page);
        }
    }
    world.resource_mut::<TimerLines>().written = Some(written);
    for (entity, (_, mark)) in marks {
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.insert(mark);
        }
    }
    write_world_state(world);
}

/// Throws the written states away, if there are any.
pub(crate) fn forget_written(world: &mut World) {
    let lines = world.get_resource_mut::<TimerLines>();
    let Some(written) = lines.and_then(|mut lines| lines.written.take()) else {
        return;
    };
    for (entity, kind, _) in written.pages() {
        if let Some(seat) = seat_of(world, entity, kind) {
            seat.unwrite();
        }
    }
    #[cfg(feature = "serialize")]
    forget_world_state(world);
}

fn seat_of(world: &World, entity: Entity, kind: Kind) -> Option<&TimerSeat> {
    match kind {
        Kind::Timer => world.get::<Timer>(entity).map(Arms::seat),
        Kind::Lifetime => world.get::<DespawnAfter>(entity).map(Arms::seat),
    }
}
