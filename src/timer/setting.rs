//! The setting of a timer: its clock, its owner and its pause.

use bevy_ecs::{entity_disabling::Disabled, prelude::*};

use super::{
    Arms, TimerAction, TimerLines,
    modifiers::{Modified, Modifiers},
};
use crate::{
    clock::{Clock, ClockId, OnClock, SpeedModifier, clock_of},
    owner::{OwnedBy, owner_of},
    pause::{Paused, PausedBy, is_paused},
    transit::{InTransit, is_in_transit},
};

/// The setting of a timer, as the components of its entity and its owner decide.
pub(super) struct Setting {
    pub(super) owner: Entity,
    pub(super) clock: ClockId,
    pub(super) is_paused: bool,
    pub(super) is_in_transit: bool,
    /// Whether the entity has a [`TimerAction`].
    pub(super) acts: bool,
}

/// Returns the components that make a setting differ from the default.
pub(crate) fn modifiers(world: &mut World) -> Modifiers {
    Modifiers::new(
        [
            world.register_component::<OwnedBy>(),
            world.register_component::<TimerAction>(),
        ],
        [
            world.register_component::<Paused>(),
            world.register_component::<PausedBy>(),
            world.register_component::<Disabled>(),
            world.register_component::<OnClock>(),
            world.register_component::<Clock>(),
            world.register_component::<SpeedModifier>(),
            world.register_component::<InTransit>(),
        ],
    )
}

impl Setting {
    /// Returns the setting of a timer that chose no clock, on an entity without modifiers.
    pub(super) fn plain(entity: Entity) -> Self {
        Self {
            owner: entity,
            clock: ClockId::default(),
            is_paused: false,
            is_in_transit: false,
            acts: false,
        }
    }

    /// Returns the current setting of the timer of `C` on `entity`.
    pub(super) fn of<C: Arms>(world: &World, entity: Entity) -> Option<Self> {
        let lines = world.get_resource::<TimerLines>()?;
        let entity = world.get_entity(entity).ok()?;
        let chosen = entity.get::<C>()?.chosen_clock();
        Some(Self::new(world, lines, entity, chosen))
    }

    /// Returns the current setting of a timer that chose this clock, if any.
    pub(super) fn new(
        world: &World,
        lines: &TimerLines,
        entity: EntityRef,
        chosen: Option<ClockId>,
    ) -> Self {
        let modified = lines.modifiers.of(entity.archetype());
        let default = Self {
            clock: chosen.unwrap_or_default(),
            ..Self::plain(entity.id())
        };
        if modified == Modified::Nothing {
            return default;
        }
        let owner = owner_of(entity);
        let acts = entity.contains::<TimerAction>();
        let is_modified =
            |owner: EntityRef| lines.modifiers.of(owner.archetype()) == Modified::ClockOrHalt;
        if modified == Modified::OwnerOrAction && !world.get_entity(owner).is_ok_and(is_modified) {
            return Self {
                owner,
                acts,
                ..default
            };
        }
        Self {
            owner,
            clock: clock_of(world, entity, owner, chosen),
            is_paused: is_paused(world, entity, owner),
            is_in_transit: is_in_transit(world, entity, owner),
            acts,
        }
    }
}
