//! The components of an entity, as data.

use alloc::vec::Vec;
use core::time::Duration;

use bevy_ecs::{
    component::ComponentId, entity::MapEntities, entity_disabling::Disabled, prelude::*,
};
use serde::{Deserialize, Serialize};

use crate::{
    clock::{Clock, ClockId, ClockTable, OnClock, SpeedModifier, clock_of, load_clock, save_clock},
    message::OpenRequest,
    owner::{OwnedBy, owner_of},
    pause::{Paused, Pauses},
    timer::{Arms, Cooldown, CrateTimer, DespawnAfter, Finished, Keyed, Timer, TimerAction},
};

/// A cooldown, and the time that its clock shows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CooldownAt {
    pub(super) cooldown: Cooldown,
    pub(super) now: Duration,
}

/// A component of an entity, or something else that is known about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Part {
    Clock(Clock),
    SpeedModifier(SpeedModifier),
    OnClock(OnClock),
    OwnedBy(OwnedBy),
    Key(Keyed),
    Paused,
    Pauses(Pauses),
    Disabled,
    Timer(Timer),
    Action(TimerAction),
    Lifetime(DespawnAfter),
    Cooldown(CooldownAt),
    Finished(Finished),
    Request,
    CrateTimer(CrateTimer),
    /// The request has timed out, and this many others did before it. The asking entity does not know
    /// yet.
    TimedOut(u32),
}

