//! The timers of a world, in one queue per clock.

use alloc::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    vec::Vec,
};
use core::{mem, num::NonZeroU32, time::Duration};

use bevy_ecs::{prelude::*, world::DeferredWorld};

use super::{
    Kind, RunStats, Timer,
    arm::{Arming, LIFETIME},
    cancelled::Cancellations,
    clock_queues::ClockQueues,
    end::EndedTimers,
    keyed::KeyTable,
    place::Place,
    queued::{ArmedTimer, Mark, resumed},
    random::Numbers,
    run::RunDepth,
    setting::Modifiers,
    undo::{TimerJournal, note_new},
};
use crate::{
    clock::{Cadence, ChangedClocks, ClockId, ClockKey, ClockTable, Reading, Scope},
    queue::{Key, NEVER, TimerQueue, shrink},
};

/// The timers of a world.
#[derive(Resource, Debug)]
pub(crate) struct TimerQueues {
    /// The timers of each clock. The first queue belongs to [`NO_CLOCK`](super::place::NO_CLOCK).
    pub(super) queues: ClockQueues,
    /// The timers that have changed since the latest snapshot, if there is one.
    pub(crate) journal: Option<TimerJournal>,
    /// The entities that have keys.
    pub(crate) keys: KeyTable,
    /// The owner whose list stays for now, even if it is empty.
    pub(super) keeps_list: Option<Entity>,
    pub(super) arming: Arming,
    /// The timers in the middle of a burst, or of a chain in an exact frame.
    pub(super) bursting: Vec<Place>,
    pub(super) reports: Reports,
    pub(super) burst_limit: NonZeroU32,
    /// The clocks to fast-forward at the end of this run, and how far.
    pub(super) forwards: VecDeque<(ClockId, Duration)>,
    /// Completes the request of an entity that has timed out.
    pub(super) on_time_out: fn(&mut World, Entity),
    pub(super) depth: RunDepth,
}

/// The reports and the cleaning that the next run has to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    pub(super) cancelled: Cancellations,
    pub(super) ended: EndedTimers,
    /// The statistics of the last run of each cadence, and of the last step of a fast-forward.
    pub(super) runs: [RunStats; 3],
    /// The number of timers armed since the last run.
    pub(super) armed: u64,
}

impl Reports {
    pub(super) fn run(&self, scope: Scope) -> RunStats {
        self.runs[Self::index(scope)]
    }

    /// Returns `true` if a run has timers to end that have finished.
    pub(super) fn has_ended(&self, scope: Scope) -> bool {
        match scope {
            Scope::Of(cadence) => !self.ended.is_empty(cadence),
            Scope::Under(_) => false,
        }
    }

    pub(super) fn index(scope: Scope) -> usize {
        match scope {
            Scope::Of(Cadence::Frame) => 0,
            Scope::Of(Cadence::FixedStep) => 1,
            Scope::Under(_) => 2,
        }
    }
}

/// The timers of one clock.
#[derive(Debug, Default)]
pub(crate) struct ClockQueue {
    pub(crate) timers: TimerQueue<ArmedTimer>,
    /// The number of lifetimes and time-outs in the queue.
    pub(super) silent: usize,
    /// The frame in which the queue last gave memory back.
    pub(super) trimmed: u32,
    /// Whether the clock is gone. The queue goes when it has given its memory back.
    pub(super) is_forgotten: bool,
}

/// Returns the first time at which a queue has something to do.
type FirstOf = fn(&TimerQueue<ArmedTimer>) -> Option<u64>;

/// The index of the queue of a clock. `NO_CLOCK` has the first one.
pub(super) fn index(clock: ClockKey) -> usize {
    clock.wrapping_add(1) as usize
}

impl TimerQueues {
    /// Creates the queues of a world. `on_time_out` completes the request of an entity that has timed out.
    pub(crate) fn new(
        world: &mut World,
        seed: u64,
        burst_limit: NonZeroU32,
        on_time_out: fn(&mut World, Entity),
    ) -> Self {
        Self {
            queues: ClockQueues::default(),
            journal: None,
            keys: KeyTable::default(),
            keeps_list: None,
            arming: Arming::new(Modifiers::new(world), seed),
            bursting: Vec::new(),
            reports: Reports::default(),
            burst_limit,
            forwards: VecDeque::new(),
            on_time_out,
            depth: RunDepth::default(),
        }
    }

    pub(crate) fn get(&self, clock: ClockKey) -> Option<&ClockQueue> {
        self.queues.get(index(clock))
    }

