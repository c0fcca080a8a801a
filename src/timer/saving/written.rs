//! Writing the states of all timers out, so that their components can be serialized.

use alloc::vec::Vec;

#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashSet;
use bevy_ecs::{entity::EntityHashMap, prelude::*};

#[cfg(feature = "serialize")]
use super::world_state::{forget_world_state, write_world_state};
use super::{
    TimerState,
    capture::Capture,
    sheet::{Line, Written},
};
use crate::{
    clock::{Cadence, ClockTable},
    timer::{
        Arms, DespawnAfter, Kind, Timer, TimerLines, WhenDone, ended::Ended, finished::Finished,
        timer_seat::TimerSeat,
    },
};

/// Writes the states of all timers of a world, so that their components can be serialized.
pub(crate) fn write_timer_states(world: &mut World) {
    write(world, |capture: &Capture| capture.all(), |_| true);
    #[cfg(feature = "serialize")]
    write_world_state(world);
}

/// Writes the states of the timers of some entities, so that their components can be serialized.
#[cfg(feature = "serialize")]
pub(crate) fn write_timer_states_of(world: &mut World, entities: &EntityHashSet) {
    let states = |capture: &Capture| capture.of(entities);
    write(world, states, |entity| entities.contains(&entity));
}

fn write(
    world: &mut World,
    states: impl FnOnce(&Capture) -> Vec<(Entity, Kind, TimerState)>,
    is_wanted: impl Fn(Entity) -> bool,
) {
    world.flush();
    forget_written(world);
    let Some(clocks) = world.get_resource::<ClockTable>().cloned() else {
        return;
    };
    let timers = Capture::new(world).map_or_else(Vec::new, |capture| states(&capture));
    let timers = timers.into_iter().filter_map(|(entity, kind, state)| {
        let place = seat_of(world, entity, kind)?.place();
        Some((entity, kind, Line { place, state }))
    });
    let timers: Vec<_> = timers.collect();
    let written = Written::new(clocks, &timers);
    for (entity, kind, page) in written.pages() {
        if let Some(seat) = seat_of(world, entity, kind) {
            seat.write(page);
        }
    }
    world.resource_mut::<TimerLines>().written = Some(written);
    mark_finished(world, is_wanted);
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

/// Marks those of some entities that await the next run to despawn.
fn mark_finished(world: &mut World, is_wanted: impl Fn(Entity) -> bool) {
    let lines = world.resource::<TimerLines>();
    let ended = lines.ended.iter();
    let ended =
        ended.filter(|(_, ended)| ended.when_done != WhenDone::Keep && is_wanted(ended.entity));
    let ended: Vec<_> = ended.collect();
    let mut marks = EntityHashMap::<Finished>::default();
    for (cadence, ended) in ended {
        let Ended {
            entity, when_done, ..
        } = ended;
        let mark = marks.entry(entity).or_insert(Finished {
            when_done,
            in_frame: false,
            in_fixed_step: false,
        });
        mark.when_done = mark.when_done.or(when_done);
        match cadence {
            Cadence::Frame => mark.in_frame = true,
            Cadence::FixedStep => mark.in_fixed_step = true,
        }
    }
    // The marks mean something to the world that loads them. This world knows already.
    let ended = world.resource::<TimerLines>().ended.clone();
    for (entity, mark) in marks {
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.insert(mark);
        }
    }
    world.resource_mut::<TimerLines>().ended = ended;
}
