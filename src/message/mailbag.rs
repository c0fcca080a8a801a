//! The mailbag: everything in a world that waits for its delivery, and its bound.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::mem;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{
    deliver::{MessageStats, Undelivered},
    mail::{AnyMail, Item, Letter, MailRef, Recipient},
    payload::Payload,
    transit::HeldLetters,
};
use crate::double_buffer::DoubleBuffer;

/// The messages of a world that are on their way.
#[derive(Resource)]
pub(crate) struct Mailbag {
    pub(super) queue: Queue,
    /// The mail that is being delivered. It stays here between two calls, so after a panic in a callback
    /// its other messages are still delivered.
    pub(super) in_progress: Option<Box<dyn AnyMail>>,
    /// Letters that wait for longer, in order: replies to entities that are disabled.
    pub(super) held: Vec<Letter>,
    /// Letters to entities that are moving to or from another world, by the entity that takes the
    /// others along.
    pub(super) transit: EntityHashMap<HeldLetters>,
    room: Room,
    /// Whether the next run should not wait, because of a message that was sent as urgent.
    pub(super) is_urgent: bool,
    /// The current counters. The resource `MessageStats` shows them after each delivery.
    pub(super) stats: MessageStats,
}

/// The items that wait for the next run, and the number of messages, functions and notes in them.
#[derive(Default)]
pub(super) struct Queue {
    items: DoubleBuffer<Item>,
    len: usize,
}

/// The bound of the messages that wait in a world.
///
/// Systems that run in parallel share the bound, so an outbox reserves room before it takes a message.
/// While there is plenty of room, it reserves room for several, because each access to the shared counter
/// takes as long as a few dozen instructions.
struct Room {
    capacity: usize,
    /// The room of outboxes in use.
    reserved: AtomicUsize,
}

/// The number of messages for which an outbox reserves room at once.
const SOME: usize = 64;

impl Queue {
    pub(super) fn push(&mut self, item: Item) {
        self.len += item.len();
        self.items.push(item);
    }

    /// Adds a plain message to the last item. Returns it if it has another type.
    #[inline]
    pub(super) fn push_into_last<P: Payload>(
        &mut self,
        to: Recipient,
        payload: P,
    ) -> Result<(), P> {
        let last = self.items.last_mut().and_then(Item::plain_mail);
        let Some(mail) = last else {
            return Err(payload);
        };
        mail.push(to, payload);
        self.len += 1;
        Ok(())
    }

    /// Adds all items, and leaves an empty buffer in their place.
    pub(super) fn append(&mut self, items: &mut VecDeque<Item>) {
        self.len += items.iter().map(Item::len).sum::<usize>();
        self.items.append(items);
    }

    /// Takes the next released item.
    pub(super) fn next(&mut self) -> Option<Item> {
        let item = self.items.next()?;
        self.len -= item.len();
        Some(item)
    }

    /// Releases an item before all others.
    pub(super) fn put_first(&mut self, item: Item) {
        self.len += item.len();
        self.items.put_first(item);
    }

    /// Returns `true` if a released item is left.
    pub(super) fn has_released(&self) -> bool {
        self.items.has_released()
    }

    /// Iterates over all items, released or not.
    fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.pending()
    }

    /// Replaces each item by the result of a function, or removes it.
    fn filter_map(&mut self, change: impl FnMut(Item) -> Option<Item>) {
        self.items.filter_map(change);
        self.len = self.iter().map(Item::len).sum();
    }
}

