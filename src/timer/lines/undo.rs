//! Going back to earlier timers.

use alloc::{
    collections::{BTreeMap, btree_map::Entry},
    vec::Vec,
};

use bevy_ecs::{entity::MapEntities, prelude::*};

use super::TimerLines;
use crate::{
    clock::{ClockId, ClockKey},
    double_buffer::DoubleBuffer,
    journal::Journal,
    queue::{Key, QueueMark, SlotJournal},
    timer::{
        Arms, DespawnAfter, Kind, Timer,
        armed::ArmedTimer,
        budget::Spent,
        cancellations::Cancellations,
        deferrable::DeferrableJournal,
        ended::EndedTimers,
        line::{Rescheduled, TimerLine},
        pending::PendingTimers,
        place::Place,
        random_interval::RandomInterval,
        slack::SlackJournal,
        stats::TimerStats,
    },
};

/// The timers that have changed, as they were.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinesJournal(pub(super) BTreeMap<ClockKey, LineJournal>);

/// The timers of one clock that have changed, as they were.
#[derive(Clone, Debug)]
pub(super) struct LineJournal {
    pub(super) slots: SlotJournal<ArmedTimer>,
    paused: Journal<Key, Option<u64>>,
    in_transit: Journal<Key, Option<()>>,
    rescheduled: Journal<Key, Option<Rescheduled>>,
    random: Journal<Key, Option<RandomInterval>>,
    slack: SlackJournal,
    deferrable: DeferrableJournal,
}

/// Everything that has no journal, as it was. It grows with the number of clocks and with what waits
/// for the next run.
#[derive(Debug)]
pub(crate) struct LinesMark {
    lines: Vec<LineMark>,
    pub(super) pending: PendingTimers,
    touched: Vec<ClockKey>,
    cancelled: Cancellations,
    pub(super) ended: EndedTimers,
    stats: TimerStats,
    draws: u64,
    armed: u64,
    spent: Spent,
}

#[derive(Debug)]
struct LineMark {
    queue: QueueMark,
    added: DoubleBuffer<Key>,
    bursting: Vec<Key>,
    lifetimes: usize,
    is_touched: bool,
    slack_offset: i128,
}

impl TimerLines {
    /// Begins a journal of the timers that change.
    pub(crate) fn watch(&mut self) {
        self.lines.iter_mut().for_each(TimerLine::watch);
        self.new_line = || {
            let mut line = TimerLine::default();
            line.watch();
            line
        };
    }

