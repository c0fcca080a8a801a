//! The messages of a world that are on their way.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::any::Any;

use bevy_ecs::{entity::EntityHashMap, prelude::*};
use bevy_platform::cell::SyncCell;

use super::{
    batch::{AnyBatch, Batch},
    broadcast::{Broadcast, Rest},
    held_letters::HeldLetters,
    letter::{Delivery, Letter, Undelivered},
    payload::Payload,
    room::Room,
    send_error::SendError,
    stats::MessageStats,
};
#[cfg(feature = "serialize")]
use super::{
    held_letters::{LetterRef, Taken},
    letter::Recipient,
};
use crate::{double_buffer::DoubleBuffer, missing_plugin::warn_without_plugin};

/// The messages of a world that are on their way.
#[derive(Resource)]
pub(crate) struct Mailbag {
    pub(super) items: DoubleBuffer<Item>,
    /// The item that is being delivered to one entity after the other. It stays here between two
    /// calls, so after a panic in a callback the other entities still get it.
    pub(super) in_progress: Option<InProgress>,
    /// Letters whose recipient takes part from the next frame on. They are delivered first then.
    pub(super) held: Vec<Item>,
    /// Letters to entities that are moving to or from another world, by the entity that takes the
    /// others along.
    pub(super) transit: EntityHashMap<HeldLetters>,
    pub(super) room: Room,
    /// Whether the next run should not wait, because a message was put back or refused.
    pub(super) is_urgent: bool,
    /// The current counters. The resource `MessageStats` shows them after each delivery.
    pub(super) stats: MessageStats,
}

/// One item to deliver.
pub(super) enum Item {
    Letter(Letter),
    /// Messages of one type, each to an entity.
    Batch(Box<dyn AnyBatch>),
    /// A broadcast that a panic has interrupted.
    Broadcast(Box<Broadcast>),
    /// A letter to all followers that waits for some of them.
    Rest(Box<Rest>),
    Command(SyncCell<Command>),
    /// A note that another world has got a key.
    #[cfg(feature = "worlds")]
    KeyTaken(u64),
}

/// Items from other threads.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) items: VecDeque<Item>,
    /// The number of messages, functions and notes in the items.
    pub(super) len: usize,
    /// The sum of the payloads of all packets.
    pub(super) bytes: usize,
}

impl Arrived {
    pub(super) fn with_capacity(items: usize) -> Self {
        Self {
            items: VecDeque::with_capacity(items),
            ..Self::default()
        }
    }
}

/// A function to run on the world.
type Command = Box<dyn FnOnce(&mut World) + Send>;

/// An item that takes several calls.
pub(super) enum InProgress {
    Batch(Box<dyn AnyBatch>),
    Broadcast(Broadcast),
    Rest(Rest),
}

impl Item {
    /// Returns the batch of messages of this type, if the item is one.
    #[inline]
    pub(super) fn as_batch<P: Payload>(&mut self) -> Option<&mut Batch<P>> {
        match self {
            Self::Batch(batch) => {
                let batch: &mut dyn Any = &mut **batch;
                batch.downcast_mut()
            }
            _ => None,
        }
    }

    fn into_letters(self) -> Vec<Letter> {
        match self {
            Self::Letter(letter) => [letter].into(),
            Self::Batch(batch) => batch.into_letters(),
            Self::Broadcast(broadcast) => [broadcast.letter].into(),
            Self::Rest(rest) => [rest.into_letter()].into(),
            Self::Command(_) => Vec::new(),
            #[cfg(feature = "worlds")]
            Self::KeyTaken(_) => Vec::new(),
        }
    }
}

#[cfg(feature = "serialize")]
impl Item {
    /// Calls a function with each letter to an entity.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(LetterRef)) {
        match self {
            Self::Letter(letter) => visit(letter.into()),
            Self::Batch(batch) => batch.visit(visit),
            Self::Broadcast(_) | Self::Rest(_) | Self::Command(_) => {}
            #[cfg(feature = "worlds")]
            Self::KeyTaken(_) => {}
        }
    }

    /// Takes the letters whose recipient `member` names, with that recipient, and returns the rest.
    pub(super) fn extract(
        self,
        member: &dyn Fn(Recipient) -> Option<Entity>,
        taken: &mut Vec<Taken>,
    ) -> Option<Self> {
        match self {
            Self::Letter(letter) => match member(letter.to) {
                Some(to) => {
                    taken.push(Taken::Letter(to, letter));
                    None
                }
                None => Some(Self::Letter(letter)),
            },
            #[cfg(feature = "worlds")]
            Self::KeyTaken(key) if member(Recipient::Key(key)).is_some() => {
                taken.push(Taken::KeyTaken);
                None
            }
            Self::Batch(mut batch) => {
                batch.extract(&|to| member(to.into()).is_some(), taken);
                Some(Self::Batch(batch))
            }
            item => Some(item),
        }
    }
}

#[cfg(feature = "serialize")]
impl InProgress {
    pub(super) fn visit(&self, visit: &mut dyn FnMut(LetterRef)) {
        if let Self::Batch(batch) = self {
            batch.visit(visit);
        }
    }

    pub(super) fn extract(
        &mut self,
        member: &dyn Fn(Recipient) -> Option<Entity>,
        taken: &mut Vec<Taken>,
    ) {
        if let Self::Batch(batch) = self {
            batch.extract(&|to| member(to.into()).is_some(), taken);
        }
    }
}