    pub(crate) fn get_mut(&mut self, clock: ClockKey) -> Option<&mut ClockQueue> {
        self.queues.get_mut(index(clock))
    }

    /// Returns the queues of all clocks. The queue of a clock that is gone is empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ClockKey, &ClockQueue)> {
        let queues = self.queues.iter();
        queues.map(|(index, queue)| ((index as ClockKey).wrapping_sub(1), queue))
    }

    /// Gives back the queue of a clock that is about to be removed. No place in it is ever used again.
    pub(crate) fn forget_clock(&mut self, clock: ClockKey) {
        self.queues.forget(index(clock));
    }

    /// Gives back some memory that was not needed recently. Call this once per frame.
    pub(super) fn trim(&mut self) {
        self.arming.swap_list.trim();
        self.reports.ended.trim();
        if self.queues.trim() {
            if self.bursting.is_empty() {
                shrink(&mut self.bursting, 0);
            }
            let due = &mut self.arming.due;
            let needed = due.len();
            due.clear();
            shrink(due, needed);
        }
    }

    /// Notes a timer that is about to change.
    #[inline]
    pub(super) fn note(&mut self, place: Place) {
        if let Some(journal) = &mut self.journal
            && let Some(queue) = self.queues.get(index(place.0))
        {
            queue.note(journal, place);
        }
    }

    /// Puts a timer into the queue of a clock. The next swap lets it wait for its deadline.
    #[inline]
    pub(super) fn add(&mut self, clock: ClockKey, deadline: u64, mut timer: ArmedTimer) -> Place {
        timer.set(Mark::Listed, true);
        let sequence = self.arming.next_sequence(timer.kind());
        let place = self.insert(clock, sequence, deadline, timer);
        self.list(place);
        place
    }

    /// Puts a timer into the queue of a clock, parked.
    #[inline]
    pub(super) fn insert(
        &mut self,
        clock: ClockKey,
        sequence: u64,
        deadline: u64,
        timer: ArmedTimer,
    ) -> Place {
        if let Some(journal) = &mut self.journal {
            note_new(journal, &timer);
        }
        let queue = self.queue_for(clock);
        queue.silent += usize::from(timer.reaction.is_silent());
        // It may come from another clock.
        let is_bursting = timer.burst > 0;
        let place = (
            clock,
            queue.timers.insert_parked_at(sequence, deadline, timer),
        );
        self.bursting.extend(is_bursting.then_some(place));
        place
    }

    /// Puts a timer on the list of the next swap.
    #[inline]
    fn list(&mut self, place: Place) {
        if self.arming.depth > 0 {
            self.lengthen_chain(place);
        }
        if self.arming.swap_list.is_full() {
            self.tidy();
        }
        self.arming.swap_list.push(place);
    }

    /// Notes how long the chain of an exact frame is to which a timer belongs: see [`release`](Self::release).
    #[cold]
    fn lengthen_chain(&mut self, place: Place) {
        let depth = self.arming.depth;
        if let Some(timer) = self.timer_mut(place) {
            timer.burst = depth.max(timer.burst);
            self.bursting.push(place);
        }
    }

    /// Forgets the cancelled timers of the list. A timer that is armed again and again leaves no trail.
    #[cold]
    fn tidy(&mut self) {
        let mut listed = mem::take(&mut self.arming.swap_list);
        listed.retain(|place| self.timer(place).is_some());
        self.arming.swap_list = listed;
    }

    /// Returns the queue of a clock, to which a timer is added.
    #[inline]
    fn queue_for(&mut self, clock: ClockKey) -> &mut ClockQueue {
        self.queues.get_or_add(index(clock))
    }

    pub(super) fn timer(&self, (clock, key): Place) -> Option<&ArmedTimer> {
        self.get(clock)?.timers.get(key)
    }

    pub(super) fn timer_mut(&mut self, place: Place) -> Option<&mut ArmedTimer> {
        self.note(place);
        let (clock, key) = place;
        self.get_mut(clock)?.timers.get_mut(key)
    }

    pub(super) fn deadline(&self, (clock, key): Place) -> Option<u64> {
        self.get(clock)?.timers.deadline(key)
    }

    /// Takes a timer out of its queue, if it was armed or paused, after `read` has seen it and its deadline.
    #[inline]
    pub(super) fn take<Out>(
        &mut self,
        place: Place,
        read: impl FnOnce(u64, &ArmedTimer) -> Out,
    ) -> Option<Out> {
        self.note(place);
        let (clock, key) = place;
        let queue = self.queues.get_mut(index(clock))?;
        let silent = &mut queue.silent;
        queue.timers.cancel_after(key, |deadline, timer| {
            *silent -= usize::from(timer.reaction.is_silent());
            read(deadline, timer)
        })
    }

    /// Pauses a timer or lets it go on, at a reading of its clock.
    pub(super) fn set_paused(&mut self, place: Place, is_paused: bool, now: u64) {
        let Some(deadline) = self.deadline(place) else {
            return;
        };
        let Some(timer) = self.timer_mut(place) else {
            return;
        };
        let deadline = match is_paused {
            true => deadline,
            false => timer.deadline_at(now, deadline),
        };
        timer.set_paused(is_paused, now);
        self.park(place, deadline);
    }

    /// Moves the deadline of a timer, and gives it a new place among equal ones.
    pub(super) fn reschedule(&mut self, place: Place, (deadline, wait): (u64, u64), now: u64) {
        let Some(kind) = self.timer(place).map(ArmedTimer::kind) else {
            return;
        };
        let sequence = self.arming.next_sequence(kind);
        let Some(timer) = self.timer_mut(place) else {
            return;
        };
        timer.change_rare(|rare| {
            rare.wait = Some(wait);
            rare.paused_at = rare.paused_at.map(|_| now);
        });
        self.park(place, deadline);
        let (clock, key) = place;
        if let Some(queue) = self.get_mut(clock) {
            queue.timers.set_sequence(key, sequence);
        }
    }

    /// Parks a timer until the next swap, or until it is no longer paused.
    fn park(&mut self, place: Place, deadline: u64) {
        let (clock, key) = place;
        let Some(queue) = self.queues.get_mut(index(clock)) else {
            return;
        };
        queue.timers.park(key, deadline);
        let Some(timer) = queue.timers.get_mut(key) else {
            return;
        };
        if timer.is_paused() {
            return;
        }
        if !timer.is(Mark::Listed) {
            timer.set(Mark::Listed, true);
            self.list(place);
        } else if self.arming.depth > 0 {
            self.lengthen_chain(place);
        }
    }

    /// Moves a timer to another clock, where it keeps its remaining time, and has a new place among equal
    /// deadlines. A pause starts over.
    pub(super) fn carry(
        &mut self,
        from: Place,
        here: Reading,
        (to, there): (ClockKey, Reading),
    ) -> Option<Place> {
        let deadline = self.get(from.0)?.deadline(from.1, here.now)?;
        let timer = self.take_to_move(from, there.now)?;
        Some(self.add(to, resumed(deadline, here.now, there.now), timer))
    }

    /// Moves a timer that is on the list to another clock, where it keeps its place among equal
    /// deadlines.
    pub(super) fn move_new(
        &mut self,
        from: Place,
        to: ClockKey,
        deadline: u64,
        now: u64,
    ) -> Option<Place> {
        let sequence = self.get(from.0)?.timers.sequence(from.1)?;
        let timer = self.take_to_move(from, now)?;
        let place = self.insert(to, sequence, deadline, timer);
        // The list still has the old key.
        self.list(place);
        Some(place)
    }

    fn take_to_move(&mut self, from: Place, now: u64) -> Option<ArmedTimer> {
        let mut timer = self.take(from, |_, timer| timer.clone())?;
        if timer.paused_at().is_some() {
            timer.change_rare(|rare| rare.paused_at = Some(now));
        }
        Some(timer)
    }

    /// Lets the timers on the list wait for their deadlines, and tells the table of clocks.
    ///
    /// A chain in an exact frame is a handler that arms a timer, whose handler arms another one, and so on. It ends
    /// like a burst: from the limit on, a timer stays parked until the next frame. So a chain of zero delays ends.
    pub(super) fn release(&mut self, table: &mut ClockTable, listed: &[Place]) {
        let burst_limit = self.burst_limit.get();
        for listed in listed.chunk_by(|(a, _), (b, _)| a == b) {
            let clock = listed[0].0;
            let Some(queue) = self.queues.get_mut(index(clock)) else {
                continue;
            };
            // The key may have gone to a new clock.
            queue.is_forgotten = false;
            if let Some(reading) = table.reading(clock) {
                // The queue may not have been checked for a long time.
                queue.timers.advance_to(reading.now);
            }
            for &place in listed {
                if let Some(journal) = &mut self.journal {
                    queue.note(journal, place);
                }
                self.reports.armed += u64::from(queue.release(place.1, burst_limit));
            }
            table.set_look(clock, queue.timers.first_look());
        }
    }

    /// Returns the keys of the timers of a clock that a swap arms, in this frame or in the next one.
    fn listed(&self, clock: ClockKey) -> impl Iterator<Item = Key> {
        let limit = self.burst_limit.get();
        let is_deep = move |it: &ArmedTimer| it.burst >= limit;
        let deep = self.bursting.iter().copied();
        let deep = deep.filter(move |&place| self.timer(place).is_some_and(is_deep));
        let listed = self.arming.swap_list.iter().chain(deep);
        let is_paused = |place| self.timer(place).is_none_or(ArmedTimer::is_paused);
        let listed = listed.filter(move |&place| !is_paused(place));
        listed.filter_map(move |(of, key)| (of == clock).then_some(key))
    }

    /// Returns the earliest deadline on a clock, including those of the timers that are idle until the
    /// next run.
    pub(super) fn next_deadline(&self, clock: ClockKey) -> Option<u64> {
        self.first(clock, TimerQueue::next_deadline)
    }

    fn first(&self, clock: ClockKey, of_queue: FirstOf) -> Option<u64> {
        let queue = &self.get(clock)?.timers;
        let listed = self.listed(clock).filter_map(|key| queue.deadline(key));
        let listed = listed.filter(|&deadline| deadline != NEVER);
        of_queue(queue).into_iter().chain(listed).min()
    }

    /// Returns the timers that are due on a clock at or before `until`, in order, including those that are
    /// idle until the next run.
    pub(super) fn due_until(&self, clock: ClockKey, until: u64) -> Vec<Key> {
        let listed: BTreeSet<Key> = self.listed(clock).collect();
        self.get(clock).map_or_else(Vec::new, |queue| {
            queue
                .timers
                .waiting_or_idle_until(until, |key| listed.contains(&key))
        })
    }

    /// Tells the table when to look at the clocks with timers that are idle until the next run.
    fn plan_listed(&self, table: &mut ClockTable) {
        let mut deadlines = BTreeMap::new();
        for (clock, key) in self.arming.swap_list.iter() {
            if let Some(queue) = self.get(clock)
                && let Some(timer) = queue.timers.get(key)
                && let Some(deadline) = queue.timers.deadline(key)
                && !timer.is_paused()
            {
                let first = queue.timers.first_look().unwrap_or(NEVER);
                let earliest = deadlines.entry(clock).or_insert(first);
                *earliest = deadline.min(*earliest);
            }
        }
        for (clock, deadline) in deadlines {
            table.set_look(clock, Some(deadline).filter(|&it| it != NEVER));
        }
    }

    /// Returns the time on `root` until a timer on it or its descendants is due, or until its queue must be
    /// checked.
    pub(super) fn until_next(
        &self,
        table: &mut ClockTable,
        root: ClockKey,
        of_queue: FirstOf,
    ) -> Option<u64> {
        self.plan_listed(table);
        loop {
            let (clock, span) = table.next_due(root)?;
            // So far the table may have known an earlier time, from a timer that was cancelled, or at
            // which the queue must be checked.
            if !table.set_look(clock, self.first(clock, of_queue)) {
                return Some(span);
            }
        }
    }

    /// Returns the timers that were inserted after the last swap.
    pub(crate) fn new_timers(&self) -> impl Iterator<Item = (Entity, Kind)> {
        let listed = self.arming.swap_list.iter();
        let timers = listed.filter_map(|place| self.timer(place));
        let new = timers.filter(|timer| timer.is(Mark::New));
        new.map(|timer| (timer.entity, timer.kind()))
    }

    /// Adds the entities whose timers of any kind run on these clocks.
    pub(crate) fn add_running_on(&self, clocks: &ChangedClocks, changed: &mut Vec<Entity>) {
        for clock in clocks.keys() {
            let timers = self.get(clock).map(|queue| queue.timers.iter());
            let timers = timers.into_iter().flatten();
            changed.extend(timers.map(|(_, _, timer)| timer.entity));
        }
    }

    /// Returns the entities of the timers that chose their clocks. Those that were moved to another one are among
    /// them.
    pub(crate) fn with_chosen_clocks(&self) -> impl Iterator<Item = Entity> {
        let timers = self.iter().flat_map(|(_, queue)| queue.timers.iter());
        let choosing = timers.filter(|(.., timer)| timer.is(Mark::Chosen));
        choosing.map(|(.., timer)| timer.entity)
    }

    #[cfg(feature = "serialize")]
    pub(crate) fn numbers(&self) -> Numbers {
        self.arming.numbers
    }

    pub(crate) fn set_numbers(&mut self, numbers: Numbers) {
        self.arming.numbers = numbers;
    }
}

