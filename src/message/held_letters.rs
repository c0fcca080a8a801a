//! The letters that are held for an entity in transit.

use alloc::vec::Vec;

use bevy_ecs::entity::Entity;
#[cfg(feature = "serialize")]
use bevy_ecs::entity::EntityHashMap;

use super::letter::Letter;
#[cfg(feature = "serialize")]
use super::letter::{Recipient, Role};

/// The letters to an entity in transit and to everything that moves with it, in order.
#[derive(Default)]
pub(crate) struct HeldLetters {
    #[cfg(feature = "serialize")]
    pub(super) end: End,
    /// The entities that move, by their names in the world that exported them.
    #[cfg(feature = "serialize")]
    pub(crate) names: EntityHashMap<Entity>,
    /// The letters that are part of the exported data.
    pub(super) exported: Vec<Letter>,
    /// The letters that the other world has held. Only a commit brings them.
    pub(super) late: Vec<Letter>,
    /// The letters that have arrived since then, each with the entity to which it goes. The entity of a
    /// key may change later.
    pub(crate) arrived: Vec<(Entity, Letter)>,
}

/// The two ends of a move.
#[cfg(feature = "serialize")]
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// The entity was exported here.
    Old {
        /// The number of letters that had arrived when the other world got the key of an entity. What
        /// arrives later was sent after that world had given the key back.
        before_late: Option<usize>,
    },
    /// The entity was imported here.
    New,
}

#[cfg(feature = "serialize")]
impl Default for End {
    fn default() -> Self {
        Self::Old { before_late: None }
    }
}

/// A letter that was taken out of the mailbag, or a note between two letters.
#[cfg(feature = "serialize")]
pub(crate) enum Taken {
    Letter(Entity, Letter),
    /// Another world has got the key of an entity.
    #[cfg_attr(
        not(feature = "worlds"),
        allow(dead_code, reason = "there is no other world")
    )]
    KeyTaken,
}

impl HeldLetters {
    /// Returns all letters, in the order of delivery.
    pub(super) fn into_letters(mut self) -> Vec<Letter> {
        let before_late = self.before_late().min(self.arrived.len());
        let after = self.arrived.split_off(before_late).into_iter();
        let before = self.arrived.into_iter().map(|(_, letter)| letter);
        let mut letters = self.exported;
        letters.extend(before.chain(self.late));
        letters.extend(after.map(|(_, letter)| letter));
        letters
    }

    /// Returns the number of letters that have arrived before the late ones.
    #[cfg(feature = "serialize")]
    fn before_late(&self) -> usize {
        match self.end {
            End::Old { before_late } => before_late.unwrap_or(self.arrived.len()),
            End::New => 0,
        }
    }

    #[cfg(not(feature = "serialize"))]
    fn before_late(&self) -> usize {
        self.arrived.len()
    }

    /// Notes that another world has got the key of an entity: the late letters belong here.
    #[cfg(feature = "serialize")]
    pub(super) fn note_key_taken(&mut self) {
        if let End::Old { before_late } = &mut self.end {
            *before_late = Some(self.arrived.len());
        }
    }

    /// Returns the number of letters.
    #[cfg(feature = "serialize")]
    pub(super) fn len(&self) -> usize {
        self.exported.len() + self.late.len() + self.arrived.len()
    }

    /// Returns the entities that move.
    #[cfg(feature = "serialize")]
    pub(super) fn members(&self) -> impl Iterator<Item = Entity> {
        self.names.values().copied()
    }

    /// Returns the entities that move: nothing does.
    #[cfg(not(feature = "serialize"))]
    pub(super) fn members(&self) -> impl Iterator<Item = Entity> {
        core::iter::empty()
    }

    /// Takes the letters that are not part of the exported data. The others move with that data.
    pub(super) fn take_arrived(&mut self) -> impl Iterator<Item = Letter> {
        let arrived = core::mem::take(&mut self.arrived);
        arrived.into_iter().map(|(_, letter)| letter)
    }
}

/// A letter that stays where it is.
#[cfg(feature = "serialize")]
#[derive(Clone, Copy)]
pub(crate) struct LetterRef<'a> {
    pub(super) to: Recipient,
    pub(super) name: &'static str,
    pub(super) payload: &'a dyn core::any::Any,
    pub(super) role: &'a Role,
}

#[cfg(feature = "serialize")]
impl<'a> From<&'a Letter> for LetterRef<'a> {
    fn from(letter: &'a Letter) -> Self {
        Self {
            to: letter.to,
            name: letter.payload.name(),
            payload: letter.payload.as_any(),
            role: &letter.role,
        }
    }
}
