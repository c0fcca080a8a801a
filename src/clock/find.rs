//! Finding clocks: the clock of a timer or a callback, and the clocks of a world by name.

use core::fmt;

use bevy_ecs::{entity_disabling::Disabled, prelude::*, system::SystemParam, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

use super::{
    Clock,
    built_in::BuiltInClocks,
    hooks::add_clock,
    id::{ClockId, NoSuchClock},
    modifier::SpeedModifier,
    shared::{ClockTable, FoundClock},
    table::BUILT_IN,
    times::Times,
};

/// The clock for everything on this entity, and for everything it owns directly, unless a timer or a
/// callback names [another clock](crate::Timer::on).
///
/// The clock is looked up in the first run after a timer is inserted, or when a callback is inserted.
/// Changing or removing `OnClock` later does not move the timers and callbacks that are there. To
/// move an armed timer, use [`TimerMut::set_clock`](crate::TimerMut::set_clock). To slow down an
/// entity later, give it its own clock from the start. An entity that carries a [`Clock`] needs no
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
///         related!(Owned[Timer::every(1.0), Timer::after(60.0)]),
///     ));
/// }
/// # bevy_ecs::system::assert_is_system(enter_dungeon);
/// ```
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
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
pub struct Clocks<'w> {
    #[system_param(validation_message = "there is no `DuePlugin`: add it to the app")]
    table: Res<'w, ClockTable>,
    times: Times<'w>,
}

/// Changes the clocks of a world: the built-in ones and your own.
///
/// A system with this parameter can't also have a query for [`Clock`].
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
    built_in: ResMut<'w, BuiltInClocks>,
    own: Query<'w, 's, &'static mut Clock, Allow<Disabled>>,
}

impl Clocks<'_> {
    /// Returns a copy of a clock, with its current time.
    ///
    /// The component itself advances once per run, so it may lag behind Bevy's `Time`.
    ///
    /// # Errors
    ///
    /// Returns [`NoSuchClock`] if there is no such clock.
    pub fn get(&self, clock: impl Into<ClockId>) -> Result<Clock, NoSuchClock> {
        let clock = clock.into();
        let key = self.table.find(clock)?.key;
        let state = self.table.live(key, &self.times);
        state.map(Clock::from).ok_or(NoSuchClock(clock))
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
        let found = match clock {
            ClockId::Own(entity) => self.own.get_mut(entity).ok(),
            built_in => BUILT_IN
                .iter()
                .position(|&(id, _)| id == built_in)
                .map(|key| {
                    self.built_in
                        .reborrow()
                        .map_unchanged(|clocks| &mut clocks.0[key])
                }),
        };
        found.ok_or(NoSuchClock(clock))
    }
}

impl fmt::Debug for Clocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocks").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClocksMut<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clocks = self.built_in.0.iter().chain(&self.own);
        f.debug_set().entries(clocks).finish()
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
    Some(world.get_resource::<ClockTable>()?.find(clock))
}

/// Adds a clock that is on its entity but not yet in the table. The same bundle may have inserted
/// it.
pub(crate) fn add_missing_clock(world: &mut DeferredWorld, clock: ClockId) {
    if let ClockId::Own(entity) = clock
        && let Some(table) = world.get_resource::<ClockTable>()
        && table.key_of(entity).is_none()
        && world.get::<Clock>(entity).is_some()
    {
        add_clock(world, entity);
    }
}

/// Chooses the clock of a timer or a callback.
///
/// The order is: the clock that it chose itself, the clock of its entity, the clock of its owner,
/// the game clock. A modifier of a clock is on the parent of that clock.
pub(crate) fn clock_of(
    world: &World,
    entity: EntityRef,
    owner: Entity,
    chosen: Option<ClockId>,
) -> ClockId {
    let parent = |clock: Entity| Some(world.get::<Clock>(clock)?.parent());
    let clock_on = |entity: EntityRef| {
        let has_clock = entity.contains::<Clock>();
        let clock = clock_on(entity.id(), entity.get(), has_clock);
        let modified = || parent(entity.get::<SpeedModifier>()?.clock());
        clock.or_else(modified)
    };
    let clock = chosen.or_else(|| clock_on(entity));
    let clock_on_owner = || clock_on(world.get_entity(owner).ok()?);
    clock.or_else(clock_on_owner).unwrap_or_default()
}

/// Returns the clock of everything on an entity, if the entity decides it.
pub(crate) fn clock_on(entity: Entity, on: Option<&OnClock>, has_clock: bool) -> Option<ClockId> {
    let itself = || has_clock.then_some(ClockId::Own(entity));
    on.map(|on| on.0).or_else(itself)
}
