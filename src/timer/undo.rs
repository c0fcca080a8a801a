//! Going back to earlier timers.

use alloc::vec::Vec;

use bevy_ecs::{entity::MapEntities, prelude::*};

use super::{
    Kind, TimerLines,
    budget::Waiting,
    place::Place,
    queued::{ArmedTimer, Mark},
    queues::{Reports, TimerLine, is_armed},
    random::Numbers,
};
use crate::{
    clock::{ClockId, ClockKey},
    journal::Journal,
    queue::Key,
};

/// A timer or a lifetime, by its entity.
pub(crate) type TimerName = (Entity, Kind);

/// The timers that have changed, as they were. `None` was not in a queue.
pub(crate) type TimerJournal = Journal<TimerName, Option<QueuedTimer>>;

/// A timer and its place in a queue. Whether it is parked follows from the timer.
#[derive(Clone, Debug)]
pub(crate) struct QueuedTimer {
    clock: ClockKey,
    sequence: u64,
    deadline: u64,
    timer: ArmedTimer,
}

/// Everything that has no journal, as it was. It grows with what waits for the next run.
#[derive(Debug)]
pub(crate) struct LinesMark {
    added: Vec<TimerName>,
    loaded: usize,
    next_sequence: u64,
    numbers: Numbers,
    waiting: Waiting,
    reports: Reports,
}

/// Notes that a timer is about to enter a queue.
#[cold]
pub(super) fn note_new(journal: &mut TimerJournal, timer: &ArmedTimer) {
    journal.note((timer.entity, timer.kind()), || None);
}

impl TimerLine {
    /// Notes a timer of this line that is about to change.
    #[cold]
    pub(super) fn note(&self, journal: &mut TimerJournal, clock: ClockKey, key: Key) {
        if let (Some(timer), Some(deadline), Some(sequence)) = (
            self.queue.get(key),
            self.queue.deadline(key),
            self.queue.sequence(key),
        ) {
            journal.note((timer.entity, timer.kind()), || {
                let timer = timer.clone();
                Some(QueuedTimer {
                    clock,
                    sequence,
                    deadline,
                    timer,
                })
            });
        }
    }
}

impl TimerLines {
    /// Returns what [`put_back`](Self::put_back) needs beside the journal that begins now.
    pub(crate) fn mark(&self) -> LinesMark {
        let added = self.arming.added.iter();
        let added = added.filter_map(|(clock, key)| self.timer(clock, key));
        LinesMark {
            added: added.map(|timer| (timer.entity, timer.kind())).collect(),
            loaded: self.arming.added.loaded,
            next_sequence: self.arming.next_sequence,
            numbers: self.arming.numbers,
            waiting: self.waiting.clone(),
            reports: self.reports.clone(),
        }
    }

    /// Takes timers out of their queues, if they are there.
    pub(crate) fn take_out(&mut self, world: &World, timers: impl Iterator<Item = TimerName>) {
        for (entity, kind) in timers {
            if let Some(component) = kind.get(world, entity)
                && let Some((clock, key)) = component.seat.armed()
            {
                self.take(clock, key);
            }
        }
    }

    /// Goes back to the moment of `mark`. The timers that have changed since are in no queue, and their
    /// components are as they were.
    pub(crate) fn put_back<'a>(
        &mut self,
        world: &World,
        mark: &LinesMark,
        changed: impl Iterator<Item = (TimerName, &'a Option<QueuedTimer>)>,
        mapper: &mut impl EntityMapper,
    ) {
        self.waiting.rewind(&mark.waiting);
        for ((entity, kind), earlier) in changed {
            if let (Some(earlier), Some(component)) = (earlier, kind.get(world, entity)) {
                let key = self.put_timer_back(entity, earlier);
                component.seat.move_to(Place::Armed(earlier.clock, key));
            }
        }
        let added = &mut self.arming.added;
        added.retain(|_, _| false);
        added.loaded = mark.loaded;
        for &(entity, kind) in &mark.added {
            if let Some(component) = kind.get(world, mapper.get_mapped(entity))
                && let Some((clock, key)) = component.seat.armed()
            {
                added.push(clock, key);
            }
        }
        self.arming.next_sequence = mark.next_sequence;
        self.arming.numbers = mark.numbers;
        self.reports = mark.reports.clone();
        self.reports.map_entities(mapper);
    }

    fn put_timer_back(&mut self, entity: Entity, earlier: &QueuedTimer) -> Key {
        let mut timer = earlier.timer.clone();
        timer.entity = entity;
        // A run begins without bursts.
        timer.burst = 0;
        let rank = timer.rare().and_then(|rare| rare.rank);
        let is_parked = rank.is_some() || timer.is_halted() || timer.is(Mark::Added);
        let QueuedTimer {
            clock,
            sequence,
            deadline,
            ..
        } = *earlier;
        let key = self.insert(clock, sequence, deadline, timer);
        if let Some(rank) = rank {
            self.waiting.put_back(rank, clock, key);
        }
        if let Some(line) = self.get_mut(clock).filter(|_| !is_parked) {
            line.queue.release(key);
        }
        key
    }

    /// Adds the entities whose timers or lifetimes have changed since `mark`, at which `journal` began.
    pub(crate) fn add_changed(
        &self,
        world: &World,
        mark: &LinesMark,
        journal: &TimerJournal,
        changed: &mut Vec<Entity>,
    ) {
        let timers = journal.iter();
        let timers = timers.filter(|&((entity, kind), before)| {
            // A new one may be gone again.
            before.is_some() || is_armed(world, entity, kind)
        });
        changed.extend(timers.map(|((entity, _), _)| entity));
        changed.extend(self.reports.ended.differences(&mark.reports.ended));
    }

    /// Returns the entities of the timers that have finished, and that the next run ends.
    pub(crate) fn finished(&self) -> impl Iterator<Item = Entity> {
        self.reports.ended.iter().map(|(_, ended)| ended.entity)
    }
}

impl Reports {
    fn map_entities(&mut self, mapper: &mut impl EntityMapper) {
        for ended in self.ended.iter_mut() {
            ended.entity.map_entities(mapper);
        }
        for cancelled in self.cancelled.iter_mut() {
            cancelled.entity.map_entities(mapper);
            cancelled.owner.map_entities(mapper);
            let mut clock = ClockId::from(cancelled.clock);
            clock.map_entities(mapper);
            cancelled.clock = clock.into();
        }
    }
}
