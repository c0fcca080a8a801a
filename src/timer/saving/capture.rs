//! Reading the states of timers.

use core::num::NonZeroU32;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::collections::HashSet;

use super::state::{Progress, TimerState};
use crate::{
    clock::{ClockTable, ClockTimes},
    queue::NEVER,
    timer::{
        Finished, Kind, Timer, TimerQueues, WhenDone,
        end::Origin,
        place::{NO_CLOCK, Place},
        queued::Mark,
    },
};

/// Reads the states of the timers of a world, as of the last run and with all changes since then.
///
/// A change of a clock has reached the clocks below it.
pub(crate) struct Capture<'w> {
    queues: &'w TimerQueues,
    table: &'w ClockTable,
    pub(crate) times: ClockTimes<'w>,
    /// The timers of each kind that have ended, but may still be there.
    ended: HashSet<(Entity, Kind)>,
    /// The marks of the entities that the next run despawns.
    pub(crate) finished: EntityHashMap<Finished>,
}

impl<'w> Capture<'w> {
    pub(crate) fn new(world: &'w World) -> Option<Self> {
        let queues = world.get_resource::<TimerQueues>()?;
        let mut ended = HashSet::default();
        let mut finished = EntityHashMap::<Finished>::default();
        for (order, (ends_in, end)) in queues.reports.ended.iter().enumerate() {
            ended.insert((end.entity, end.kind));
            if end.when_done != WhenDone::Keep {
                let mark = finished.entry(end.entity).or_insert_with(|| Finished {
                    ends: Default::default(),
                    order,
                    origin: Origin::Own,
                });
                mark.ends[ends_in].push(end.when_done);
            }
        }
        Some(Self {
            queues,
            table: world.get_resource()?,
            times: ClockTimes::of(world)?,
            ended,
            finished,
        })
    }

    /// Returns the timer of a kind on an entity in its state, or `None` if there is none.
    pub(crate) fn save(&mut self, entity: EntityRef, kind: Kind) -> Option<Timer> {
        let state = self.state(entity, kind)?;
        let mut saved = kind.on(entity)?.clone();
        saved.load(state);
        Some(saved)
    }

    /// Returns the state of the timer of a kind on an entity, or `None` if there is none.
    pub(super) fn state(&mut self, entity: EntityRef, kind: Kind) -> Option<TimerState> {
        let component = kind.on(entity)?;
        match component.seat.place() {
            Some(place) if self.queues.timer(place).is_some() => self.armed(component.delay, place),
            _ if self.ended.contains(&(entity.id(), kind)) => Some(TimerState::Finished),
            // It has timed out, and its `NoAnswer` is on the way.
            _ if kind == Kind::Request => Some(TimerState::Finished),
            Some(_) => None,
            None => component.loaded().copied(),
        }
    }

    /// Returns the state of a timer in the queue of a clock.
    fn armed(&mut self, delay: u64, (clock, key): Place) -> Option<TimerState> {
        let queue = self.queues.get(clock)?;
        let timer = queue.timers.get(key)?;
        let sequence = queue.armed_as(key)?;
        if clock == NO_CLOCK {
            let random = timer.random();
            return Some(TimerState::Unsettled { sequence, random });
        }
        let reading = self.times.reading(clock)?;
        let deadline = queue.deadline(key, reading.now)?;
        Some(TimerState::Armed(Progress {
            sequence,
            clock: self.table.id(clock)?,
            now: reading.shown_nanos(reading.now),
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
        }))
    }
}