impl ClockQueue {
    /// Returns the number of timers, without lifetimes and time-outs.
    pub(super) fn count(&self) -> usize {
        self.timers.len() - self.silent
    }

    /// Returns the place of a timer among the timers of all kinds, in the order in which they were armed.
    pub(super) fn armed_as(&self, key: Key) -> Option<u64> {
        let sequence = self.timers.sequence(key)?;
        Some(sequence & !LIFETIME)
    }

    /// Lets a timer that was on the list wait for its deadline, unless it is paused, or too deep in a chain. Returns
    /// `true` if it waits.
    #[inline]
    fn release(&mut self, key: Key, burst_limit: u32) -> bool {
        // A timer that was cancelled in the meantime is no longer in the queue.
        self.timers.release_if(key, |timer| {
            timer.set(Mark::Listed, false);
            timer.set(Mark::New, false);
            timer.burst < burst_limit && !timer.is_paused()
        })
    }

    /// Returns the deadline of a timer. For a paused timer, this is the deadline it would have if
    /// it resumed now.
    pub(crate) fn deadline(&self, key: Key, now: u64) -> Option<u64> {
        let timer = self.timers.get(key)?;
        Some(timer.deadline_at(now, self.timers.deadline(key)?))
    }
}

/// Changes the queue's copy of the timer of `entity`, if it is armed or paused.
pub(super) fn change_armed<Out>(
    world: &mut DeferredWorld,
    entity: Entity,
    change: impl FnOnce(&mut ArmedTimer) -> Out,
) -> Option<Out> {
    let place = world.get::<Timer>(entity)?.seat.place()?;
    let mut queues = world.get_resource_mut::<TimerQueues>()?;
    queues.timer_mut(place).map(change)
}

