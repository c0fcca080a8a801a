//! Reading the states of timers.

use alloc::vec::Vec;
use core::num::NonZeroU32;

#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashSet;
use bevy_ecs::prelude::*;

use super::state::{Draws, Order, Progress, TimerState, Wait};
use crate::{
    clock::{ClockId, ClockKey, ClockTable, Reading},
    queue::Key,
    timer::{
        Arms, DespawnAfter, Kind, Timer, TimerLines,
        line::TimerLine,
        pending::{Pending, sort},
        place::Place,
        setting::Setting,
    },
};

/// Reads the states of the timers of a world, as of the last run and with all changes since then.
///
/// A change of a clock has reached the clocks below it.
pub(super) struct Capture<'w> {
    world: &'w World,
    lines: &'w TimerLines,
    table: &'w ClockTable,
}

impl<'w> Capture<'w> {
    pub(super) fn new(world: &'w World) -> Option<Self> {
        Some(Self {
            world,
            lines: world.get_resource()?,
            table: world.get_resource()?,
        })
    }

    /// Returns the states of all timers and lifetimes.
    pub(super) fn all(&self) -> Vec<(Entity, Kind, TimerState)> {
        let mut states = Vec::new();
        for (clock, line) in (0..).zip(self.lines.iter()) {
            let Some(clock) = self.clock(clock) else {
                continue;
            };
            let timers = line.queue.iter();
            states.extend(timers.filter_map(|(key, _, timer)| {
                let (entity, kind) = (timer.entity, timer.kind());
                let state = match kind {
                    Kind::Timer => self.armed::<Timer>(entity, (line, key), clock),
                    Kind::Lifetime => self.armed::<DespawnAfter>(entity, (line, key), clock),
                };
                Some((entity, kind, state?))
            }));
        }
        let pending = self.lines.pending.iter().copied().collect();
        states.extend(self.all_pending(pending));
        states.extend(self.finished(|_| true));
        states
    }

    /// Returns the states of the timers and lifetimes of some entities.
    #[cfg(feature = "serialize")]
    pub(super) fn of(&self, entities: &EntityHashSet) -> Vec<(Entity, Kind, TimerState)> {
        let (mut states, mut indices) = (Vec::new(), Vec::new());
        for &entity in entities {
            let places = [
                (Kind::Timer, self.place::<Timer>(entity)),
                (Kind::Lifetime, self.place::<DespawnAfter>(entity)),
            ];
            for (kind, place) in places {
                match place {
                    Some(Place::Armed(clock, key)) => {
                        let state = self.armed_at(entity, kind, clock, key);
                        states.extend(state.map(|state| (entity, kind, state)));
                    }
                    Some(Place::Pending(index)) => indices.push(index),
                    Some(Place::Nowhere | Place::Reported(_)) | None => {}
                }
            }
        }
        indices.sort_unstable();
        let pending = indices.into_iter();
        let pending = pending.filter_map(|index| self.lines.pending.get(index).copied());
        states.extend(self.all_pending(pending.collect()));
        states.extend(self.finished(|entity| entities.contains(&entity)));
        states
    }

    #[cfg(feature = "serialize")]
    fn armed_at(
        &self,
        entity: Entity,
        kind: Kind,
        clock: ClockKey,
        key: Key,
    ) -> Option<TimerState> {
        let line = (self.lines.get(clock)?, key);
        let clock = self.clock(clock)?;
        match kind {
            Kind::Timer => self.armed::<Timer>(entity, line, clock),
            Kind::Lifetime => self.armed::<DespawnAfter>(entity, line, clock),
        }
    }

    /// Returns the states of timers that were inserted since the last run, in this order.
    fn all_pending(
        &self,
        mut pending: Vec<Pending>,
    ) -> impl Iterator<Item = (Entity, Kind, TimerState)> {
        sort(&mut pending, |pending| saved_order(self.world, pending));
        let pending = pending.into_iter().zip(0..);
        pending.filter_map(|(pending, nth)| {
            let state = match pending.kind {
                Kind::Timer => self.pending::<Timer>(&pending, nth),
                Kind::Lifetime => self.pending::<DespawnAfter>(&pending, nth),
            };
            Some((pending.entity, pending.kind, state?))
        })
    }