    /// Ends the journal.
    pub(crate) fn unwatch(&mut self) {
        self.new_line = TimerLine::default;
        for line in &mut self.lines {
            line.queue.unwatch();
            line.paused.unwatch();
            line.in_transit.unwatch();
            line.rescheduled.unwatch();
            line.random.unwatch();
            line.slack.unwatch();
            line.deferrable.unwatch();
        }
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take_journal(&mut self) -> LinesJournal {
        let lines = (0..).zip(&mut self.lines);
        let journals = lines.map(|(clock, line)| (clock, line.take_journal()));
        let changed = journals.filter(|(_, journal)| journal.len() > 0);
        LinesJournal(changed.collect())
    }

    /// Returns what [`rewind`](Self::rewind) needs beside the journal that begins now.
    pub(crate) fn mark(&self) -> LinesMark {
        // Every field is named, so that a new one is not forgotten.
        let Self {
            lines,
            pending,
            touched,
            due: _,
            cancelled,
            ended,
            written: _,
            stats,
            draws,
            armed,
            spent,
            modifiers: _,
            game_time: _,
            new_line: _,
        } = self;
        LinesMark {
            lines: lines.iter().map(TimerLine::mark).collect(),
            pending: pending.clone(),
            touched: touched.clone(),
            cancelled: cancelled.clone(),
            ended: ended.clone(),
            stats: stats.clone(),
            draws: *draws,
            armed: *armed,
            spent: *spent,
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
        for (nth, line) in self.lines.iter_mut().enumerate() {
            let mark = mark.lines.get(nth).unwrap_or(&empty);
            if let Some(journal) = journal.0.get(&(nth as ClockKey)) {
                line.put_journal_back(mark.queue, journal, mapper);
            }
            line.put_mark_back(mark);
        }
        self.pending = mark.pending.clone();
        self.touched.clone_from(&mark.touched);
        self.cancelled = mark.cancelled.clone();
        self.ended = mark.ended.clone();
        self.stats = mark.stats.clone();
        (self.draws, self.armed) = (mark.draws, mark.armed);
        self.spent = mark.spent;
        self.map_waiting(mapper);
    }

    /// Changes the entities of everything that waits for the next run.
    fn map_waiting(&mut self, mapper: &mut impl EntityMapper) {
        for pending in self.pending.iter_mut() {
            pending.entity.map_entities(mapper);
        }
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

    /// Writes the places of the timers of a journal into their components.
    pub(crate) fn seat_timers(&self, world: &World, journal: &LinesJournal) {
        for (&clock, changed) in &journal.0 {
            let queue = self.get(clock).map(|line| &line.queue);
            for key in changed.slots.keys() {
                if let Some(timer) = queue.and_then(|queue| queue.get(key)) {
                    let place = Place::Armed(clock, key);
                    seat(world, timer.entity, timer.kind(), place);
                }
            }
        }
        for (index, pending) in self.pending.places() {
            seat(world, pending.entity, pending.kind, Place::Pending(index));
        }
    }

    /// Returns the timers that wait for the next swap.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Entity, Kind)> {
        let pending = self.pending.iter();
        pending.map(|pending| (pending.entity, pending.kind))
    }

    /// Returns the entities of the timers that have finished, and that the next run ends.
    pub(crate) fn finished(&self) -> impl Iterator<Item = Entity> {
        self.ended.iter().map(|(_, ended)| ended.entity)
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
    fn watch(&mut self) {
        self.queue.watch();
        self.paused.watch();
        self.in_transit.watch();
        self.rescheduled.watch();
        self.random.watch();
        self.slack.watch();
        self.deferrable.watch();
    }

    fn take_journal(&mut self) -> LineJournal {
        LineJournal {
            slots: self.queue.take_journal(),
            paused: self.paused.take_journal(),
            in_transit: self.in_transit.take_journal(),
            rescheduled: self.rescheduled.take_journal(),
            random: self.random.take_journal(),
            slack: self.slack.take_journal(),
            deferrable: self.deferrable.take_journal(),
        }
    }

    fn mark(&self) -> LineMark {
        // Every field is named, so that a new one is not forgotten. Six of them have a journal.
        let Self {
            queue,
            added,
            paused: _,
            in_transit: _,
            rescheduled: _,
            random: _,
            slack,
            deferrable: _,
            bursting,
            lifetimes,
            is_touched,
        } = self;
        LineMark {
            queue: queue.mark(),
            added: added.clone(),
            bursting: bursting.clone(),
            lifetimes: *lifetimes,
            is_touched: *is_touched,
            slack_offset: slack.offset(),
        }
    }

    fn put_journal_back(
        &mut self,
        mark: QueueMark,
        journal: &LineJournal,
        mapper: &mut impl EntityMapper,
    ) {
        self.queue.put_back(mark, &journal.slots, |timer| {
            timer.entity.map_entities(mapper);
            timer.owner.map_entities(mapper);
        });
        self.paused.put_back(&journal.paused);
        self.in_transit.put_back(&journal.in_transit);
        self.rescheduled.put_back(&journal.rescheduled);
        self.random.put_back(&journal.random);
        self.slack.put_back(&journal.slack);
        self.deferrable.put_back(&journal.deferrable);
    }

    fn put_mark_back(&mut self, mark: &LineMark) {
        self.added = mark.added.clone();
        self.bursting.clone_from(&mark.bursting);
        self.lifetimes = mark.lifetimes;
        self.is_touched = mark.is_touched;
        self.slack.put_offset_back(mark.slack_offset);
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
        self.0.values().map(LineJournal::len).sum()
    }
}

impl LineJournal {
    fn append(&mut self, later: Self) {
        self.slots.append(later.slots);
        self.paused.append(later.paused);
        self.in_transit.append(later.in_transit);
        self.rescheduled.append(later.rescheduled);
        self.random.append(later.random);
        self.slack.append(later.slack);
        self.deferrable.append(later.deferrable);
    }

    fn len(&self) -> usize {
        self.slots.len()
            + self.paused.len()
            + self.in_transit.len()
            + self.rescheduled.len()
            + self.random.len()
            + self.slack.len()
            + self.deferrable.len()
    }
}
