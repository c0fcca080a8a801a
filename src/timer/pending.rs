//! The timers that were inserted since the last swap.

use alloc::{collections::BTreeSet, vec::Vec};
use core::mem;

use bevy_ecs::entity::Entity;

use super::{Kind, saving::Order};
use crate::{
    clock::{Age, ClockKey, GameTime, shift},
    double_buffer::RecentPeak,
    queue::NEVER,
};

/// Timers in the order in which they were inserted. The next swap looks up their clocks, owners and
/// pauses.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingTimers {
    /// A cancelled timer leaves a gap.
    entries: Vec<Option<Pending>>,
    /// The starts that are not [`Since::GameTime`].
    starts: Vec<Start>,
    /// The number of entries that are not gaps.
    len: usize,
    /// The number of entries that were pushed in a saved state.
    loaded: usize,
    peak: RecentPeak,
}

/// A timer that waits for the next swap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) entity: Entity,
    pub(super) kind: Kind,
    pub(super) since: Since,
}

/// The start of a delay, in few bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Since {
    /// The delay starts at the swap, because its clock did not exist when the timer was inserted.
    Swap,
    /// The delay started at this time on the game clock, and is not paused.
    GameTime(u64),
    /// The delay has the start at this index.
    Start(u32),
}

/// The start of a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Start {
    pub(super) clock: ClockKey,
    pub(super) age: Age,
    pub(super) deadline: u64,
    /// The reading of the clock when the timer was inserted or paused.
    pub(super) now: u64,
    pub(super) is_paused: bool,
}

impl Start {
    /// Returns `true` if the timer never fires.
    pub(super) fn is_never(&self) -> bool {
        self.deadline == NEVER
    }

    /// Moves the deadline of a paused delay to where it would be if the delay resumed now.
    pub(super) fn resume_at(&mut self, now: u64) {
        if self.is_paused {
            self.set_paused(false, now);
        }
    }

    /// Pauses or resumes the delay. A pause moves the deadline by its length.
    pub(super) fn set_paused(&mut self, is_paused: bool, now: u64) {
        if self.is_paused && !is_paused {
            self.deadline = resumed(self.deadline, self.now, now);
        }
        self.now = now;
        self.is_paused = is_paused;
    }
}

/// Returns the deadline of a timer that was paused, and resumes now.
pub(super) fn resumed(deadline: u64, paused_at: u64, now: u64) -> u64 {
    shift(deadline, i128::from(now) - i128::from(paused_at))
}

impl PendingTimers {
    /// Returns the index of the timer that is pushed next.
    pub(super) fn next_index(&self) -> usize {
        self.entries.len()
    }

    /// Adds a timer whose delay starts at this time on the game clock, and returns its index.
    pub(super) fn push_at(&mut self, game_time: u64, entity: Entity, kind: Kind) -> usize {
        let since = Since::GameTime(game_time);
        self.entries.push(Some(Pending {
            entity,
            kind,
            since,
        }));
        self.len += 1;
        self.entries.len() - 1
    }

    /// Adds a timer with this start, if its clock exists.
    pub(super) fn push(&mut self, start: Option<Start>, entity: Entity, kind: Kind) {
        let since = start.map_or(Since::Swap, |start| self.add_start(start));
        self.entries.push(Some(Pending {
            entity,
            kind,
            since,
        }));
        self.len += 1;
    }

    /// Adds a timer in a saved state. The next swap puts it into its saved order.
    pub(super) fn push_loaded(&mut self, start: Option<Start>, entity: Entity, kind: Kind) {
        self.push(start, entity, kind);
        self.loaded += 1;
    }

    fn add_start(&mut self, start: Start) -> Since {
        self.starts.push(start);
        Since::Start(self.starts.len() as u32 - 1)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Pending> {
        self.entries.get(index)?.as_ref()
    }

    /// Returns the start of a timer with this delay, unless its clock did not exist when it was inserted.
    pub(super) fn start(&self, pending: &Pending, delay: u64) -> Option<Start> {
        match pending.since {
            Since::Swap => None,
            Since::GameTime(now) => {
                let (clock, age) = GameTime::CLOCK;
                Some(Start {
                    clock,
                    age,
                    deadline: now.saturating_add(delay),
                    now,
                    is_paused: false,
                })
            }
            Since::Start(nth) => self.starts.get(nth as usize).copied(),
        }
    }

    /// Pauses or resumes a delay.
    pub(super) fn set_paused(&mut self, index: usize, delay: u64, is_paused: bool, now: u64) {
        let Some(mut pending) = self.get(index).copied() else {
            return;
        };
        let Some(mut start) = self.start(&pending, delay) else {
            return;
        };
        start.set_paused(is_paused, now);
        match pending.since {
            Since::Start(nth) => self.starts[nth as usize] = start,
            Since::Swap | Since::GameTime(_) => pending.since = self.add_start(start),
        }
        self.entries[index] = Some(pending);
    }

    /// Removes a timer, and returns `true` if it was pending.
    pub(super) fn cancel(&mut self, index: usize) -> bool {
        let entry = self.entries.get_mut(index).and_then(Option::take);
        // A timer that is re-armed again and again leaves no trail of gaps.
        while let Some(None) = self.entries.last() {
            self.entries.pop();
        }
        let Some(pending) = entry else {
            return false;
        };
        if let Since::Start(nth) = pending.since
            && nth as usize + 1 == self.starts.len()
        {
            self.starts.pop();
        }
        self.len -= 1;
        if self.len == 0 {
            self.clear();
        }
        true
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.starts.clear();
        (self.len, self.loaded) = (0, 0);
    }

    /// Returns the number of pending timers.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.entries.iter_mut().flatten()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.entries.iter().flatten()
    }