    fn clock(&self, key: ClockKey) -> Option<(ClockId, Reading)> {
        Some((self.table.id(key)?, self.table.read_to_save(key)?))
    }

    /// Returns the timers and lifetimes of some entities that have ended, but are still there.
    fn finished(
        &self,
        is_wanted: impl Fn(Entity) -> bool,
    ) -> impl Iterator<Item = (Entity, Kind, TimerState)> {
        let ended = self.lines.ended.iter().map(|(_, ended)| ended);
        let finished = ended.filter(move |ended| {
            if !is_wanted(ended.entity) {
                return false;
            }
            let place = match ended.kind {
                Kind::Timer => self.place::<Timer>(ended.entity),
                Kind::Lifetime => self.place::<DespawnAfter>(ended.entity),
            };
            place.is_some_and(|place| !self.lines.is_at(place))
        });
        finished.map(|ended| (ended.entity, ended.kind, TimerState::Finished))
    }

    fn place<C: Arms>(&self, entity: Entity) -> Option<Place> {
        Some(self.world.get::<C>(entity)?.seat().place())
    }

    /// Returns the state of a timer in the queue of a clock.
    fn armed<C: Arms>(
        &self,
        entity: Entity,
        (line, key): (&TimerLine, Key),
        (clock, reading): (ClockId, Reading),
    ) -> Option<TimerState> {
        let component = self.world.get::<C>(entity)?;
        let timer = line.queue.get(key)?;
        let deadline = line.deadline(key, reading.now)?;
        let length = line.wait(key, component.first_wait())?;
        Some(TimerState::Armed(Progress {
            sequence: line.queue.sequence(key)?,
            wait: Wait::new(clock, reading, deadline, length),
            count: timer.count(),
            left: timer.left().and_then(NonZeroU32::new),
            interval: timer.interval,
            random: line.random(key).map(|intervals| Draws {
                is_on: timer.is_random(),
                intervals,
            }),
            shift: line.shift(key),
        }))
    }

    /// Returns the state of a timer that was inserted since the last run, after `nth` others.
    fn pending<C: Arms>(&self, pending: &Pending, nth: u64) -> Option<TimerState> {
        let component = self.world.get::<C>(pending.entity)?;
        let loaded = component.loaded();
        let start = self.lines.pending.start(pending, component.first_wait());
        let wait = start.and_then(|mut start| {
            // A component that arrived later may have put the timer on another clock.
            let setting = Setting::of::<C>(self.world, pending.entity)?;
            let found = self.table.find(setting.clock).ok()?;
            (found.age == start.age).then_some(())?;
            let (clock, reading) = self.clock(start.clock)?;
            start.resume_at(reading.now);
            let length = loaded.and_then(TimerState::wait).map(|wait| wait.length);
            let length = length.unwrap_or(component.first_wait());
            Some(Wait::new(clock, reading, start.deadline, length))
        });
        let Some(&progress) = loaded.and_then(TimerState::progress) else {
            return Some(TimerState::Added { nth, wait });
        };
        // It follows the timers that are in the queue.
        let line = start.and_then(|start| self.lines.get(start.clock));
        let sequence = line.map_or(0, |line| line.queue.next_sequence()) + nth;
        Some(TimerState::Armed(Progress {
            sequence,
            wait: wait.unwrap_or(progress.wait),
            ..progress
        }))
    }
}

/// Returns the saved order of a pending timer that was loaded.
pub(in crate::timer) fn saved_order(world: &World, pending: &Pending) -> Option<Order> {
    let loaded = match pending.kind {
        Kind::Timer => world.get::<Timer>(pending.entity)?.loaded(),
        Kind::Lifetime => world.get::<DespawnAfter>(pending.entity)?.loaded(),
    };
    loaded.map(TimerState::order)
}
