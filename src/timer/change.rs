//! Changing armed timers: cancelling all timers of an owner, and moving deadlines.

use alloc::vec::Vec;
use core::{fmt, iter, time::Duration};

use bevy_ecs::prelude::*;

use super::{Timer, TimerLines};
use crate::{
    clock::{ClockTable, saturating_nanos},
    owner::Owned,
};

/// The error for an entity that has no armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchTimer(pub Entity);

impl fmt::Display for NoSuchTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no armed timer on entity {}", self.0)
    }
}

impl core::error::Error for NoSuchTimer {}

/// Exempts a timer when all timers of its owner are cancelled: the end of a lifetime, or the
/// time-out of a request.
#[derive(Component, Clone, Copy)]
pub(crate) struct SurvivesCancelAll;

/// A new deadline.
#[derive(Clone, Copy)]
pub(crate) enum Move {
    /// This time on the clock.
    To(Duration),
    /// Later than the current deadline by this much.
    By(Duration),
}

/// Moves the deadline of the timer on `entity` as if it had just been armed.
pub(crate) fn move_deadline(
    world: &mut World,
    entity: Entity,
    to: Move,
) -> Result<(), NoSuchTimer> {
    try_move_deadline(world, entity, to).ok_or(NoSuchTimer(entity))
}

fn try_move_deadline(world: &mut World, entity: Entity, to: Move) -> Option<()> {
    let timer = world.get::<Timer>(entity)?;
    let (clock, key) = timer.seat()?;
    let first_wait = timer.first_wait();
    let reading = world.get_resource::<ClockTable>()?.read_now(world, clock)?;
    let mut lines = world.get_resource_mut::<TimerLines>()?;
    let line = lines.get_mut(clock)?;
    let wait = line.wait(key, first_wait)?;
    let before = line.deadline(key, reading.now)?;
    let (deadline, wait) = match to {
        Move::To(shown) => {
            let deadline = reading.passed(shown);
            (deadline, deadline.saturating_sub(reading.now))
        }
        Move::By(by) => {
            let by = saturating_nanos(by);
            (before.saturating_add(by), wait.saturating_add(by))
        }
    };
    line.reschedule(key, deadline, wait, reading.now);
    Some(())
}

/// Delays the timer on `owner` and all timers that belong to it.
pub(crate) fn delay_all(world: &mut World, owner: Entity, by: Duration) {
    for timer in timers_of(world, owner) {
        // A timer that is not armed has no deadline to move.
        move_deadline(world, timer, Move::By(by)).ok();
    }
}

/// Cancels the timer on `owner` and all timers that belong to it.
pub(crate) fn cancel_all(world: &mut World, owner: Entity) {
    for timer in timers_of(world, owner) {
        let Ok(mut entity) = world.get_entity_mut(timer) else {
            continue;
        };
        if entity.contains::<SurvivesCancelAll>() {
            continue;
        }
        if timer == owner {
            entity.remove::<Timer>();
        } else {
            entity.despawn();
        }
    }
}

/// Returns the entities that carry a timer of `owner`.
fn timers_of(world: &World, owner: Entity) -> Vec<Entity> {
    let owned = world.get::<Owned>(owner).into_iter().flatten().copied();
    let entities = iter::once(owner).chain(owned);
    entities
        .filter(|&entity| world.get::<Timer>(entity).is_some())
        .collect()
}
