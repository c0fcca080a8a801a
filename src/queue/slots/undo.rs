//! Slots as they were.

use alloc::boxed::Box;
use core::fmt;

use super::{Key, Place, Slot, Slots, vacant::VacantJournal};
use crate::journal::Journal;

/// The slots that have changed, as they were. A slot that was not in use has no image.
#[derive(Clone, Debug)]
pub(crate) struct SlotJournal<T> {
    slots: Journal<u32, Option<Image<T>>>,
    vacant: VacantJournal,
}

/// A slot as it was.
#[derive(Clone, Debug)]
struct Image<T> {
    sequence: u64,
    deadline: u64,
    generation: u32,
    content: Content<T>,
}

#[derive(Clone, Debug)]
enum Content<T> {
    /// A timer that waits for its deadline.
    Waiting(T),
    /// A timer that is idle.
    Idle(T),
    Vacant,
}

/// The numbers that belong to the slots as they were.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotMark {
    used: usize,
    len: usize,
}

/// A journal of slots, and the function that copies values for it.
pub(super) struct Watch<T> {
    copy: fn(&T) -> T,
    journal: Journal<u32, Option<Image<T>>>,
}

impl<T> Slots<T> {
    pub(in crate::queue) fn watch(&mut self)
    where
        T: Clone,
    {
        self.watch = Some(Box::new(Watch {
            copy: T::clone,
            journal: Journal::default(),
        }));
        self.vacant.watch();
    }

    pub(in crate::queue) fn unwatch(&mut self) {
        self.watch = None;
        self.vacant.unwatch();
    }

    /// Notes a slot that is about to change, in use or not.
    #[inline]
    pub(in crate::queue) fn note(&mut self, index: u32) {
        if self.watch.is_some() {
            self.note_watched(index);
        }
    }

    /// Notes the slot of a timer that is about to change, if there is such a timer.
    #[inline]
    pub(in crate::queue) fn note_timer(&mut self, key: Key) {
        if self.watch.is_some() && self.get(key).is_some() {
            self.note_watched(key.index);
        }
    }

    #[cold]
    fn note_watched(&mut self, index: u32) {
        if let Some(watch) = &mut self.watch {
            let is_in_use = (index as usize) < self.slots.len();
            let slot = is_in_use.then(|| &self.slots[index]);
            let copy = watch.copy;
            let journal = &mut watch.journal;
            journal.note(index, || slot.map(|slot| Image::of(slot, copy)));
        }
    }

    /// Ends the journal, and begins the next one.
    pub(in crate::queue) fn take_journal(&mut self) -> SlotJournal<T> {
        match &mut self.watch {
            Some(watch) => SlotJournal {
                slots: watch.journal.take(),
                vacant: self.vacant.take_journal(),
            },
            None => SlotJournal::default(),
        }
    }

    pub(in crate::queue) fn mark(&self) -> SlotMark {
        SlotMark {
            used: self.slots.len(),
            len: self.len,
        }
    }

    /// Writes the slots of a journal back. They are idle, and `change` has changed their timers.
    pub(in crate::queue) fn put_back(
        &mut self,
        mark: SlotMark,
        journal: &SlotJournal<T>,
        mut change: impl FnMut(&mut T),
    ) where
        T: Clone,
    {
        for (index, image) in journal.slots.iter() {
            self.slots[index] = match image {
                Some(image) => image.slot(&mut change),
                None => Slot::default(),
            };
        }
        self.vacant.put_back(&journal.vacant);
        self.slots.set_len(mark.used);
        self.len = mark.len;
    }
}

impl<T> SlotJournal<T> {
    pub(crate) fn append(&mut self, later: Self) {
        self.slots.append(later.slots);
        self.vacant.append(later.vacant);
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the keys of the timers.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.slots.iter().filter_map(|(index, image)| {
            let image = image.as_ref()?;
            let generation = image.generation;
            let key = Key { index, generation };
            (!matches!(image.content, Content::Vacant)).then_some(key)
        })
    }

    /// Returns the slots, with the timers that were in them.
    pub(in crate::queue) fn timers(&self) -> impl Iterator<Item = (u32, Option<&T>)> {
        self.slots.iter().map(|(index, image)| {
            let timer = image.as_ref().and_then(|image| match &image.content {
                Content::Waiting(timer) | Content::Idle(timer) => Some(timer),
                Content::Vacant => None,
            });
            (index, timer)
        })
    }

    pub(in crate::queue) fn indices(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().map(|(index, _)| index)
    }

    /// Returns the slots and the deadlines of the timers that waited.
    pub(in crate::queue) fn waiting(&self) -> impl Iterator<Item = (u32, u64)> {
        self.slots.iter().filter_map(|(index, image)| {
            let image = image.as_ref()?;
            let waits = matches!(image.content, Content::Waiting(_));
            waits.then_some((index, image.deadline))
        })
    }
}

impl<T> Image<T> {
    fn of(slot: &Slot<T>, copy: fn(&T) -> T) -> Self {
        Self {
            sequence: slot.sequence,
            deadline: slot.deadline,
            generation: slot.generation,
            content: match (&slot.value, slot.place()) {
                (None, _) => Content::Vacant,
                (Some(value), Place::Idle) => Content::Idle(copy(value)),
                (Some(value), Place::Heap(_) | Place::Bucket(_)) => Content::Waiting(copy(value)),
            },
        }
    }

    fn slot(&self, change: &mut impl FnMut(&mut T)) -> Slot<T>
    where
        T: Clone,
    {
        let mut value = match &self.content {
            Content::Waiting(value) | Content::Idle(value) => Some(value.clone()),
            Content::Vacant => None,
        };
        if let Some(value) = &mut value {
            change(value);
        }
        Slot {
            sequence: self.sequence,
            deadline: self.deadline,
            place: Place::Idle.into(),
            generation: self.generation,
            value,
        }
    }
}

impl<T> Default for SlotJournal<T> {
    fn default() -> Self {
        Self {
            slots: Journal::default(),
            vacant: VacantJournal::default(),
        }
    }
}

impl<T> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
