//! Clocks as parameters of systems, and the choice of the clock of a timer or a callback.

use core::{fmt, time::Duration};

use bevy_ecs::{
    entity::EntityHashSet, entity_disabling::Disabled, prelude::*, system::SystemParam,
    world::DeferredWorld,
};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
use bevy_time::{Time, Virtual};

use super::{
    Clock,
    id::{ClockError, ClockId},
    modifier::SpeedModifier,
    read::add_clock,
    row::{Age, ClockKey, VIRTUAL},
    table::{ClockTable, FoundClock, Scope},
    time::Reading,
};

/// The clock for everything on this entity, and for everything it owns directly, unless a timer or a
/// callback names [another clock](crate::Timer::on).
///
/// The clock is looked up in the first run after a timer is inserted, or when a callback is inserted.
/// Changing or removing `OnClock` later does not move the timers and callbacks that are there. To
/// move an armed timer, use [`TimerMut::set_clock`](crate::timer::TimerMut::set_clock). To slow down an
/// entity later, spawn a [`SpeedModifier`].
///
/// An entity that carries a [`Clock`] is on its own clock. If that clock is inserted with `OnClock` or after it, and
/// was created with [`Clock::new`], which names no parent, `OnClock` names its parent. Later, use
/// [`Clock::set_parent`].
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
/// All systems of a frame see the same time, as the last reading of the clocks gave it. A change of a
/// clock shows in the next frame.
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
    table: ResMut<'w, ClockTable>,
    own: Query<'w, 's, &'static mut Clock, Allow<Disabled>>,
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

    /// Returns a copy of a clock with its settings as of the last reading. If you insert the copy
    /// elsewhere, it starts with the time of this clock.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    pub fn get(&self, clock: impl Into<ClockId>) -> Result<Clock, ClockError> {
        self.table.copy(clock.into())
    }
}

impl ClocksMut<'_, '_> {
    /// Returns a mutable reference to a clock.
    ///
    /// # Errors
    ///
    /// Returns [`ClockError::NoSuchClock`] if there is no such clock.
    pub fn get_mut(&mut self, clock: impl Into<ClockId>) -> Result<Mut<'_, Clock>, ClockError> {
        let clock = clock.into();
        let found = match clock {
            ClockId::Own(entity) => self.own.get_mut(entity).ok(),
            id => {
                let table = self.table.reborrow();
                table.filter_map_unchanged(|table| table.built_in_mut(id))
            }
        };
        found.ok_or(ClockError::NoSuchClock(clock))
    }

    /// Puts a clock on another parent, as [`Clock::set_parent`] does, unless the parent is invalid.
    ///
    /// # Errors
    ///
    /// Returns an error, and keeps the parent, if there is no such clock or parent, if the clock would
    /// drive itself, or if it is a built-in one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use bevy_app::prelude::*;
    /// # use bevy_due::{ClockId, ClocksMut, clock::ClockError, prelude::*};
    /// # use bevy_ecs::{prelude::*, system::RunSystemOnce};
    /// # use bevy_time::TimePlugin;
    /// # let mut app = App::new();
    /// # app.add_plugins((TimePlugin, DuePlugin::default()));
    /// # let world = app.world_mut();
    /// let arena = world.spawn(Clock::new()).id();
    /// let spell = world.spawn(Clock::of(arena)).id();
    /// # world.run_system_once(move |mut clocks: ClocksMut| {
    /// let cycle = ClockError::Cycle(vec![arena, spell]);
    /// assert_eq!(clocks.set_parent(arena, spell), Err(cycle));
    /// assert_eq!(clocks.set_parent(arena, ClockId::Real), Ok(()));
    /// # }).unwrap();
    /// ```
    pub fn set_parent(
        &mut self,
        clock: impl Into<ClockId>,
        parent: impl Into<ClockId>,
    ) -> Result<(), ClockError> {
        let (clock, parent) = (clock.into(), parent.into());
        let ClockId::Own(entity) = clock else {
            return Err(ClockError::BuiltIn(clock));
        };
        let mut cycle = EntityHashSet::default();
        let mut clocks = alloc::vec![entity];
        let mut at = parent;
        while let ClockId::Own(above) = at
            && above != entity
            && cycle.insert(above)
        {
            clocks.push(above);
            match self.own.get(above) {
                Ok(clock) => at = clock.parent(),
                Err(_) if at == parent => return Err(ClockError::NoSuchClock(parent)),
                // The parent has lost its own, and stands still.
                Err(_) => break,
            }
        }
        if at == clock {
            return Err(ClockError::Cycle(clocks));
        }
        self.get_mut(clock)?.set_parent(parent);
        Ok(())
    }
}

