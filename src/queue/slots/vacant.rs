//! The slots without a timer.

use alloc::vec::Vec;
use core::mem;

use crate::queue::pages::Pages;

/// A stack of vacant slots, with the one that became vacant last at the top.
pub(super) struct VacantSlots {
    stack: Pages<u32>,
    /// The number of slots at the bottom that are probably not in the cache.
    cold: usize,
    /// All slots count as changed while there is no journal.
    journal: VacantJournal,
}

/// The part of the stack that has changed, as it was.
#[derive(Clone, Debug)]
pub(super) struct VacantJournal {
    /// The number of slots at the bottom that have stayed.
    kept: usize,
    /// The slots above them, the topmost first.
    taken: Vec<u32>,
}

/// The number of slots that are prefetched at a time.
const PREFETCH_BATCH: usize = 16;

/// The slots that became vacant last are still in the cache: a quarter of a megabyte of them.
const WARM: usize = 4096;

impl VacantSlots {
    pub(super) fn new() -> Self {
        Self {
            stack: Pages::new(),
            cold: 0,
            journal: VacantJournal::since(0),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, index: u32) {
        self.stack.push(index);
        self.cold = self.cold.max(self.stack.len().saturating_sub(WARM));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<u32> {
        let index = self.stack.pop()?;
        if self.stack.len() < self.journal.kept {
            self.journal.note(index);
        }
        Some(index)
    }

    /// Returns `true` if the next slot is probably not in the cache.
    #[inline]
    pub(super) fn is_cold(&self) -> bool {
        self.stack.len() <= self.cold
    }

    /// Returns the slots that are prefetched now.
    pub(super) fn warm_up(&mut self) -> impl Iterator<Item = u32> {
        let end = self.stack.len();
        self.cold = end.saturating_sub(PREFETCH_BATCH);
        (self.cold..end).map(|nth| self.stack[nth as u32])
    }

    /// Begins a journal.
    pub(super) fn watch(&mut self) {
        self.journal = VacantJournal::since(self.stack.len());
    }

    /// Ends the journal.
    pub(super) fn unwatch(&mut self) {
        self.journal = VacantJournal::since(0);
    }

    /// Ends the journal, and begins the next one.
    pub(super) fn take_journal(&mut self) -> VacantJournal {
        mem::replace(&mut self.journal, VacantJournal::since(self.stack.len()))
    }

    /// Goes back to the moment at which a journal began.
    ///
    /// # Time complexity
    ///
    /// *O*(*k*) in the number of slots that have been added and taken since then.
    pub(super) fn put_back(&mut self, journal: &VacantJournal) {
        while self.stack.len() > journal.kept {
            self.pop();
        }
        for &index in journal.taken.iter().rev() {
            self.push(index);
        }
    }
}

impl VacantJournal {
    /// Begins a journal of a stack with `len` slots.
    fn since(len: usize) -> Self {
        Self {
            kept: len,
            taken: Vec::new(),
        }
    }

    #[cold]
    fn note(&mut self, index: u32) {
        self.kept -= 1;
        self.taken.push(index);
    }

    /// Adds the journal that began when this one ended.
    pub(super) fn append(&mut self, later: Self) {
        // Slots above `kept` have been noted, or are newer than this journal.
        let height = later.kept.saturating_add(later.taken.len());
        let known = height.saturating_sub(self.kept);
        self.taken.extend(later.taken.into_iter().skip(known));
        self.kept = self.kept.min(later.kept);
    }
}

/// A journal without changes, of any stack.
impl Default for VacantJournal {
    fn default() -> Self {
        Self::since(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(vacant: &VacantSlots) -> Vec<u32> {
        let len = vacant.stack.len() as u32;
        (0..len).map(|nth| vacant.stack[nth]).collect()
    }

    #[test]
    fn joined_journals_lead_back_to_the_first_moment() {
        let mut vacant = VacantSlots::new();
        (0..10).for_each(|index| vacant.push(index));
        vacant.watch();
        let before = contents(&vacant);
        let mut journal = VacantJournal::default();
        // The numbers of slots that are taken and added in turn.
        for (taken, added) in [(2, 3), (0, 4), (6, 1), (9, 2), (1, 9)] {
            (0..taken).for_each(|_| _ = vacant.pop());
            (0..added).for_each(|index| vacant.push(100 + index));
            journal.append(vacant.take_journal());
        }
        let after = contents(&vacant);
        vacant.put_back(&journal);
        assert_eq!(contents(&vacant), before);
        let forward = vacant.take_journal();
        vacant.put_back(&forward);
        assert_eq!(contents(&vacant), after);
    }

    #[test]
    fn only_taken_slots_are_noted() {
        let mut vacant = VacantSlots::new();
        (0..10).for_each(|index| vacant.push(index));
        vacant.pop();
        vacant.watch();
        vacant.push(20);
        vacant.pop();
        vacant.pop();
        assert_eq!(vacant.take_journal().taken, [8]);
        vacant.unwatch();
        vacant.pop();
        assert!(vacant.journal.taken.is_empty());
    }
}
