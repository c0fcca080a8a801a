//! The components that change how a timer is armed, by archetype.

use alloc::vec::Vec;

use bevy_ecs::{
    archetype::{Archetype, ArchetypeId},
    component::ComponentId,
};

/// The components that make the setting of a timer differ from the default.
#[derive(Debug)]
pub(crate) struct Modifiers {
    /// The components that neither halt a timer nor choose its clock.
    harmless: [ComponentId; 2],
    others: [ComponentId; 7],
    /// The modifiers in each archetype, once looked up. An archetype never changes.
    archetypes: Vec<Option<Modified>>,
}

/// The modifiers in an archetype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modified {
    /// No modifiers. Most timers have none.
    No,
    /// An owner or an action, but no other modifiers.
    Slightly,
    /// Modifiers that halt a timer, or choose its clock.
    Fully,
}

impl Modifiers {
    pub(super) fn new(harmless: [ComponentId; 2], others: [ComponentId; 7]) -> Self {
        Self {
            harmless,
            others,
            archetypes: Vec::new(),
        }
    }

    /// Returns the modifiers in an archetype, or `None` if they were never [noted](Self::note).
    pub(super) fn noted(&self, archetype: ArchetypeId) -> Option<Modified> {
        *self.archetypes.get(archetype.index())?
    }

    /// Returns the modifiers in an archetype.
    pub(super) fn of(&self, archetype: &Archetype) -> Modified {
        let has_any = |ids: &[ComponentId]| ids.iter().any(|&id| archetype.contains(id));
        let look_up = || match () {
            () if has_any(&self.others) => Modified::Fully,
            () if has_any(&self.harmless) => Modified::Slightly,
            () => Modified::No,
        };
        self.noted(archetype.id()).unwrap_or_else(look_up)
    }

    /// Notes the modifiers in an archetype.
    pub(super) fn note(&mut self, archetype: ArchetypeId, modified: Modified) {
        let index = archetype.index();
        if self.archetypes.len() <= index {
            self.archetypes.resize(index + 1, None);
        }
        self.archetypes[index] = Some(modified);
    }
}
