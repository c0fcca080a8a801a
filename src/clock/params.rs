//! Clocks as parameters of systems, and the choice of the clock of a timer or a callback.

use core::{fmt, time::Duration};

use bevy_ecs::{prelude::*, system::SystemParam, world::DeferredWorld};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
use bevy_time::{Time, Virtual};

use super::{
    Clock, ClockMut,
    id::{ClockError, ClockId},
    modifier::SpeedModifier,
    read::put_clock,
    table::{ClockTable, FoundClock},
    time::Reading,
};

/// The clock for everything on this entity, and for everything it owns directly, unless a timer or a
/// callback names [another clock](crate::Timer::on).
///
/// Inserting it moves the timers, lifetimes and callbacks that are there by default. A timer keeps its remaining time,
/// and takes a new place among equal deadlines. A timer that was inserted after the last run starts its delay on the
/// new clock. Removing it moves them to the clock of the owner, or to the game clock. What chose its clock stays: by
/// [`Timer::on`](crate::Timer::on) or [`TimerMut::set_clock`](crate::timer::TimerMut::set_clock). The component is
/// immutable, so insert another one to change it.
///
/// An entity that carries a [`Clock`] is on its own clock. If that clock was created with [`Clock::new`], which names
/// no parent, `OnClock` names its parent. To slow an entity, spawn a [`SpeedModifier`].
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
#[component(immutable)]
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
/// All systems of a frame see the same time, as the last reading of the clocks gave it, unless a clock is told to jump.
///
/// # Examples
///
/// ```
/// use bevy_due::{ClockId, Clocks};
/// use bevy_ecs::prelude::*;
///
/// fn print_time(clocks: Clocks) -> Result {
///     println!("{:?}", clocks.now(ClockId::Virtual)?);
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(print_time);
/// ```
#[derive(SystemParam)]
pub struct Clocks<'w> {
    #[system_param(validation_message = "there is no `DuePlugin`: add it to the app")]
    table: Res<'w, ClockTable>,
}

/// Changes the clocks of a world: the built-in ones and your own.
///
/// The changes are made when the commands of the system are applied: for an observer, when it has run. So a system can
/// have this parameter beside [`Clocks`] and [`ArmedTimers`](crate::ArmedTimers), which show the clocks as they are.
///
/// # Examples
///
/// ```
/// use bevy_due::{ArmedTimers, ClocksMut, OwnedBy, prelude::*};
/// use bevy_ecs::prelude::*;
///
/// #[derive(Component)]
/// struct Bomb;
///
/// /// Slows the arena while a bomb has less than a second left.
/// fn slow_motion(
///     arena: Single<Entity, With<Clock>>,
///     bombs: Query<Entity, With<Bomb>>,
///     timers: ArmedTimers,
///     mut clocks: ClocksMut,
/// ) -> Result {
///     let left = bombs.iter().filter_map(|bomb| timers.get(bomb));
///     let is_close = left.map(|timer| timer.remaining).min().is_some_and(|it| it.as_secs() < 1);
///     clocks.get_mut(*arena)?.set_speed(if is_close { 0.25 } else { 1.0 });
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(slow_motion);
/// ```
#[derive(SystemParam)]
pub struct ClocksMut<'w, 's> {
    #[system_param(validation_message = "there is no `DuePlugin`: add it to the app")]
    table: Res<'w, ClockTable>,
    commands: Commands<'w, 's>,
}

impl Clocks<'_> {
    /// Returns the time that a clock shows, on the same time line as
    /// [`TimerFired::deadline`](crate::TimerFired::deadline).
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    pub fn now(&self, clock: impl Into<ClockId>) -> Result<Duration, ClockError> {
        self.table.now(clock.into())
    }

    /// Returns the time on a clock, and what it shows.
    pub(crate) fn reading(&self, clock: ClockId) -> Result<Reading, ClockError> {
        self.table.read(clock).map(|(_, reading)| reading)
    }

    /// Returns the time that passed on a clock between the last two readings, for movement and animations.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use bevy_due::{Clock, Clocks};
    /// use bevy_ecs::prelude::*;
    ///
    /// #[derive(Component)]
    /// struct Position(f32);
    ///
    /// /// Walks two metres per second on the unit's clock.
    /// fn walk(mut units: Query<(Entity, &mut Position), With<Clock>>, clocks: Clocks) -> Result {
    ///     for (unit, mut position) in &mut units {
    ///         position.0 += 2.0 * clocks.delta(unit)?.as_secs_f32();
    ///     }
    ///     Ok(())
    /// }
    /// # bevy_ecs::schedule::Schedule::default().add_systems(walk);
    /// ```
    pub fn delta(&self, clock: impl Into<ClockId>) -> Result<Duration, ClockError> {
        self.table.delta(clock.into())
    }

    /// Returns how many seconds pass on a clock per second of the `Time` of Bevy that drives it.
    ///
    /// This is the product of its [speed](Clock::speed), its [modifiers](crate::clock::SpeedModifier) and the
    /// speeds of the clocks above it. It is zero if one of them stands still. Give it to an animation or a tween
    /// that runs on Bevy's `Time`.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{Clocks, clock::SpeedModifier, prelude::*};
    /// # use bevy_ecs::{prelude::*, system::RunSystemOnce};
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let arena = world.spawn(Clock::new().with_speed(2.0)).id();
    /// let unit = world.spawn(Clock::of(arena)).id();
    /// world.spawn(SpeedModifier::new(unit, 0.25));
    /// # app.update();
    /// # app.world_mut().run_system_once(move |clocks: Clocks| {
    /// assert_eq!(clocks.speed(unit), Ok(0.5));
    /// # }).unwrap();
    /// ```
    pub fn speed(&self, clock: impl Into<ClockId>) -> Result<f64, ClockError> {
        self.table.speed(clock.into())
    }

    /// Returns a clock with its present settings, and with the time that it shows. If you insert it
    /// elsewhere, it starts with this time.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    pub fn get(&self, clock: impl Into<ClockId>) -> Result<Clock, ClockError> {
        self.table.copy(clock.into())
    }
}

