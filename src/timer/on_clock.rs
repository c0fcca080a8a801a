//! The clock for all timers of an entity.

use bevy_ecs::{
    component::Component,
    entity::Entity,
    world::{DeferredWorld, EntityRef},
};
#[cfg(feature = "bevy_reflect")]
use {
    bevy_ecs::reflect::ReflectComponent,
    bevy_reflect::{Reflect, std_traits::ReflectDefault},
};

use super::{Age, ClockKey, Scope, Timelines, own_clocks::begin_clock};
use crate::clock::{Clock, ClockId, UnknownClock};

/// The clock of this entity's timers: its own, and those of which it is the owner, unless they are
/// put [on another one](crate::Timer::on).
///
/// It is looked up when a timer is armed. Those that are armed already stay where they are, also
/// when it is changed or removed; to slow them down, give each entity a clock of its own from the
/// start, and slow that down. An entity that carries a
/// [`Clock`](crate::Clock) needs no `OnClock`: its timers are on that one.
///
/// # Examples
///
/// ```
/// use bevy_due::{Timer, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Monster;
///
/// fn enter_dungeon(mut commands: Commands) {
///     let dungeon = commands.spawn(Clock::new()).id();
///     commands.spawn((
///         Monster,
///         OnClock::new(dungeon),
///         related!(Timers[Timer::every_secs(1.0), Timer::after_secs(60.0)]),
///     ));
/// }
/// # bevy_ecs::system::assert_is_system(enter_dungeon);
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    reflect(Component, Clone, Debug, Default, PartialEq)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub struct OnClock(#[entities] pub ClockId);

impl OnClock {
    /// Chooses a clock: one of [`ClockId`], or an entity with a [`Clock`](crate::Clock).
    #[must_use]
    pub fn new(clock: impl Into<ClockId>) -> Self {
        Self(clock.into())
    }
}

/// The clock on which something of an entity is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundClock {
    pub(crate) line: ClockKey,
    pub(crate) age: Age,
    pub(crate) scope: Scope,
}

/// Finds the clock of what is on an entity, or `None` in a world without clocks.
pub(crate) fn find_clock(
    world: &mut DeferredWorld,
    entity: Entity,
    owner: Entity,
    told: Option<ClockId>,
) -> Option<Result<FoundClock, UnknownClock>> {
    let clock = clock_of(world, world.get_entity(entity).ok()?, owner, told);
    if let ClockId::Own(clock) = clock
        && world.get_resource::<Timelines>()?.key_of(clock).is_none()
    {
        // It may be being spawned together with what is on it.
        begin_clock(world, clock);
    }
    let found = world.get_resource::<Timelines>()?.find(clock);
    Some(found.map(|(line, timeline)| FoundClock {
        line,
        age: timeline.age,
        scope: match timeline.is_fixed {
            true => Scope::Fixed,
            false => Scope::Frame,
        },
    }))
}

/// Chooses the clock of what is on an entity, and was told of a clock or not.
pub(super) fn clock_of(
    world: &DeferredWorld,
    entity: EntityRef,
    owner: Entity,
    told: Option<ClockId>,
) -> ClockId {
    let clock_of = |entity: EntityRef| {
        let on = entity.get::<OnClock>().map(|on| on.0);
        let itself = || entity.contains::<Clock>().then(|| entity.id().into());
        on.or_else(itself)
    };
    let clock = told.or_else(|| clock_of(entity));
    let clock_of_owner = || clock_of(world.get_entity(owner).ok()?);
    clock.or_else(clock_of_owner).unwrap_or_default()
}
