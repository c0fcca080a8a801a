//! Going back to earlier timers.

use alloc::vec::Vec;

use bevy_ecs::{entity::MapEntities, prelude::*};

use super::{
    Kind, TimerQueues,
    place::Place,
    queued::{ArmedTimer, Mark},
    queues::{ClockQueue, Reports, is_armed},
    random::Numbers,
    setting::is_observed,
};
use crate::{
    clock::{ClockId, ClockKey},
    journal::Journal,
    queue::Due,
};

/// A timer, a time-out or a lifetime, by its entity.
pub(crate) type TimerName = (Entity, Kind);

/// The timers that have changed, as they were. `None` was not in a queue.
pub(crate) type TimerJournal = Journal<TimerName, Option<QueuedTimer>>;

/// A timer and its place in a queue. Whether it is parked follows from the timer.
#[derive(Clone, Debug)]
pub(crate) struct QueuedTimer {
    place: Place,
    sequence: u64,
    deadline: u64,
    timer: ArmedTimer,
}

/// Everything that has no journal, as it was. It grows with what waits for the next run.
#[derive(Debug)]
pub(crate) struct QueuesMark {
    listed: Vec<TimerName>,
    next_sequence: u64,
    numbers: Numbers,
    reports: Reports,
}

/// Notes that a timer is about to enter a queue.
#[cold]
pub(super) fn note_new(journal: &mut TimerJournal, timer: &ArmedTimer) {
    journal.note((timer.entity, timer.kind()), || None);
}

/// Notes a timer that is about to fire.
#[cold]
pub(super) fn note_due(journal: &mut TimerJournal, clock: ClockKey, due: &Due<ArmedTimer>) {
    journal.note((due.entity, due.kind()), || {
        Some(QueuedTimer {
            place: (clock, due.key()),
            sequence: due.sequence(),
            deadline: due.deadline(),
            timer: (**due).clone(),
        })
    });
}

impl ClockQueue {
    /// Notes a timer of this queue that is about to change.
    #[cold]
    pub(super) fn note(&self, journal: &mut TimerJournal, place: Place) {
        let key = place.1;
        if let (Some(timer), Some(deadline), Some(sequence)) = (
            self.timers.get(key),
            self.timers.deadline(key),
            self.timers.sequence(key),
        ) {
            journal.note((timer.entity, timer.kind()), || {
                Some(QueuedTimer {
                    place,
                    sequence,
                    deadline,
                    timer: timer.clone(),
                })
            });
        }
    }
}

impl TimerQueues {
    /// Returns what [`put_back`](Self::put_back) needs beside the journal that begins now.
    pub(crate) fn mark(&self) -> QueuesMark {
        let listed = self.arming.swap_list.iter();
        let listed = listed.filter_map(|place| self.timer(place));
        QueuesMark {
            listed: listed.map(|timer| (timer.entity, timer.kind())).collect(),
            next_sequence: self.arming.next_sequence,
            numbers: self.arming.numbers,
            reports: self.reports.clone(),
        }
    }

    /// Takes the timers that have changed out of their queues, except for those in their earlier slots.
    pub(crate) fn take_out<'a>(
        &mut self,
        world: &World,
        changed: impl Iterator<Item = (TimerName, &'a Option<QueuedTimer>)>,
    ) {
        for (name, earlier) in changed {
            let is_in_slot = earlier.as_ref().is_some_and(|it| self.is_in_slot(name, it));
            if !is_in_slot
                && let Some(component) = name.1.get(world, name.0)
                && let Some(place) = component.seat.place()
            {
                self.take(place, |_, _| ());
            }
        }
    }

    /// Goes back to the moment of `mark`, after [`take_out`](Self::take_out). All components are there, as
    /// they were.
    pub(crate) fn put_back<'a>(
        &mut self,
        world: &World,
        mark: &QueuesMark,
        changed: impl Iterator<Item = (TimerName, &'a Option<QueuedTimer>)>,
        mapper: &mut impl EntityMapper,
    ) {
        for (name, earlier) in changed {
            if let Some(earlier) = earlier {
                self.put_timer_back(world, name, earlier);
            }
        }
        let listed = &mut self.arming.swap_list;
        listed.retain(|_| false);
        for &(entity, kind) in &mark.listed {
            let component = kind.get(world, mapper.get_mapped(entity));
            if let Some(place) = component.and_then(|it| it.seat.place()) {
                listed.push(place);
            }
        }
        self.arming.next_sequence = mark.next_sequence;
        self.arming.numbers = mark.numbers;
        self.reports = mark.reports.clone();
        self.reports.map_entities(mapper);
    }

    /// Returns `true` if a timer is in the slot in which it was.
    fn is_in_slot(&self, name: TimerName, earlier: &QueuedTimer) -> bool {
        let timer = self.timer(earlier.place);
        timer.is_some_and(|timer| (timer.entity, timer.kind()) == name)
    }

    /// Puts a timer back into its queue. Returns `None` if its component is gone.
    fn put_timer_back(
        &mut self,
        world: &World,
        name: TimerName,
        earlier: &QueuedTimer,
    ) -> Option<()> {
        let QueuedTimer {
            mut place,
            sequence,
            deadline,
            mut timer,
        } = earlier.clone();
        timer.entity = name.0;
        // A run begins without bursts.
        timer.burst = 0;
        let is_parked = timer.is_paused() || timer.is(Mark::Listed);
        if self.is_in_slot(name, earlier) {
            self.note(place);
            let (clock, key) = place;
            let queue = &mut self.get_mut(clock)?.timers;
            let now = queue.get_mut(key)?;
            // Observers are not rolled back.
            timer.set(Mark::Observed, now.is(Mark::Observed));
            *now = timer;
            queue.park(key, deadline);
            queue.set_sequence(key, sequence);
        } else {
            timer.set(Mark::Observed, is_observed(world, name.0));
            let component = name.1.get(world, name.0)?;
            place = self.insert(place.0, sequence, deadline, timer);
            component.seat.move_to(Some(place));
        }
        if !is_parked {
            let queue = self.get_mut(place.0)?;
            queue.is_forgotten = false;
            queue.timers.release(place.1);
        }
        Some(())
    }

    /// Adds the entities whose timers have changed since `mark`, at which `journal` began.
    pub(crate) fn add_changed(
        &self,
        world: &World,
        mark: &QueuesMark,
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