impl ClocksMut<'_, '_> {
    /// Returns a handle that changes a clock.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    pub fn get_mut(&mut self, clock: impl Into<ClockId>) -> Result<ClockMut<'_>, ClockError> {
        let clock = clock.into();
        self.table.find(clock)?;
        Ok(ClockMut::later(
            clock,
            &self.table,
            self.commands.reborrow(),
        ))
    }
}

impl fmt::Debug for Clocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocks").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClocksMut<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClocksMut").finish_non_exhaustive()
    }
}

/// Returns `true` if the game stands still. A pause works at once, and its end from the next frame on.
pub(crate) fn is_game_stopped(game: &Time<Virtual>) -> bool {
    game.is_paused() || game.was_paused() || game.relative_speed_f64() == 0.0
}

/// Returns `true` if Bevy's game time stands still in a world.
pub(crate) fn is_game_stopped_in(world: &World) -> bool {
    world.get_resource().is_some_and(is_game_stopped)
}

/// Finds the clock of a timer or a callback on `entity`, or returns `None` in a world without
/// clocks.
pub(crate) fn find_clock(
    world: &mut DeferredWorld,
    entity: Entity,
    owner: Entity,
    chosen: Option<ClockId>,
) -> Option<Result<FoundClock, ClockError>> {
    let clock = clock_of(world, world.get_entity(entity).ok()?, owner, chosen);
    add_missing_clock(world, clock);
    Some(world.get_resource::<ClockTable>()?.find(clock))
}

/// Adds a clock that is on its entity but not yet in the table. The same bundle has inserted it, and its hook will report
/// what is wrong with it.
pub(crate) fn add_missing_clock(world: &mut DeferredWorld, clock: ClockId) {
    if let ClockId::Own(entity) = clock
        && let Some(table) = world.get_resource::<ClockTable>()
        && table.key_of(entity).is_none()
        && world.get::<Clock>(entity).is_some()
    {
        put_clock(world, entity);
    }
}

/// Chooses the clock of a timer or a callback.
///
/// The order is: the clock that it chose itself, the clock of its entity, the clock of its owner,
/// the game clock. A clock on an entity comes before the one that `OnClock` names. A modifier of a clock is on
/// the parent of that clock.
pub(crate) fn clock_of(
    world: &World,
    entity: EntityRef,
    owner: Entity,
    chosen: Option<ClockId>,
) -> ClockId {
    let parts = |entity: Entity| {
        let entity = world.get_entity(entity).ok()?;
        Some((entity.get(), entity.contains::<Clock>(), entity.get()))
    };
    let entities = (entity.id(), owner);
    chosen.unwrap_or_else(|| default_clock(world.get_resource(), entities, parts))
}

/// The components that decide the clock of everything on an entity: the clock that it is on, whether it has a clock,
/// and what it modifies.
pub(crate) type ClockParts<'a> = (Option<&'a OnClock>, bool, Option<&'a SpeedModifier>);

/// Returns the clock of a timer or a callback that chose none. `parts` returns the components of an entity.
pub(crate) fn default_clock<'a>(
    table: Option<&ClockTable>,
    (entity, owner): (Entity, Entity),
    parts: impl Fn(Entity) -> Option<ClockParts<'a>>,
) -> ClockId {
    let own = |entity, (on, has_clock, _): ClockParts| match has_clock {
        true => Some(ClockId::Own(entity)),
        false => on.map(|on| on.0),
    };
    let clock_on = |entity| {
        let found = parts(entity)?;
        let modified = || {
            let clock = found.2?.clock();
            let parent = table?.parent_of(clock);
            // A clock that comes with the next run is on this one.
            parent.or_else(|| own(clock, parts(clock)?))
        };
        own(entity, found).or_else(modified)
    };
    let clock = clock_on(entity).or_else(|| clock_on(owner));
    clock.unwrap_or_default()
}
