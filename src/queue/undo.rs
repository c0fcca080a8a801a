//! Returns a queue to the start of its journal.

use alloc::boxed::Box;
use core::fmt;

use super::{
    Key, TimerQueue,
    slots::{Place, Slot, Slots},
};
use crate::journal::Journal;

/// The slots that have changed, as they were. A slot that was not in use is a default slot.
#[derive(Clone)]
pub(crate) struct SlotJournal<T>(Journal<u32, Slot<T>>);

/// The numbers that belong to a queue as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueMark {
    next_sequence: u64,
    /// The number of slots that have been in use, of vacant slots, and of timers.
    used: usize,
    vacant: usize,
    len: usize,
}

/// A journal, and the function that copies slots for it.
pub(super) struct Watch<T> {
    copy: fn(&Slot<T>) -> Slot<T>,
    journal: SlotJournal<T>,
}

impl<T> Slots<T> {
    /// Notes a slot that is about to change, in use or not.
    #[inline]
    pub(super) fn note(&mut self, index: u32) {
        if self.watch.is_some() {
            self.note_watched(index);
        }
    }

    /// Notes the slot of a timer that is about to change, if there is such a timer.
    #[inline]
    pub(super) fn note_timer(&mut self, key: Key) {
        if self.watch.is_some() && self.get(key).is_some() {
            self.note_watched(key.index());
        }
    }

    #[cold]
    fn note_watched(&mut self, index: u32) {
        if let Some(watch) = &mut self.watch {
            let is_in_use = (index as usize) < self.slots.len();
            let slot = is_in_use.then(|| &self.slots[index]);
            let copy = || slot.map_or_else(Slot::default, watch.copy);
            watch.journal.0.note(index, copy);
        }
    }
}

/// The heap and the wheel follow from the slots, so they have no journal.
impl<T: Clone> TimerQueue<T> {
    /// Begins a journal of all changes.
    pub(crate) fn watch(&mut self) {
        self.complete_removals();
        self.slots.watch = Some(Box::new(Watch {
            copy: Slot::clone,
            journal: SlotJournal::default(),
        }));
    }

    /// Ends the journal.
    pub(crate) fn unwatch(&mut self) {
        self.slots.watch = None;
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take_journal(&mut self) -> SlotJournal<T> {
        self.complete_removals();
        let watch = self.slots.watch.as_mut();
        SlotJournal(watch.map_or_else(Journal::default, |watch| watch.journal.0.take()))
    }

    /// Returns what [`put_back`](Self::put_back) needs beside the journal that begins now.
    pub(crate) fn mark(&self) -> QueueMark {
        QueueMark {
            next_sequence: self.next_sequence,
            used: self.slots.slots.len(),
            len: self.slots.len,
            vacant: self.slots.vacant.len(),
        }
    }

    /// Returns the timer that was in each slot of a journal, and the one that is there now.
    pub(crate) fn changed<'a>(
        &'a self,
        journal: &'a SlotJournal<T>,
    ) -> impl Iterator<Item = [Option<&'a T>; 2]> {
        journal.0.iter().map(|(index, before)| {
            let now = self.slots.slots.get(index as usize);
            [
                before.value.as_ref(),
                now.and_then(|now| now.value.as_ref()),
            ]
        })
    }

    /// Goes back to the moment of `mark`, at which `journal` began. `change` changes all timers of the
    /// journal.
    ///
    /// # Time complexity
    ///
    /// *O*(*k* log *n*), amortized, in the length *k* of the journal.
    pub(crate) fn put_back(
        &mut self,
        mark: QueueMark,
        journal: &SlotJournal<T>,
        mut change: impl FnMut(&mut T),
    ) {
        self.complete_removals();
        for (index, before) in journal.0.iter() {
            self.slots.note(index);
            if self.slots.at(index).value.is_some() {
                self.detach(index);
            }
            let slot = self.slots.at_mut(index);
            *slot = before.clone();
            slot.set_place(Place::Idle);
            if let Some(timer) = &mut slot.value {
                change(timer);
            }
            if let Some(position) = before.vacant_position() {
                self.slots.vacant[position] = index;
            }
        }
        self.slots.slots.set_len(mark.used);
        self.slots.len = mark.len;
        self.slots.vacant.set_len(mark.vacant);
        self.next_sequence = mark.next_sequence;
        for (index, before) in journal.0.iter() {
            if before.value.is_some() && before.place() != Place::Idle {
                self.attach(index, before.deadline);
            }
        }
    }

    /// Makes the slots of all cancelled timers vacant.
    fn complete_removals(&mut self) {
        if let Some(wheel) = &mut self.wheel {
            wheel.flush_removals(&mut self.slots);
        }
    }
}

impl<T> SlotJournal<T> {
    pub(crate) fn append(&mut self, later: Self) {
        self.0.append(later.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the keys of the timers.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let timers = self.0.iter().filter(|(_, slot)| slot.value.is_some());
        timers.map(|(index, slot)| slot.key(index))
    }
}

impl<T> Default for SlotJournal<T> {
    fn default() -> Self {
        Self(Journal::default())
    }
}

impl<T> fmt::Debug for SlotJournal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotJournal").finish_non_exhaustive()
    }
}