/// Returns `true` if a timer of an entity is armed or paused.
pub(super) fn is_armed(world: &World, entity: Entity, kind: Kind) -> bool {
    let timer = kind.get(world, entity);
    timer.is_some_and(|timer| is_queued(world, timer))
}

/// Returns `true` if a timer is armed or paused.
pub(super) fn is_queued(world: &World, timer: &Timer) -> bool {
    timer.seat.place().is_some_and(|place| {
        let queues = world.get_resource::<TimerQueues>();
        queues.is_some_and(|queues| queues.timer(place).is_some())
    })
}

/// Returns `true` if the next run of a cadence has something to do, whatever the time: new timers to
/// arm, cancellations to write, finished timers to clean up, or clocks to follow.
#[cfg(feature = "worlds")]
pub(crate) fn awaits_run(world: &World, cadence: Cadence) -> bool {
    let Some(queues) = world.get_resource::<TimerQueues>() else {
        return false;
    };
    let table = world.get_resource::<ClockTable>();
    // The frame run does these for both cadences.
    let any_run = || {
        !queues.arming.swap_list.is_empty()
            || queues.reports.cancelled.len() > 0
            || !queues.forwards.is_empty()
            || table.is_some_and(ClockTable::awaits_run)
    };
    !queues.reports.ended.is_empty(cadence) || cadence == Cadence::Frame && any_run()
}

/// Returns the time of Bevy at which a run must look at the timers of a built-in clock and its
/// descendants, in nanoseconds: at the next deadline, or before it if many timers wait. New timers,
/// which [`awaits_run`] reports, are left out.
///
/// Call [`plan`] first.
#[cfg(feature = "worlds")]
pub(crate) fn next_look(world: &World, clock: ClockId) -> Option<u64> {
    let table = world.get_resource::<ClockTable>()?;
    table.next_due_on_bevy(table.find(clock).ok()?.key)
}

/// Tells the clocks when to look at their timers.
#[cfg(feature = "worlds")]
pub(crate) fn plan_all(world: &mut World) {
    world.try_resource_scope(|world, mut table: Mut<ClockTable>| {
        if let Some(queues) = world.get_resource::<TimerQueues>() {
            for clock in [
                ClockId::Real,
                ClockId::Virtual,
                ClockId::Frames,
                ClockId::Fixed,
            ] {
                if let Ok(found) = table.find(clock) {
                    queues.until_next(&mut table, found.key, TimerQueue::first_look);
                }
            }
        }
    });
}
