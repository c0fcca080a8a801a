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
    sheet::{Line, Written, WrittenStates},
};
#[cfg(feature = "serialize")]
use crate::clock::write_clocks;
use crate::{
    clock::ClockTable,
    timer::{
        Arms, DespawnAfter, Kind, Timer, TimerLines, WhenDone,
        end::{Finished, Origin},
        place::TimerSeat,
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
    // Clocks that take settings over have changed, so they come first.
    #[cfg(feature = "serialize")]
    write_clocks(world, &is_wanted);
    let Some(clocks) = world.get_resource::<ClockTable>() else {
        return;
    };
    let changes = clocks.changes().clone();
    let timers = Capture::new(world).map_or_else(Vec::new, |capture| states(&capture));
    let timers = timers.into_iter().filter_map(|(entity, kind, state)| {
        let place = seat_of(world, entity, kind)?.place();
        Some((entity, kind, Line { place, state }))
    });
    let timers: Vec<_> = timers.collect();
    let written = Written::new(changes, &timers);
    for (entity, kind, page) in written.pages() {
        if let Some(seat) = seat_of(world, entity, kind) {
            seat.write(page);
        }
    }
    world.insert_resource(WrittenStates(Some(written)));
    mark_finished(world, is_wanted);
}

/// Throws the written states away, if there are any.
pub(crate) fn forget_written(world: &mut World) {
    let states = world.get_resource_mut::<WrittenStates>();
    let Some(written) = states.and_then(|mut states| states.0.take()) else {
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
    let ended = lines.reports.ended.iter();
    let ended =
        ended.filter(|(_, ended)| ended.when_done != WhenDone::Keep && is_wanted(ended.entity));
    let ended: Vec<_> = ended.collect();
    let mut marks = EntityHashMap::<Finished>::default();
    for (ends_in, ended) in ended {
        let mark = marks.entry(ended.entity).or_insert(Finished {
            ends: Default::default(),
            origin: Origin::Own,
        });
        mark.ends[ends_in].push(ended.when_done);
    }
    for (entity, mark) in marks {
        if let Ok(mut entity) = world.get_entity_mut(entity) {
            entity.insert(mark);
        }
    }
}
