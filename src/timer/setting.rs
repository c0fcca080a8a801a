//! The setting of a timer: its clock, its owner and its pause, as components decide.

use alloc::vec::Vec;

use bevy_ecs::{
    archetype::{Archetype, ArchetypeId},
    component::ComponentId,
    entity_disabling::Disabled,
    observer::ObservedBy,
    prelude::*,
};

use super::{
    Kind, TimerAction, TimerQueues,
    queued::{ArmedTimer, Mark},
};
use crate::{
    clock::{Clock, ClockId, OnClock, SpeedModifier, clock_of},
    owner::{OwnedBy, owner_of},
    pause::{Paused, PausedBy, is_paused},
};

/// The setting of a timer, as the components of its entity and its owner decide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) owner: Entity,
    pub(super) clock: ClockId,
    pub(super) is_paused: bool,
    /// Whether the entity has a [`TimerAction`].
    pub(super) acts: bool,
    /// Whether the entity or its owner has an observer.
    pub(super) is_observed: bool,
}

impl Setting {
    /// Returns the current setting of a timer of `entity`.
    pub(super) fn of(world: &World, entity: Entity, kind: Kind) -> Option<Self> {
        let modifiers = &world.get_resource::<TimerQueues>()?.arming.modifiers;
        let entity = world.get_entity(entity).ok()?;
        let chosen = kind.on(entity)?.clock();
        Some(Self::new(world, modifiers, entity, chosen))
    }

    /// Returns the current setting of a timer that chose this clock, if any.
    pub(super) fn new(
        world: &World,
        modifiers: &Modifiers,
        entity: EntityRef,
        chosen: Option<ClockId>,
    ) -> Self {
        let owner = owner_of(entity);
        let [of_entity, of_owner] = [entity.id(), owner].map(|it| {
            let entity = world.get_entity(it).ok();
            entity.map(|entity| modifiers.of(entity.archetype()))
        });
        let is_observed = |it: Option<Modification>| it.is_some_and(|it| it.is_observed);
        let by = |it: Option<Modification>| it.map_or(Modified::Nothing, |it| it.by);
        let setting = Self {
            owner,
            clock: chosen.unwrap_or_default(),
            is_paused: false,
            acts: entity.contains::<TimerAction>(),
            is_observed: is_observed(of_entity) || is_observed(of_owner),
        };
        // An owner may have an owner, which may be paused.
        let is_plain = match by(of_entity) {
            Modified::Nothing => true,
            Modified::OwnerOrAction => by(of_owner) == Modified::Nothing || owner == entity.id(),
            Modified::ClockOrPause => false,
        };
        if is_plain {
            return setting;
        }
        Self {
            clock: clock_of(world, entity, owner, chosen),
            is_paused: is_paused(world, entity),
            ..setting
        }
    }
}

impl Setting {
    /// Gives the timer this setting, at a reading of its clock.
    pub(super) fn apply(&self, timer: &mut ArmedTimer, now: u64) {
        timer.set(Mark::Owned, self.owner != timer.entity);
        timer.set(Mark::Observed, self.is_observed);
        timer.set_acts(self.acts);
        timer.set_paused(self.is_paused, now);
    }
}

/// Returns `true` if an entity or its owner has observers.
pub(super) fn is_observed(world: &World, entity: Entity) -> bool {
    let has_observers = |entity| world.get::<ObservedBy>(entity).is_some();
    let owner = world.get_entity(entity).ok().map(owner_of);
    has_observers(entity) || owner.is_some_and(has_observers)
}

/// The components that make the setting of a timer differ from the default, by archetype.
#[derive(Debug)]
pub(crate) struct Modifiers {
    /// The owner and the action, which neither pause a timer nor choose its clock.
    owner_or_action: [ComponentId; 2],
    clock_or_pause: [ComponentId; 6],
    observed_by: ComponentId,
    /// The modifiers in each archetype, once looked up. An archetype never changes.
    archetypes: Vec<Option<Modification>>,
}

/// What an archetype says about the timers on its entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modification {
    pub(super) by: Modified,
    /// Whether the entities have observers.
    pub(super) is_observed: bool,
}

/// The modifiers in an archetype, the strongest if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modified {
    /// Most timers have no modifiers.
    Nothing,
    OwnerOrAction,
    ClockOrPause,
}

impl Modifiers {
    pub(super) fn new(world: &mut World) -> Self {
        Self {
            owner_or_action: [
                world.register_component::<OwnedBy>(),
                world.register_component::<TimerAction>(),
            ],
            clock_or_pause: [
                world.register_component::<Paused>(),
                world.register_component::<PausedBy>(),
                world.register_component::<Disabled>(),
                world.register_component::<OnClock>(),
                world.register_component::<Clock>(),
                world.register_component::<SpeedModifier>(),
            ],
            observed_by: world.register_component::<ObservedBy>(),
            archetypes: Vec::new(),
        }
    }

    /// Returns the modifiers in an archetype, or `None` if they were never [noted](Self::note).
    #[inline]
    pub(super) fn noted(&self, archetype: ArchetypeId) -> Option<Modification> {
        *self.archetypes.get(archetype.index())?
    }

    /// Returns the modifiers in an archetype.
    pub(super) fn of(&self, archetype: &Archetype) -> Modification {
        let has_any = |ids: &[ComponentId]| ids.iter().any(|&id| archetype.contains(id));
        let look_up = || Modification {
            by: match () {
                () if has_any(&self.clock_or_pause) => Modified::ClockOrPause,
                () if has_any(&self.owner_or_action) => Modified::OwnerOrAction,
                () => Modified::Nothing,
            },
            is_observed: archetype.contains(self.observed_by),
        };
        self.noted(archetype.id()).unwrap_or_else(look_up)
    }

    /// Returns the modifiers in an archetype, and looks them up only once.
    #[inline]
    pub(super) fn note(&mut self, archetype: &Archetype) -> Modification {
        match self.noted(archetype.id()) {
            Some(modified) => modified,
            None => self.note_new(archetype),
        }
    }

    #[cold]
    fn note_new(&mut self, archetype: &Archetype) -> Modification {
        let (modified, index) = (self.of(archetype), archetype.id().index());
        if self.archetypes.len() <= index {
            self.archetypes.resize(index + 1, None);
        }
        self.archetypes[index] = Some(modified);
        modified
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;
    use crate::{Timer, clock::ClockTable};

    #[test]
    fn an_archetype_is_known_from_its_first_timer_on() {
        let mut world = World::new();
        let queues = TimerQueues::new(&mut world, 0, NonZeroU32::MIN, |_, _| ());
        world.insert_resource(queues);
        world.insert_resource(ClockTable::new(false, |_| 0));
        let plain = world.spawn(Timer::after(1.0)).archetype().id();
        let acting = (Timer::after(1.0), TimerAction::despawn());
        let acting = world.spawn(acting).archetype().id();
        // No run comes between, as in the frame that loads a level.
        let modifiers = &world.resource::<TimerQueues>().arming.modifiers;
        let known = [plain, acting].map(|archetype| modifiers.noted(archetype).map(|it| it.by));
        assert_eq!(
            known,
            [Modified::Nothing, Modified::OwnerOrAction].map(Some)
        );
    }
}
