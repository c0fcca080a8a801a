//! Reading the states of timers.

use alloc::vec::Vec;
use core::num::NonZeroU32;

#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashSet;
use bevy_ecs::prelude::*;

use super::state::{Progress, TimerState, Wait};
use crate::{
    clock::{ClockKey, ClockTable},
    queue::Key,
    timer::{
        Arms, DespawnAfter, Kind, Timer, TimerLines, place::Place, queued::Mark, setting::Setting,
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
        let timers = self.lines.iter().flat_map(|(clock, line)| {
            let timers = line.queue.iter();
            timers.map(move |(key, ..)| (clock, key))
        });
        let states = timers.filter_map(|(clock, key)| self.state(clock, key));
        states.chain(self.finished(|_| true)).collect()
    }

    /// Returns the states of the timers and lifetimes of some entities.
    #[cfg(feature = "serialize")]
    pub(super) fn of(&self, entities: &EntityHashSet) -> Vec<(Entity, Kind, TimerState)> {
        let places = entities.iter().flat_map(|&entity| {
            [
                self.place::<Timer>(entity),
                self.place::<DespawnAfter>(entity),
            ]
        });
        let states = places.filter_map(|place| match place? {
            Place::Armed(clock, key) => self.state(clock, key),
            Place::Nowhere | Place::Reported(_) => None,
        });
        let finished = self.finished(|entity| entities.contains(&entity));
        states.chain(finished).collect()
    }

    /// Returns the timers and lifetimes of some entities that have ended, but are still there.
    fn finished(
        &self,
        is_wanted: impl Fn(Entity) -> bool,
    ) -> impl Iterator<Item = (Entity, Kind, TimerState)> {
        let ended = self.lines.reports.ended.iter().map(|(_, ended)| ended);
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
    fn state(&self, clock: ClockKey, key: Key) -> Option<(Entity, Kind, TimerState)> {
        let timer = self.lines.timer(clock, key)?;
        let (entity, kind) = (timer.entity, timer.kind());
        let state = match kind {
            Kind::Timer => self.state_of::<Timer>(entity, clock, key)?,
            Kind::Lifetime => self.state_of::<DespawnAfter>(entity, clock, key)?,
        };
        Some((entity, kind, state))
    }

    fn state_of<C: Arms>(&self, entity: Entity, clock: ClockKey, key: Key) -> Option<TimerState> {
        let delay = self.world.get::<C>(entity)?.timer().delay;
        let line = self.lines.get(clock)?;
        let timer = line.queue.get(key)?;
        let sequence = line.queue.sequence(key)?;
        // A component that arrived later may have put a new timer on another clock.
        if timer.is(Mark::New) {
            let setting = Setting::of(self.world, entity, C::KIND)?;
            let found = self.table.find(setting.clock).ok();
            if found.is_none_or(|found| found.key != clock) {
                let random = timer.random();
                return Some(TimerState::Added { sequence, random });
            }
        }
        let reading = self.table.reading(clock)?;
        let deadline = line.deadline(key, reading.now)?;
        let id = self.table.id(clock)?;
        Some(TimerState::Armed(Progress {
            sequence,
            wait: Wait::new(id, reading, deadline, timer.wait(delay)),
            count: timer.count(),
            left: timer.left().and_then(NonZeroU32::new),
            interval: timer.interval,
            random: timer.random(),
        }))
    }
}
