//! Going back to earlier timers.

use alloc::{
    collections::{BTreeMap, btree_map::Entry},
    vec::Vec,
};

use bevy_ecs::{entity::MapEntities, prelude::*};

use super::{
    Arms, DespawnAfter, Kind, Timer, TimerLines,
    arm::Added,
    budget::Waiting,
    place::Place,
    queued::ArmedTimer,
    queues::{Reports, TimerLine},
    random::Numbers,
};
use crate::{
    clock::{ClockId, ClockKey},
    queue::{Key, QueueMark, SlotJournal},
};

/// The timers that have changed, as they were, by clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinesJournal(BTreeMap<ClockKey, SlotJournal<ArmedTimer>>);

/// Everything that has no journal, as it was. It grows with the number of clocks and with what waits
/// for the next run.
#[derive(Debug)]
pub(crate) struct LinesMark {
    lines: Vec<LineMark>,
    added: Added,
    next_sequence: u64,
    numbers: Numbers,
    waiting: Waiting,
    reports: Reports,
}

#[derive(Debug)]
struct LineMark {
    queue: QueueMark,
    bursting: Vec<Key>,
    lifetimes: usize,
}

impl TimerLines {
    /// Begins a journal of the timers that change.
    pub(crate) fn watch(&mut self) {
        self.is_watched = true;
        self.iter_mut().for_each(|(_, line)| line.queue.watch());
    }

    /// Ends the journal.
    pub(crate) fn unwatch(&mut self) {
        self.is_watched = false;
        self.iter_mut().for_each(|(_, line)| line.queue.unwatch());
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take_journal(&mut self) -> LinesJournal {
        let journals = self.iter_mut();
        let journals = journals.map(|(clock, line)| (clock, line.queue.take_journal()));
        let changed = journals.filter(|(_, journal)| journal.len() > 0);
        LinesJournal(changed.collect())
    }

    /// Returns what [`rewind`](Self::rewind) needs beside the journal that begins now.
    pub(crate) fn mark(&self) -> LinesMark {
        LinesMark {
            lines: self.iter().map(|(_, line)| line.mark()).collect(),
            added: self.arming.added.clone(),
            next_sequence: self.arming.next_sequence,
            numbers: self.arming.numbers,
            waiting: self.waiting.clone(),
            reports: self.reports.clone(),
        }
    }

    /// Goes back to the moment of `mark`, at which `journal` began.
    pub(crate) fn rewind(
        &mut self,
        mark: &LinesMark,
        journal: &LinesJournal,
        mapper: &mut impl EntityMapper,
    ) {
        // A line that was added since then becomes empty.
        let empty = TimerLine::default().mark();
        for (nth, (clock, line)) in self.iter_mut().enumerate() {
            let mark = mark.lines.get(nth).unwrap_or(&empty);
            if let Some(journal) = journal.0.get(&clock) {
                line.queue.put_back(mark.queue, journal, |timer| {
                    timer.entity.map_entities(mapper);
                });
            }
            line.bursting.clone_from(&mark.bursting);
            line.lifetimes = mark.lifetimes;
        }
        self.arming.added = mark.added.clone();
        self.arming.next_sequence = mark.next_sequence;
        self.arming.numbers = mark.numbers;
        self.waiting = mark.waiting.clone();
        self.reports = mark.reports.clone();
        self.reports.map_entities(mapper);
    }

    /// Writes the places of the timers of a journal into their components.
    pub(crate) fn seat_timers(&self, world: &World, journal: &LinesJournal) {
        for (&clock, changed) in &journal.0 {
            for key in changed.keys() {
                if let Some(timer) = self.timer(clock, key) {
                    seat(world, timer.entity, timer.kind(), Place::Armed(clock, key));
                }
            }
        }
    }

    /// Adds the entities whose timers or lifetimes have changed since `mark`, at which `journal` began.
    /// Whatever changes about a timer in a queue, its slot is in the journal.
    pub(crate) fn add_changed(
        &self,
        mark: &LinesMark,
        journal: &LinesJournal,
        changed: &mut Vec<Entity>,
    ) {
        for (&clock, journal) in &journal.0 {
            let slots = self.get(clock).map(|line| line.queue.changed(journal));
            for timers in slots.into_iter().flatten() {
                let [before, now] = timers.map(|timer| timer.map(|timer| timer.entity));
                changed.extend(before);
                changed.extend(now.filter(|_| now != before));
            }
        }
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

fn seat(world: &World, entity: Entity, kind: Kind, place: Place) {
    let seat = match kind {
        Kind::Timer => world.get::<Timer>(entity).map(Arms::seat),
        Kind::Lifetime => world.get::<DespawnAfter>(entity).map(Arms::seat),
    };
    if let Some(seat) = seat {
        seat.move_to(place);
    }
}

impl TimerLine {
    fn mark(&self) -> LineMark {
        LineMark {
            queue: self.queue.mark(),
            bursting: self.bursting.clone(),
            lifetimes: self.lifetimes,
        }
    }
}

impl LinesJournal {
    /// Adds the journal that began when this one ended.
    pub(crate) fn append(&mut self, later: Self) {
        for (clock, later) in later.0 {
            match self.0.entry(clock) {
                Entry::Vacant(entry) => _ = entry.insert(later),
                Entry::Occupied(mut entry) => entry.get_mut().append(later),
            }
        }
    }

    /// Returns the number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(SlotJournal::len).sum()
    }
}
