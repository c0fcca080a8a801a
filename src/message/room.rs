//! The bound of the messages that wait in a world.

use core::fmt;

use bevy_ecs::error::BevyError;
use bevy_platform::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::letter::{Letter, Recipient};

/// Counts the messages that wait, up to a bound.
///
/// A message in an outbox takes room at once, so systems that run in parallel share the bound. While
/// there is plenty of room, an outbox takes it for several messages, because each access to the shared
/// counter takes as long as a few dozen instructions.
#[derive(Debug)]
pub(super) struct Room {
    waiting: AtomicUsize,
    capacity: usize,
}

/// The number of messages for which an outbox takes room at once.
const SOME: usize = 64;

impl Room {
    pub(super) fn new(capacity: usize) -> Self {
        let waiting = AtomicUsize::new(0);
        Self { waiting, capacity }
    }

    /// Takes room for a message. Returns `false` if there is none.
    pub(super) fn take(&self) -> bool {
        let has_room = self.waiting.fetch_add(1, Relaxed) < self.capacity;
        if !has_room {
            self.waiting.fetch_sub(1, Relaxed);
        }
        has_room
    }

    /// Takes room for one message or, while less than half of the room is taken, for several. Returns
    /// their number, which is zero if there is no room.
    #[cold]
    pub(super) fn take_some(&self) -> usize {
        let take = |waiting| {
            let waiting = waiting + SOME;
            (waiting <= self.capacity / 2).then_some(waiting)
        };
        match self.waiting.fetch_update(Relaxed, Relaxed, take) {
            Ok(_) => SOME,
            Err(_) => usize::from(self.take()),
        }
    }

    /// Takes room for messages that must not be refused.
    pub(super) fn take_anyway(&mut self, messages: usize) {
        *self.waiting.get_mut() += messages;
    }

    /// Gives back the room of messages that no longer wait, or were not sent.
    #[inline]
    pub(super) fn give_back(&mut self, messages: usize) {
        let waiting = self.waiting.get_mut();
        *waiting = waiting.saturating_sub(messages);
    }

    /// Returns the error for a message that found no room.
    pub(super) fn refuse(&self, letter: &Letter) -> BevyError {
        BevyError::error(NoRoom {
            message: letter.payload.name(),
            to: letter.to,
            capacity: self.capacity,
        })
    }
}

/// A message was refused, because too many wait.
#[derive(Debug)]
struct NoRoom {
    message: &'static str,
    to: Recipient,
    capacity: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            message,
            to,
            capacity,
        } = self;
        write!(f, "the message `{message}` to ")?;
        match to {
            Recipient::Entity(entity) => write!(f, "entity {entity}")?,
            Recipient::Key(key) => write!(f, "the entity with the stable key {key}")?,
            Recipient::All => f.write_str("all followers")?,
            Recipient::InTurn => f.write_str("one follower in turn")?,
        }
        write!(
            f,
            " was refused, because {capacity} messages wait: send fewer per frame, or raise \
             `DuePlugin::mailbox_capacity`"
        )
    }
}

impl core::error::Error for NoRoom {}
