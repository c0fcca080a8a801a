//! A message to all followers, and its progress.

use super::letter::Letter;

/// A letter that is being delivered to all followers.
pub(super) struct Broadcast {
    pub(super) letter: Letter,
    pub(super) round: Round,
}

/// The progress of a message to all followers.
#[derive(Default)]
pub(super) struct Round {
    /// Followers with a lower number have had their call.
    pub(super) next: u64,
    /// The number of followers that have received the message.
    pub(super) calls: u64,
}

impl Broadcast {
    pub(super) fn new(letter: Letter) -> Self {
        let round = Round::default();
        Self { letter, round }
    }
}
