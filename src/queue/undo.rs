//! Steps back: a queue becomes what it was when its journal began.

use super::{
    TimerQueue,
    slots::{SlotJournal, SlotMark},
};

/// The numbers that belong to a queue as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueMark {
    slots: SlotMark,
    next_sequence: u64,
}

/// The heap and the wheel follow from the slots, so they have no journal.
impl<T: Clone> TimerQueue<T> {
    /// Begins a journal of all changes.
    pub(crate) fn watch(&mut self) {
        self.complete_removals();
        self.slots.watch();
    }

    /// Ends the journal.
    pub(crate) fn unwatch(&mut self) {
        self.slots.unwatch();
    }

    /// Ends the journal, and begins the next one.
    pub(crate) fn take_journal(&mut self) -> SlotJournal<T> {
        self.complete_removals();
        self.slots.take_journal()
    }

    /// Returns what [`put_back`](Self::put_back) needs beside the journal that begins now.
    pub(crate) fn mark(&self) -> QueueMark {
        QueueMark {
            slots: self.slots.mark(),
            next_sequence: self.next_sequence,
        }
    }

    /// Returns the timer that was in each slot of a journal, and the one that is there now.
    pub(crate) fn changed<'a>(
        &'a self,
        journal: &'a SlotJournal<T>,
    ) -> impl Iterator<Item = [Option<&'a T>; 2]> {
        let timers = journal.timers();
        timers.map(|(index, before)| [before, self.slots.timer_in(index)])
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
        change: impl FnMut(&mut T),
    ) {
        self.complete_removals();
        for index in journal.indices() {
            self.slots.note(index);
            if !self.slots.is_taken(index) {
                self.detach(index);
            }
        }
        self.slots.put_back(mark.slots, journal, change);
        self.next_sequence = mark.next_sequence;
        for (index, deadline) in journal.waiting() {
            self.attach(index, deadline);
        }
    }

    /// Makes the slots of all cancelled timers vacant.
    fn complete_removals(&mut self) {
        if let Some(wheel) = &mut self.wheel {
            wheel.flush_removals(&mut self.slots);
        }
    }
}
