//! The timers that were inserted since the last swap.

use alloc::vec::Vec;
use core::mem;

use bevy_ecs::entity::Entity;

use super::{Kind, saving::Order};
use crate::{
    clock::{Age, ClockKey, shift},
    queue::NEVER,
};

/// Timers in the order in which they were inserted. The next swap looks up their clocks, owners and
/// pauses.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingTimers {
    /// A cancelled timer leaves a gap.
    entries: Vec<Option<Pending>>,
    /// The number of entries that are no gaps.
    len: usize,
    /// The number of entries that were pushed in a saved state.
    loaded: usize,
}

/// A timer that waits for the next swap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) entity: Entity,
    pub(super) kind: Kind,
    /// Set if the clock of the timer existed when the timer was inserted.
    pub(super) start: Option<Start>,
}

/// The start of a delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) clock: ClockKey,
    pub(super) age: Age,
    pub(super) deadline: u64,
    /// The reading of the clock when the timer was inserted or paused.
    pub(super) now: u64,
    pub(super) is_paused: bool,
}

impl Pending {
    /// Returns `true` if the timer never fires.
    pub(super) fn is_never(&self) -> bool {
        self.start.is_some_and(|start| start.deadline == NEVER)
    }
}

impl Start {
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

    pub(super) fn push(&mut self, pending: Pending) {
        self.entries.push(Some(pending));
        self.len += 1;
    }

    /// Adds a timer in a saved state. The next swap puts it into its saved order.
    pub(super) fn push_loaded(&mut self, pending: Pending) {
        self.push(pending);
        self.loaded += 1;
    }

    pub(super) fn get(&self, index: usize) -> Option<&Pending> {
        self.entries.get(index)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Pending> {
        self.entries.get_mut(index)?.as_mut()
    }

    /// Removes a timer, and returns `true` if it was pending.
    pub(super) fn cancel(&mut self, index: usize) -> bool {
        let entry = self.entries.get_mut(index).and_then(Option::take);
        let is_cancelled = entry.is_some();
        self.len -= usize::from(is_cancelled);
        // A timer that is re-armed again and again leaves no trail of gaps.
        while let Some(None) = self.entries.last() {
            self.entries.pop();
        }
        is_cancelled
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

    /// Takes all entries. Those with an order, which were loaded, come first. Hand the memory back
    /// with [`reuse`](Self::reuse).
    pub(super) fn swap(
        &mut self,
        order: impl Fn(&Pending) -> Option<Order>,
    ) -> Vec<Option<Pending>> {
        self.len = 0;
        let mut entries = mem::take(&mut self.entries);
        if mem::take(&mut self.loaded) > 0 {
            sort(&mut entries, order);
        }
        entries
    }

    /// Returns the entries in the order of the next swap.
    pub(super) fn sorted(&self, order: impl Fn(&Pending) -> Option<Order>) -> Vec<Option<Pending>> {
        let mut entries = self.entries.clone();
        sort(&mut entries, order);
        entries
    }

    /// Keeps the memory of swapped entries.
    pub(super) fn reuse(&mut self, mut entries: Vec<Option<Pending>>) {
        entries.clear();
        if self.entries.is_empty() {
            self.entries = entries;
        }
    }
}

/// Sorts entries by their saved order. New ones follow in the order of insertion.
fn sort(entries: &mut [Option<Pending>], order: impl Fn(&Pending) -> Option<Order>) {
    entries.sort_by_cached_key(|pending| {
        let order = pending.as_ref().and_then(&order);
        (order.is_none(), order)
    });
}
