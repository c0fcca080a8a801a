//! A message to all followers, and its progress.

use alloc::{collections::VecDeque, vec::Vec};

use bevy_ecs::entity::Entity;

use super::letter::{Letter, Recipient};

/// A letter that is being delivered to all followers.
pub(super) struct Broadcast {
    pub(super) letter: Letter,
    pub(super) round: Round,
}

/// The progress of a message to all followers.
pub(super) struct Round {
    pub(super) source: Source,
    /// No two rounds have the same id. It is zero before the first call.
    pub(super) id: u64,
    /// Followers with a lower number have had their call.
    pub(super) next: u64,
    /// Followers from this number on did not take part when the round began.
    pub(super) until: u64,
    /// The number of followers that have received the message.
    pub(super) calls: u64,
}

/// The source of a message to all followers. A panic may break a round of each source off at a time.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Sent,
    /// One of Bevy's message writers.
    Written,
}

/// A letter to all followers that waits for some of them: entities whose component takes part from
/// the next run on.
pub(super) struct Rest {
    pub(super) letter: Letter,
    pub(super) to: VecDeque<Entity>,
    /// Entities whose component has been replaced again.
    pub(super) early: VecDeque<Entity>,
    /// The number of followers that have received the message.
    pub(super) calls: u64,
}

impl Round {
    pub(super) fn of(source: Source) -> Self {
        Self {
            source,
            id: 0,
            next: 0,
            until: 0,
            calls: 0,
        }
    }
}

impl Broadcast {
    pub(super) fn new(letter: Letter) -> Self {
        let round = Round::of(Source::Sent);
        Self { letter, round }
    }
}

impl Rest {
    pub(super) fn new(letter: Letter, to: VecDeque<Entity>, calls: u64) -> Self {
        let early = VecDeque::new();
        Self {
            letter,
            to,
            early,
            calls,
        }
    }

    /// Returns the letter. If it waits for a single entity, it is for that entity only.
    pub(super) fn into_letter(mut self) -> Letter {
        let waiting: Vec<Entity> = self.to.into_iter().chain(self.early).collect();
        if let [entity] = waiting[..] {
            self.letter.to = Recipient::Entity(entity);
        }
        self.letter
    }
}
