//! Finding clocks: the clock of a timer or a callback, and the clocks of a world by name.

use core::{fmt, time::Duration};

use bevy_ecs::{entity_disabling::Disabled, prelude::*, system::SystemParam, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

use super::{
    Clock, ClockId, NoSuchClock,
    hooks::add_clock,
    read::{TimeSource, Times},
    table::{Age, BevyTime, Cadence, ClockKey, ClockTable, Row},
};

/// The clock for everything on this entity, and for everything it owns, unless a timer or a
/// callback names [another clock](crate::Timer::on).
///
/// The clock is looked up when a timer is armed or a callback is inserted. Changing or removing
/// `OnClock` does not move the timers and callbacks that are already there. To slow down an entity
/// later, give it its own clock from the start. An entity that carries a [`Clock`] needs no
/// `OnClock`: it is on its own clock.
///
/// # Examples
///
/// ```
/// use bevy_due::{OnClock, Timer, prelude::*};
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
///         related!(Owned[Timer::every_secs(1.0), Timer::after_secs(60.0)]),
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
    /// Creates the component for a [`ClockId`] or an entity with a [`Clock`].
    #[must_use]
    pub fn new(clock: impl Into<ClockId>) -> Self {
        Self(clock.into())
    }
}

/// Reads the clocks of a world: the built-in ones and your own.
///
/// # Examples
///
/// ```
/// use bevy_due::{ClockId, Clocks};
/// use bevy_ecs::prelude::*;
///
/// fn print_time(clocks: Clocks) -> Result {
///     println!("{:?}", clocks.get(ClockId::Virtual)?.now());
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(print_time);
/// ```
#[derive(SystemParam)]
pub struct Clocks<'w, 's> {
    #[system_param(validation_message = "there is no `DuePlugin`: add it to the app")]
    table: Res<'w, ClockTable>,
    clocks: Query<'w, 's, (&'static Clock, Has<Disabled>)>,
    times: Times<'w>,
}

/// Changes the clocks of a world: the built-in ones and your own.
///
/// A system with this parameter can't also have [`Clocks`], [`ArmedTimers`](crate::ArmedTimers) or
/// a query for [`Clock`].
///
/// # Examples
///
/// ```
/// use bevy_due::{ClockId, ClocksMut};
/// use bevy_ecs::prelude::*;
///
/// fn skip_a_day(mut clocks: ClocksMut) -> Result {
///     let day = core::time::Duration::from_secs(24 * 3600);
///     clocks.get_mut(ClockId::Virtual)?.advance_by(day);
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(skip_a_day);
/// ```
#[derive(SystemParam)]
pub struct ClocksMut<'w, 's> {
    #[system_param(validation_message = "there is no `DuePlugin`: add it to the app")]
    table: Res<'w, ClockTable>,
    clocks: Query<'w, 's, &'static mut Clock, Allow<Disabled>>,
}

impl Clocks<'_, '_> {
    /// Returns the current state of a clock.
    ///
    /// The component itself advances once per run, so it may lag behind Bevy's `Time`.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    pub fn get(&self, clock: impl Into<ClockId>) -> Result<Clock, NoSuchClock> {
        let clock = clock.into();
        let (key, _) = self.table.find(clock)?;
        self.table.clock_now(key, self).ok_or(NoSuchClock(clock))
    }

    /// Returns the entity of a clock.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    pub fn entity(&self, clock: impl Into<ClockId>) -> Result<Entity, NoSuchClock> {
        let (_, row) = self.table.find(clock.into())?;
        Ok(row.entity)
    }
}

impl TimeSource for Clocks<'_, '_> {
    fn clock(&self, entity: Entity) -> Option<Clock> {
        let (clock, _) = self.clocks.get(entity).ok()?;
        Some(*clock)
    }

    fn is_disabled(&self, entity: Entity) -> bool {
        let clock = self.clocks.get(entity);
        clock.is_ok_and(|(_, is_disabled)| is_disabled)
    }

    fn elapsed(&self, time: BevyTime) -> Duration {
        self.times.elapsed(time)
    }
}

impl ClocksMut<'_, '_> {
    /// Returns a mutable reference to a clock.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    pub fn get_mut(&mut self, clock: impl Into<ClockId>) -> Result<Mut<'_, Clock>, NoSuchClock> {
        let clock = clock.into();
        let (_, row) = self.table.find(clock)?;
        self.clocks
            .get_mut(row.entity)
            .map_err(|_| NoSuchClock(clock))
    }
}

impl fmt::Debug for Clocks<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.clocks).finish()
    }
}

impl fmt::Debug for ClocksMut<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.clocks).finish()
    }
}

/// The clock of a timer or a callback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundClock {
    pub(crate) key: ClockKey,
    pub(crate) age: Age,
    pub(crate) cadence: Cadence,
}

impl FoundClock {
    pub(crate) fn of((key, row): (ClockKey, &Row)) -> Self {
        let &Row { age, cadence, .. } = row;
        Self { key, age, cadence }
    }
}

/// Finds the clock of a timer or a callback on `entity`, or returns `None` in a world without
/// clocks.
pub(crate) fn find_clock(
    world: &mut DeferredWorld,
    entity: Entity,
    owner: Entity,
    chosen: Option<ClockId>,
) -> Option<Result<FoundClock, NoSuchClock>> {
    let clock = clock_of(world, world.get_entity(entity).ok()?, owner, chosen);
    add_missing_clock(world, clock);
    let found = world.get_resource::<ClockTable>()?.find(clock);
    Some(found.map(FoundClock::of))
}

/// Adds a clock that is on its entity but not yet in the table. The same bundle may have inserted
/// it.
pub(crate) fn add_missing_clock(world: &mut DeferredWorld, clock: ClockId) {
    if let Some(table) = world.get_resource::<ClockTable>()
        && table.find(clock).is_err()
        && let Some(entity) = table.entity_of(clock)
    {
        add_clock(world, entity);
    }
}

/// Chooses the clock of a timer or a callback.
///
/// The order is: the clock that it chose itself, the clock of its entity, the clock of its owner,
/// the game clock.
pub(crate) fn clock_of(
    world: &World,
    entity: EntityRef,
    owner: Entity,
    chosen: Option<ClockId>,
) -> ClockId {
    let clock_on =
        |entity: EntityRef| clock_on(entity.id(), entity.get(), entity.contains::<Clock>());
    let clock = chosen.or_else(|| clock_on(entity));
    let clock_on_owner = || clock_on(world.get_entity(owner).ok()?);
    clock.or_else(clock_on_owner).unwrap_or_default()
}

/// Returns the clock of everything on an entity, if the entity decides it.
pub(crate) fn clock_on(entity: Entity, on: Option<&OnClock>, has_clock: bool) -> Option<ClockId> {
    let itself = || has_clock.then_some(ClockId::Own(entity));
    on.map(|on| on.0).or_else(itself)
}
