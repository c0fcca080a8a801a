//! The components that change how a timer is armed, by archetype.

use alloc::vec::Vec;

use bevy_ecs::{
    archetype::{Archetype, ArchetypeId},
    component::ComponentId,
};

/// The components that make the setting of a timer differ from the default.
#[derive(Debug)]
pub(crate) struct Modifiers {
    /// The owner and the action, which neither halt a timer nor choose its clock.
    owner_or_action: [ComponentId; 2],
    clock_or_halt: [ComponentId; 7],
    /// The modifiers in each archetype, once looked up. An archetype never changes.
    archetypes: Vec<Option<Modified>>,
}

/// The modifiers in an archetype, the strongest if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modified {
    /// Most timers have no modifiers.
    Nothing,
    OwnerOrAction,
    ClockOrHalt,
}

impl Modifiers {
    pub(super) fn new(owner_or_action: [ComponentId; 2], clock_or_halt: [ComponentId; 7]) -> Self {
        Self {
            owner_or_action,
            clock_or_halt,
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
            () if has_any(&self.clock_or_halt) => Modified::ClockOrHalt,
            () if has_any(&self.owner_or_action) => Modified::OwnerOrAction,
            () => Modified::Nothing,
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