impl Part {
    /// Returns the components of an entity. The states of its timers have been written.
    pub(super) fn all_of(world: &World, entity: EntityRef) -> impl Iterator<Item = Self> {
        let timer = entity.get::<Timer>().and_then(Arms::saved);
        let lifetime = entity.get::<DespawnAfter>().and_then(Arms::saved);
        let cooldown = entity.get().map(|&cooldown| CooldownAt {
            cooldown,
            now: cooldown_clock(world, entity).1,
        });
        let has = |is_there: bool, part: Self| is_there.then_some(part);
        [
            save_clock(world, entity).map(Self::Clock),
            entity.get().copied().map(Self::SpeedModifier),
            entity.get().copied().map(Self::OnClock),
            entity.get().copied().map(Self::OwnedBy),
            entity.get().cloned().map(Self::Key),
            has(entity.contains::<Paused>(), Self::Paused),
            entity.get().copied().map(Self::Pauses),
            has(entity.contains::<Disabled>(), Self::Disabled),
            // The timer must find it.
            entity.get().cloned().map(Self::Finished),
            timer.map(Self::Timer),
            entity.get().cloned().map(Self::Action),
            lifetime.map(Self::Lifetime),
            cooldown.map(Self::Cooldown),
            has(entity.contains::<OpenRequest>(), Self::Request),
            entity.get().cloned().map(Self::CrateTimer),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the components that are parts.
    pub(super) fn components(world: &World) -> impl Iterator<Item = ComponentId> {
        [
            world.component_id::<Clock>(),
            world.component_id::<SpeedModifier>(),
            world.component_id::<OnClock>(),
            world.component_id::<OwnedBy>(),
            world.component_id::<Keyed>(),
            world.component_id::<Paused>(),
            world.component_id::<Pauses>(),
            world.component_id::<Timer>(),
            world.component_id::<TimerAction>(),
            world.component_id::<DespawnAfter>(),
            world.component_id::<Cooldown>(),
            world.component_id::<Finished>(),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the entities that the part refers to, except for those that no longer exist.
    pub(super) fn references(&self) -> Vec<Entity> {
        let mut references = References(Vec::new());
        self.clone().map_entities(&mut references);
        references.0
    }

    /// Returns the entity of the clock on which the part runs, if it runs on one.
    pub(super) fn clock(&self) -> Option<Entity> {
        let clock = match self {
            Self::Clock(clock) => clock.parent(),
            Self::Timer(timer) => timer.loaded()?.clock()?,
            Self::Lifetime(lifetime) => lifetime.loaded()?.clock()?,
            _ => return None,
        };
        match clock {
            ClockId::Own(clock) if clock != Entity::PLACEHOLDER => Some(clock),
            _ => None,
        }
    }

    /// Returns the entity without which the component can't exist, if any.
    pub(super) fn target(&self) -> Option<Entity> {
        match self {
            Self::OwnedBy(OwnedBy(target)) | Self::Pauses(Pauses(target)) => Some(*target),
            Self::SpeedModifier(modifier) => Some(modifier.clock()),
            _ => None,
        }
    }

    /// Returns `true` if the part has no purpose without the entity's timer.
    pub(super) fn serves_timer(&self) -> bool {
        matches!(
            self,
            Self::Timer(_)
                | Self::Action(_)
                | Self::Key(_)
                | Self::Finished(_)
                | Self::Request
                | Self::CrateTimer(_)
                | Self::TimedOut(_)
        )
    }

    /// Returns the name of the component.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Clock(_) => "Clock",
            Self::SpeedModifier(_) => "SpeedModifier",
            Self::OnClock(_) => "OnClock",
            Self::OwnedBy(_) => "OwnedBy",
            Self::Key(_) => "Keyed",
            Self::Paused => "Paused",
            Self::Pauses(_) => "Pauses",
            Self::Disabled => "Disabled",
            Self::Timer(_) => "Timer",
            Self::Action(_) => "TimerAction",
            Self::Lifetime(_) => "DespawnAfter",
            Self::Cooldown(_) => "Cooldown",
            Self::Finished(_) => "Finished",
            Self::Request => "Request",
            Self::CrateTimer(_) => "CrateTimer",
            Self::TimedOut(_) => "TimedOut",
        }
    }

    /// Inserts the component.
    pub(super) fn insert(self, entity: &mut EntityWorldMut) {
        match self {
            Self::Clock(clock) => {
                load_clock(entity, clock);
                entity
            }
            Self::SpeedModifier(modifier) => entity.insert(modifier),
            Self::OnClock(on) => entity.insert(on),
            Self::OwnedBy(owner) => entity.insert(owner),
            Self::Key(key) => entity.insert(key),
            Self::Paused => entity.insert(Paused),
            Self::Pauses(target) => entity.insert(target),
            Self::Disabled => entity.insert(Disabled),
            Self::Timer(timer) => entity.insert(timer),
            Self::Action(action) => entity.insert(action),
            Self::Lifetime(lifetime) => entity.insert(lifetime),
            Self::Cooldown(saved) => entity.insert(saved.cooldown),
            Self::Finished(finished) => entity.insert(finished),
            Self::Request => entity.insert(OpenRequest),
            Self::CrateTimer(timer) => entity.insert(timer),
            // What it stands for is sent after everything is loaded.
            Self::TimedOut(_) => entity,
        };
    }
}

impl MapEntities for Part {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        match self {
            Self::Clock(clock) => clock.map_entities(mapper),
            Self::SpeedModifier(modifier) => Component::map_entities(modifier, mapper),
            Self::OnClock(on) => on.0.map_entities(mapper),
            Self::OwnedBy(OwnedBy(owner)) => owner.map_entities(mapper),
            Self::Pauses(Pauses(target)) => target.map_entities(mapper),
            Self::Timer(timer) => MapEntities::map_entities(timer, mapper),
            Self::Lifetime(lifetime) => MapEntities::map_entities(lifetime, mapper),
            Self::Key(_)
            | Self::Paused
            | Self::Disabled
            | Self::Action(_)
            | Self::Cooldown(_)
            | Self::Finished(_)
            | Self::Request
            | Self::CrateTimer(_)
            | Self::TimedOut(_) => {}
        }
    }
}

/// Returns the clock of the cooldown on an entity, and the time that it shows.
pub(super) fn cooldown_clock(world: &World, entity: EntityRef) -> (ClockId, Duration) {
    let clock = clock_of(world, entity, owner_of(entity), None);
    let table = world.get_resource::<ClockTable>();
    let now = table.and_then(|table| table.now(clock).ok());
    (clock, now.unwrap_or_default())
}

/// Collects the entities to be mapped.
struct References(Vec<Entity>);

impl EntityMapper for References {
    fn get_mapped(&mut self, entity: Entity) -> Entity {
        if entity != Entity::PLACEHOLDER {
            self.0.push(entity);
        }
        entity
    }

    fn set_mapped(&mut self, _: Entity, _: Entity) {}
}