impl From<InProgress> for Item {
    fn from(in_progress: InProgress) -> Self {
        match in_progress {
            InProgress::Batch(batch) => Self::Batch(batch),
            InProgress::Broadcast(broadcast) => Self::Broadcast(broadcast.into()),
            InProgress::Rest(rest) => Self::Rest(rest.into()),
        }
    }
}

impl Mailbag {
    /// Creates an empty bag with room for this many messages.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            items: DoubleBuffer::default(),
            in_progress: None,
            held: Vec::new(),
            transit: EntityHashMap::default(),
            room: Room::new(capacity),
            is_urgent: false,
            stats: MessageStats::default(),
        }
    }

    /// Returns `true` if no item waits, also not for an entity that is disabled or in transit.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
            && self.in_progress.is_none()
            && self.held.is_empty()
            && self.transit.is_empty()
    }

    /// Adds items that have arrived, after all others, and empties `arrived`.
    pub(super) fn append_arrived(&mut self, arrived: &mut Arrived) {
        self.room.take_anyway(arrived.len);
        self.append(&mut arrived.items);
        (arrived.len, arrived.bytes) = (0, 0);
    }

    /// Adds items that have room, after all others, and empties `items`.
    pub(super) fn append(&mut self, items: &mut VecDeque<Item>) {
        self.items.append(items);
    }

    /// Releases letters that have room before all others.
    pub(super) fn release_first(&mut self, letters: Vec<Letter>) {
        for letter in letters.into_iter().rev() {
            self.items.put_first(Item::Letter(letter));
        }
    }

    /// Releases all items for delivery. Held letters come first, then an item that a panic has
    /// interrupted.
    pub(super) fn swap(&mut self) {
        self.is_urgent = false;
        if let Some(in_progress) = self.in_progress.take() {
            self.items.put_first(in_progress.into());
        }
        for item in self.held.drain(..).rev() {
            self.items.put_first(item);
        }
        self.held.shrink_to(1 << 10);
        self.items.swap();
    }

    /// Takes all undelivered letters, and drops the commands. The letters that were exported with an
    /// entity in transit stay.
    pub(super) fn hand_back(&mut self) -> Vec<Undelivered> {
        self.swap();
        let Self {
            items,
            room,
            transit,
            ..
        } = self;
        let moving = transit.values_mut().flat_map(HeldLetters::take_arrived);
        let moving: Vec<Letter> = moving.collect();
        room.give_back(moving.len());
        let letters = items.drain().flat_map(|item| {
            let letters = item.into_letters();
            // A command also takes room.
            room.give_back(letters.len().max(1));
            letters
        });
        moving.into_iter().chain(letters).map(Undelivered).collect()
    }
}

/// Sends a message. Without the plugin, the message is dropped.
pub(crate) fn try_send<P: Payload>(
    world: &mut World,
    to: Delivery,
    payload: P,
) -> Result<(), SendError<P>> {
    let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
        drop_without_plugin(world);
        return Ok(());
    };
    if !mailbag.room.take() {
        return Err(SendError::Full(payload));
    }
    let letter = Letter::plain(to, payload);
    mailbag.items.push(Item::Letter(letter));
    Ok(())
}

/// Sends a letter, or returns an error that names its recipient if there is no room. Does nothing
/// without the plugin.
pub(crate) fn send(world: &mut World, letter: Letter) -> Result {
    let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() else {
        drop_without_plugin(world);
        return Ok(());
    };
    if !mailbag.room.take() {
        return Err(mailbag.room.refuse(&letter));
    }
    mailbag.items.push(Item::Letter(letter));
    Ok(())
}

/// Sends a letter that must not be refused. Does nothing without the plugin.
pub(crate) fn resend(world: &mut World, letter: Letter) {
    match world.get_resource_mut::<Mailbag>() {
        Some(mut mailbag) => {
            mailbag.room.take_anyway(1);
            mailbag.items.push(Item::Letter(letter));
        }
        None => drop_without_plugin(world),
    }
}

/// Returns `true` if the next run of a world should not wait: something was put back or refused, or
/// a panic has interrupted the delivery.
#[cfg(feature = "worlds")]
pub(crate) fn is_urgent(world: &World) -> bool {
    let mailbag = world.get_resource::<Mailbag>();
    mailbag.is_some_and(|mailbag| {
        mailbag.is_urgent || mailbag.in_progress.is_some() || mailbag.items.has_released()
    })
}

/// Sends a letter for a run that should not wait. Does nothing without the plugin.
#[cfg(feature = "worlds")]
pub(crate) fn send_urgent(world: &mut World, letter: Letter) {
    resend(world, letter);
    if let Some(mut mailbag) = world.get_resource_mut::<Mailbag>() {
        mailbag.is_urgent = true;
    }
}

/// Sends an item that has room. Does nothing without the plugin.
pub(super) fn send_item(world: &mut World, item: Item) {
    match world.get_resource_mut::<Mailbag>() {
        Some(mut mailbag) => mailbag.items.push(item),
        None => drop_without_plugin(world),
    }
}

/// Reports a message that is dropped, because the world has no plugin.
pub(super) fn drop_without_plugin(world: &mut World) {
    warn_without_plugin(&mut world.into(), "a message");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_small() {
        assert!(size_of::<Letter>() <= 64, "{}", size_of::<Letter>());
        assert!(size_of::<Item>() <= 72, "{}", size_of::<Item>());
    }
}