/// Returns the component of the clock of this key.
pub(super) fn component(world: &World, key: ClockKey) -> Option<&Clock> {
    let table = world.get_resource::<ClockTable>()?;
    match table.id(key)? {
        ClockId::Own(entity) => world.get(entity),
        _ => table.built_in.get(key as usize),
    }
}

/// Changes the component of the clock of this key, and triggers no change detection.
pub(super) fn with_component<R>(
    world: &mut World,
    key: ClockKey,
    change: impl FnOnce(&mut Clock) -> R,
) -> Option<R> {
    match world.get_resource::<ClockTable>()?.id(key)? {
        ClockId::Own(entity) => {
            let mut clock = world.get_mut::<Clock>(entity)?;
            Some(change(clock.bypass_change_detection()))
        }
        built_in => {
            let mut table = world.get_resource_mut::<ClockTable>()?;
            table.built_in_mut(built_in).map(change)
        }
    }
}

impl fmt::Debug for Clocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clocks").finish_non_exhaustive()
    }
}

impl fmt::Debug for ClocksMut<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clocks = self.table.built_in.iter().chain(&self.own);
        f.debug_set().entries(clocks).finish()
    }
}

/// Returns the time on the clock of this key and age, or `None` if the clock is gone, or if something
/// stops it in a run by now. `component` returns the component of a clock on an entity, and `game` the time
/// of the game, which stops all clocks under the game clock.
#[inline]
pub(crate) fn read_running<'c>(
    table: &ClockTable,
    clock: (ClockKey, Age),
    scope: Scope,
    mut component: impl FnMut(Entity) -> Option<&'c Clock>,
    mut game: impl FnMut() -> Option<&'c Time<Virtual>>,
) -> Option<Reading> {
    table.read_running(clock, scope, |key, entity| {
        let component = match entity {
            Some(entity) => component(entity),
            None => table.built_in.get(key as usize),
        };
        let is_driven_by_game = key == VIRTUAL && scope != Scope::Under(key);
        component.is_some_and(Clock::is_stopped)
            || is_driven_by_game && game().is_some_and(is_game_stopped)
    })
}

/// Returns `true` if the game stands still. A pause works at once, and its end from the next frame on.
pub(crate) fn is_game_stopped(game: &Time<Virtual>) -> bool {
    game.is_paused() || game.was_paused() || game.relative_speed_f64() == 0.0
}

/// Returns `true` if the clock of this key and age exists, and nothing stops it in a run by now.
pub(crate) fn is_running(world: &World, clock: (ClockKey, Age), scope: Scope) -> bool {
    let time = world.get_resource::<ClockTable>().and_then(|table| {
        let game = || world.get_resource();
        read_running(table, clock, scope, |entity| world.get(entity), game)
    });
    time.is_some()
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
/// the game clock. A clock on an entity comes before the one that `OnClock` names. A modifier of a clock is on
/// the parent of that clock.
pub(crate) fn clock_of(
    world: &World,
    entity: EntityRef,
    owner: Entity,
    chosen: Option<ClockId>,
) -> ClockId {
    clock_besides(world, entity, owner, chosen, None)
}

/// Chooses the clock of a timer or a callback as if there were none on the entity `without`.
pub(crate) fn clock_besides(
    world: &World,
    entity: EntityRef,
    owner: Entity,
    chosen: Option<ClockId>,
    without: Option<Entity>,
) -> ClockId {
    let table = world.get_resource::<ClockTable>();
    let own = |entity: EntityRef| {
        let has_clock = entity.contains::<Clock>() && without != Some(entity.id());
        clock_on(entity.id(), entity.get(), has_clock)
    };
    let clock_on = |entity: EntityRef| {
        let modified = || {
            let clock = entity.get::<SpeedModifier>()?.clock();
            let parent = table?.parent_of(clock);
            // A clock that comes at the next reading is on this one.
            parent.or_else(|| own(world.get_entity(clock).ok()?))
        };
        own(entity).or_else(modified)
    };
    let clock = chosen.or_else(|| clock_on(entity));
    let clock_on_owner = || clock_on(world.get_entity(owner).ok()?);
    clock.or_else(clock_on_owner).unwrap_or_default()
}

/// Returns the clock of everything on an entity, if the entity decides it.
pub(crate) fn clock_on(entity: Entity, on: Option<&OnClock>, has_clock: bool) -> Option<ClockId> {
    let itself = has_clock.then_some(ClockId::Own(entity));
    itself.or_else(|| on.map(|on| on.0))
}
