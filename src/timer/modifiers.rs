//! The components that change how a timer is armed, by archetype.

use alloc::vec::Vec;

use bevy_ecs::{
    archetype::{Archetype, ArchetypeId},
    component::ComponentId,
};

/// The components that make the setting of a timer differ from the default.
#[derive(Debug)]
pub(crate) struct Modifiers {
    components: [ComponentId; 9],
    /// Whether each archetype has one of the components, once looked up. An archetype never changes.
    archetypes: Vec<Option<bool>>,
}

impl Modifiers {
    pub(super) fn new(components: [ComponentId; 9]) -> Self {
        Self {
            components,
            archetypes: Vec::new(),
        }
    }

    /// Returns whether the entities of an archetype have modifiers, or `None` if that was never
    /// [noted](Self::note).
    pub(super) fn noted(&self, archetype: ArchetypeId) -> Option<bool> {
        *self.archetypes.get(archetype.index())?
    }

    /// Returns `true` if the entities of an archetype have modifiers.
    pub(super) fn are_in(&self, archetype: &Archetype) -> bool {
        let look_up = || self.components.iter().any(|&id| archetype.contains(id));
        self.noted(archetype.id()).unwrap_or_else(look_up)
    }

    /// Notes whether the entities of an archetype have modifiers.
    pub(super) fn note(&mut self, archetype: ArchetypeId, has_modifiers: bool) {
        let index = archetype.index();
        if self.archetypes.len() <= index {
            self.archetypes.resize(index + 1, None);
        }
        self.archetypes[index] = Some(has_modifiers);
    }
}
