//! Deferrable timers: they may wait for a later frame when they are due.

use crate::{
    journal::{Journal, WatchedMap},
    queue::Key,
};

/// The wait that counts as much as one priority.
const WAIT_PER_PRIORITY: i128 = 250_000_000;

/// The deferrable timers on one clock.
#[derive(Debug, Default)]
pub(super) struct DeferrableTimers {
    priorities: WatchedMap<Key, i32>,
    /// The timers that are due and wait for the budget, in the order in which they fire.
    waiting: WatchedMap<Rank, Key>,
}

/// The place of a waiting timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Rank {
    /// The deadline, moved by the priority. Because it does not change while the timer waits, each
    /// timer comes first at last.
    due: i128,
    sequence: u64,
}

/// The priorities and waiting timers that have changed, as they were.
#[derive(Clone, Debug, Default)]
pub(super) struct DeferrableJournal {
    priorities: Journal<Key, Option<i32>>,
    waiting: Journal<Rank, Option<Key>>,
}

impl DeferrableTimers {
    pub(super) fn insert(&mut self, key: Key, priority: i32) {
        self.priorities.insert(key, priority);
    }

    pub(super) fn priority(&self, key: Key) -> Option<i32> {
        self.priorities.get(key).copied()
    }

    pub(super) fn remove(&mut self, key: Key) {
        if !self.priorities.is_empty() {
            self.priorities.remove(key);
        }
    }

    pub(super) fn is_anyone_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the waiting timers, in the order in which they fire.
    pub(super) fn waiting(&self) -> impl ExactSizeIterator<Item = Key> {
        self.waiting.values().copied()
    }

    /// Returns how urgent the first waiting timer is, if there is one: its lateness, and the wait that
    /// its priority is worth.
    pub(super) fn urgency(&self, now: u64) -> Option<i128> {
        let (rank, _) = self.waiting.first()?;
        Some(i128::from(now) - rank.due)
    }

    /// Lets a due timer wait.
    pub(super) fn push(&mut self, key: Key, deadline: u64, sequence: u64) {
        let rank = self.rank(key, deadline, sequence);
        self.waiting.insert(rank, key);
    }

    /// Takes the first waiting timer.
    pub(super) fn pop(&mut self) -> Option<Key> {
        let (&rank, &key) = self.waiting.first()?;
        self.waiting.remove(rank);
        Some(key)
    }

    /// Takes a timer out, if it waits.
    pub(super) fn leave(&mut self, key: Key, deadline: u64, sequence: u64) {
        let rank = self.rank(key, deadline, sequence);
        if self.waiting.contains_key(rank) {
            self.waiting.remove(rank);
        }
    }

    fn rank(&self, key: Key, deadline: u64, sequence: u64) -> Rank {
        let priority = i128::from(self.priority(key).unwrap_or(0));
        Rank {
            due: i128::from(deadline) + priority * WAIT_PER_PRIORITY,
            sequence,
        }
    }

    pub(super) fn watch(&mut self) {
        self.priorities.watch();
        self.waiting.watch();
    }

    pub(super) fn unwatch(&mut self) {
        self.priorities.unwatch();
        self.waiting.unwatch();
    }

    pub(super) fn take_journal(&mut self) -> DeferrableJournal {
        DeferrableJournal {
            priorities: self.priorities.take_journal(),
            waiting: self.waiting.take_journal(),
        }
    }

    pub(super) fn put_back(&mut self, journal: &DeferrableJournal) {
        self.priorities.put_back(&journal.priorities);
        self.waiting.put_back(&journal.waiting);
    }
}

impl DeferrableJournal {
    /// Adds the journal that began when this one ended.
    pub(super) fn append(&mut self, later: Self) {
        self.priorities.append(later.priorities);
        self.waiting.append(later.waiting);
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.priorities.len() + self.waiting.len()
    }
}
