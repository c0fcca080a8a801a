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
#[derive(Clone, Copy, Default)]
pub(crate) enum End {
    /// The entity was exported here.
    #[default]
    Old,
    /// The entity was imported here.
    New,
}

impl HeldLetters {
    /// Returns all letters, in the order of delivery. At the new end, the late letters follow the exported
    /// ones. At the old end, they come last.
    pub(super) fn into_letters(self) -> Vec<Letter> {
        let Self {
            exported,
            late,
            arrived,
            ..
        } = self;
        let arrived = arrived.into_iter().map(|(_, letter)| letter);
        let mut letters = exported;
        #[cfg(feature = "serialize")]
        if let End::New = self.end {
            letters.extend(late.into_iter().chain(arrived));
            return letters;
        }
        letters.extend(arrived.chain(late));
        letters
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
            name: letter.name,
            payload: &*letter.payload,
            role: &letter.role,
        }
    }
}