impl Mailbag {
    /// Creates an empty bag with room for this many messages.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            queue: Queue::default(),
            in_progress: None,
            held: Vec::new(),
            transit: EntityHashMap::default(),
            room: Room {
                capacity,
                reserved: AtomicUsize::new(0),
            },
            is_urgent: false,
            stats: MessageStats::default(),
        }
    }

    /// Returns `true` if no item waits, also not for an entity that is disabled or in transit.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0 && self.transit.is_empty()
    }

    /// Returns the number of messages, functions and notes that wait.
    pub(super) fn waiting(&self) -> usize {
        let in_progress = self.in_progress.as_ref().map_or(0, |mail| mail.len());
        let moving: usize = self.transit.values().map(HeldLetters::len).sum();
        self.queue.len + in_progress + self.held.len() + moving
    }

    /// Returns the number of messages that can wait.
    pub(super) fn capacity(&self) -> usize {
        self.room.capacity
    }

    /// Returns `true` if the next run should not wait: an urgent message was sent, or a panic has
    /// interrupted the delivery.
    #[cfg(feature = "worlds")]
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent || self.in_progress.is_some() || self.queue.has_released()
    }

    /// Returns `true` if there is room for another message.
    pub(super) fn has_room(&self) -> bool {
        self.waiting() + self.room.reserved.load(Relaxed) < self.room.capacity
    }

    /// Reserves room for one message or, while less than half of the room is taken, for several. Returns
    /// their number, which is zero if there is no room.
    #[cold]
    pub(super) fn reserve(&self) -> usize {
        let waiting = self.waiting();
        let Room { capacity, reserved } = &self.room;
        let take = |messages: usize, capacity: usize| {
            let take = |reserved| {
                let reserved = reserved + messages;
                (waiting + reserved <= capacity).then_some(reserved)
            };
            reserved.fetch_update(Relaxed, Relaxed, take).is_ok()
        };
        match take(SOME, capacity / 2) {
            true => SOME,
            false => usize::from(take(1, *capacity)),
        }
    }

    /// Gives back reserved room. The messages that took it are in the queue by now.
    pub(super) fn release_room(&mut self, messages: usize) {
        *self.room.reserved.get_mut() -= messages;
    }

    /// Releases letters before all others, but not before a message that is being delivered.
    pub(super) fn release_first(&mut self, letters: Vec<Letter>) {
        if let Some(in_progress) = &mut self.in_progress {
            self.queue.put_first(Item::Mail(in_progress.take_rest()));
        }
        for letter in letters.into_iter().rev() {
            self.queue.put_first(Item::Mail(letter));
        }
    }

    /// Releases all items for delivery. Held letters come first, then a mail that a panic has
    /// interrupted.
    pub(super) fn swap(&mut self) {
        self.is_urgent = false;
        let in_progress = self.in_progress.take();
        if let Some(in_progress) = in_progress.filter(|mail| mail.len() > 0) {
            self.queue.put_first(Item::Mail(in_progress));
        }
        let held = mem::take(&mut self.held);
        self.release_first(held);
        self.queue.items.swap();
    }

    /// Takes all undelivered messages, and drops the functions. The letters that were exported with an
    /// entity in transit stay.
    pub(super) fn hand_back(&mut self) -> Vec<Undelivered> {
        self.swap();
        let held = self.transit.values_mut();
        let mut letters: Vec<Letter> = held.flat_map(HeldLetters::take_arrived).collect();
        while let Some(item) = self.queue.next() {
            if let Item::Mail(mut mail) = item {
                letters.extend(core::iter::from_fn(|| mail.take_first()));
            }
        }
        letters.into_iter().map(Undelivered).collect()
    }
}

impl Mailbag {
    /// Calls a function with each message, in the order of delivery.
    pub(super) fn visit<'a>(&'a self, mut visit: impl FnMut(MailRef<'a>)) {
        let queued = self.queue.iter().filter_map(|item| match item {
            Item::Mail(mail) => Some(mail),
            _ => None,
        });
        for mail in self.held.iter().chain(&self.in_progress).chain(queued) {
            (0..mail.len())
                .filter_map(|nth| mail.get(nth))
                .for_each(&mut visit);
        }
    }

    /// Takes the messages whose recipient a function names, in the order of delivery, and the notes about
    /// the keys of those recipients.
    pub(super) fn extract(
        &mut self,
        member: &dyn Fn(Recipient) -> Option<Entity>,
    ) -> Vec<(Entity, Item)> {
        let mut taken = Vec::new();
        for mail in self.held.iter_mut().chain(&mut self.in_progress) {
            mail.extract(member, &mut taken);
        }
        self.held.retain(|letter| letter.len() > 0);
        self.queue.filter_map(|mut item| match &mut item {
            Item::Mail(mail) => {
                mail.extract(member, &mut taken);
                (mail.len() > 0).then_some(item)
            }
            Item::Run(_) => Some(item),
            #[cfg(feature = "worlds")]
            Item::KeyTaken(key) => match member(Recipient::Key(*key)) {
                Some(entity) => {
                    taken.push((entity, item));
                    None
                }
                None => Some(item),
            },
        });
        taken
    }
}