    /// Returns the timers with their indices.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, &Pending)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, pending)| Some((index, pending.as_ref()?)))
    }

    /// Returns the entities of the timers that only one of the two has, or that wait in another way.
    pub(super) fn differences(&self, other: &Self) -> Vec<Entity> {
        let waits = |timers: &Self| {
            let entries = timers.iter();
            // The delay is a setting of the component.
            let wait = |it: &Pending| (it.entity, it.kind, timers.start(it, 0));
            entries.map(wait).collect::<BTreeSet<_>>()
        };
        let (here, there) = (waits(self), waits(other));
        let different = here.symmetric_difference(&there);
        different.map(|&(entity, ..)| entity).collect()
    }

    /// Takes all timers. Those with an order, which were loaded, come first. Hand the memory back
    /// with [`reuse`](Self::reuse).
    pub(super) fn swap(&mut self, order: impl Fn(&Pending) -> Option<Order>) -> Self {
        let mut swapped = mem::take(self);
        if swapped.loaded > 0 {
            sort(&mut swapped.entries, |pending| {
                pending.as_ref().and_then(&order)
            });
        }
        swapped
    }

    /// Keeps the memory of swapped timers, unless much less was needed recently.
    pub(super) fn reuse(&mut self, mut swapped: Self) {
        swapped.peak.note(swapped.entries.len());
        if self.entries.is_empty() {
            swapped.clear();
            let enough = swapped.peak.enough(swapped.entries.capacity());
            swapped.entries.shrink_to(enough);
            swapped.starts.shrink_to(enough);
            *self = swapped;
        } else {
            self.peak = swapped.peak;
        }
    }
}

/// Sorts entries by their saved order. New ones follow in the order of insertion.
pub(super) fn sort<P>(entries: &mut [P], order: impl Fn(&P) -> Option<Order>) {
    entries.sort_by_cached_key(|pending| {
        let order = order(pending);
        (order.is_none(), order)
    });
}

#[cfg(test)]
mod tests {
    use bevy_ecs::world::World;

    use super::*;

    const START: Start = Start {
        clock: 7,
        age: 8,
        deadline: 10,
        now: 5,
        is_paused: false,
    };

    #[test]
    fn a_timer_that_is_armed_again_and_again_leaves_no_trail() {
        let entity = World::new().spawn_empty().id();
        let mut timers = PendingTimers::default();
        for _ in 0..100 {
            let index = timers.push_at(5, entity, Kind::Timer);
            timers.set_paused(index, 3, true, 6);
            assert!(timers.cancel(index));
            let index = timers.next_index();
            timers.push(Some(START), entity, Kind::Lifetime);
            timers.set_paused(index, 3, true, 6);
            assert!(timers.cancel(index));
            assert!(!timers.cancel(index), "it is gone");
            let left = (timers.len(), timers.entries.len(), timers.starts.len());
            assert_eq!(left, (0, 0, 0));
        }
    }

    #[test]
    fn timers_that_are_cancelled_in_the_order_of_insertion_leave_no_trail() {
        let entity = World::new().spawn_empty().id();
        let mut timers = PendingTimers::default();
        timers.push(Some(START), entity, Kind::Timer);
        timers.push(Some(START), entity, Kind::Timer);
        assert!(timers.cancel(0));
        assert!(timers.cancel(1));
        assert_eq!((timers.entries.len(), timers.starts.len()), (0, 0));
    }

    #[test]
    fn the_memory_of_many_new_timers_is_given_back() {
        let entity = World::new().spawn_empty().id();
        let mut timers = PendingTimers::default();
        let mut spawn = |number| {
            for _ in 0..number {
                timers.push(Some(START), entity, Kind::Timer);
            }
            let swapped = timers.swap(|_| None);
            timers.reuse(swapped);
            (timers.entries.capacity(), timers.starts.capacity())
        };
        let many = spawn(100_000);
        assert_eq!(spawn(10), many, "they may come again");
        for _ in 0..500 {
            spawn(10);
        }
        let (entries, starts) = spawn(10);
        assert!(entries < 1000 && starts < 1000, "{entries}, {starts}");
    }

    #[test]
    fn a_pause_moves_the_deadline_of_a_delay_on_the_game_clock() {
        let entity = World::new().spawn_empty().id();
        let mut timers = PendingTimers::default();
        let index = timers.push_at(5, entity, Kind::Timer);
        let start = |timers: &PendingTimers| {
            let start = timers.start(timers.get(index)?, 3)?;
            Some((start.deadline, start.is_paused))
        };
        assert_eq!(start(&timers), Some((8, false)));
        timers.set_paused(index, 3, true, 6);
        assert_eq!(start(&timers), Some((8, true)));
        timers.set_paused(index, 3, false, 16);
        assert_eq!(start(&timers), Some((18, false)));
    }
}
