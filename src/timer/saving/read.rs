//! Reading the states of timers.

use core::num::NonZeroU32;

use bevy_ecs::prelude::*;
use bevy_platform::collections::HashSet;

use super::state::{Progress, TimerState};
use crate::{
    clock::{ClockTable, ClockTimes},
    queue::NEVER,
    timer::{
        Kind, TimerQueues,
        end::Ended,
        place::{NO_CLOCK, Place},
        queued::Mark,
    },
};

/// Reads the states of the timers of a world, as of the last run and with all changes since then.
///
/// A change of a clock has reached the clocks below it.
pub(crate) struct StateReader<'w> {
    queues: &'w TimerQueues,
    table: &'w ClockTable,
    pub(crate) times: ClockTimes<'w>,
    /// The timers of each kind that have ended, but may still be there.
    ended: HashSet<(Entity, Kind)>,
}

impl<'w> StateReader<'w> {
    pub(crate) fn new(world: &'w World) -> Option<Self> {
        let queues = world.get_resource::<TimerQueues>()?;
        let ended = queues.reports.ended.iter();
        Some(Self {
            queues,
            table: world.get_resource()?,
            times: ClockTimes::of(world)?,
            ended: ended.map(|(_, end)| (end.entity, end.kind)).collect(),
        })
    }

    /// Returns what the next runs end, in order, with the numbers of these runs.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (usize, Ended)> {
        self.queues.reports.ended.iter()
    }

    /// Returns the state of the timer of a kind on an entity, or `None` if there is none.
    pub(crate) fn read(&mut self, entity: EntityRef, kind: Kind) -> Option<TimerState> {
        let component = kind.on(entity)?;
        match component.seat.place() {
            Some(place) if self.queues.timer(place).is_some() => self.armed(component.delay, place),
            _ if self.ended.contains(&(entity.id(), kind)) => Some(TimerState::Finished),
            // It has timed out, and its `NoAnswer` is on the way.
            _ if kind == Kind::Request => Some(TimerState::Finished),
            _ => None,
        }
    }

    /// Returns the state of a timer in the queue of a clock.
    fn armed(&mut self, delay: u64, (clock, key): Place) -> Option<TimerState> {
        let queue = self.queues.get(clock)?;
        let timer = queue.timers.get(key)?;
        let sequence = queue.armed_as(key)?;
        if clock == NO_CLOCK {
            let random = timer.random();
            return Some(TimerState::New { sequence, random });
        }
        let (reading, is_held) = self.times.look_up(clock)?;
        let deadline = queue.deadline(key, reading.now)?;
        Some(TimerState::Armed(Progress {
            sequence,
            clock: self.table.id(clock)?,
            remaining: match deadline {
                NEVER => NEVER,
                _ => deadline.saturating_sub(reading.now),
            },
            lateness: reading.now.saturating_sub(deadline),
            wait: timer.wait(delay),
            count: timer.count(),
            left: timer.left().and_then(NonZeroU32::new),
            interval: timer.interval,
            random: timer.random(),
            is_chosen: timer.is(Mark::Chosen),
            is_new: timer.is(Mark::New),
            is_still: is_held || timer.is_paused(),
        }))
    }
}
