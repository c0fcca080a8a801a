//! Finding clocks.

use core::fmt;

use bevy_ecs::{
    change_detection::Mut,
    entity::Entity,
    entity_disabling::Disabled,
    query::{Allow, Has},
    system::{Query, Res, SystemParam},
};

use super::{Timelines, Times};
use crate::clock::{Clock, ClockId, UnknownClock};

/// The clocks of a world to read: those that are there from the start, and your own.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
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
    timelines: Res<'w, Timelines>,
    clocks: Query<'w, 's, (&'static Clock, Has<Disabled>)>,
    times: Times<'w>,
}

/// The clocks of a world to set. A system that takes this can't take [`Clocks`],
/// [`ArmedTimers`](crate::ArmedTimers) or a query of [`Clock`] as well.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
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
    timelines: Res<'w, Timelines>,
    clocks: Query<'w, 's, &'static mut Clock, Allow<Disabled>>,
}

impl Clocks<'_, '_> {
    /// Returns a clock as it is at this moment: what Bevy's `Time` has gone on since the last run is
    /// not in the component yet.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn get(&self, clock: impl Into<ClockId>) -> Result<Clock, UnknownClock> {
        let clock = clock.into();
        let (key, _) = self.timelines.find(clock)?;
        let find = |clock| self.clocks.get(clock).ok().map(|(clock, is)| (*clock, is));
        let live = self
            .timelines
            .live(key, &find, &|source| self.times.elapsed(source));
        live.ok_or(UnknownClock(clock))
    }

    /// Returns the entity of a clock.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn entity(&self, clock: impl Into<ClockId>) -> Result<Entity, UnknownClock> {
        self.timelines.entity(clock.into())
    }
}

impl ClocksMut<'_, '_> {
    /// Returns a clock to set.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn get_mut(&mut self, clock: impl Into<ClockId>) -> Result<Mut<'_, Clock>, UnknownClock> {
        let clock = clock.into();
        let entity = self.timelines.entity(clock)?;
        self.clocks.get_mut(entity).map_err(|_| UnknownClock(clock))
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
