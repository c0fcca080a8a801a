//! Finding clocks.

use core::fmt;

use bevy_ecs::{
    change_detection::Mut,
    entity::Entity,
    entity_disabling::Disabled,
    query::Allow,
    system::{Query, Res, SystemParam},
};

use super::Timelines;
use crate::clock::{Clock, ClockId, UnknownClock};

/// The clocks of a world: those that are there from the start, and your own.
///
/// A system that takes this can't take a query of [`Clock`] as well, as of any two parameters that
/// could give out the same component.
///
/// # Examples
///
/// ```
/// use bevy_due::prelude::*;
/// use bevy_ecs::prelude::*;
///
/// fn skip_a_day(mut clocks: Clocks) -> Result {
///     let day = core::time::Duration::from_secs(24 * 3600);
///     clocks.get_mut(ClockId::Virtual)?.advance_by(day);
///     Ok(())
/// }
/// # bevy_ecs::schedule::Schedule::default().add_systems(skip_a_day);
/// ```
#[derive(SystemParam)]
pub struct Clocks<'w, 's> {
    timelines: Res<'w, Timelines>,
    clocks: Query<'w, 's, &'static mut Clock, Allow<Disabled>>,
}

impl Clocks<'_, '_> {
    /// Returns a clock.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn get(&self, clock: impl Into<ClockId>) -> Result<&Clock, UnknownClock> {
        let clock = clock.into();
        let entity = self.entity(clock)?;
        self.clocks.get(entity).map_err(|_| UnknownClock(clock))
    }

    /// Returns a clock to set.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn get_mut(&mut self, clock: impl Into<ClockId>) -> Result<Mut<'_, Clock>, UnknownClock> {
        let clock = clock.into();
        let entity = self.entity(clock)?;
        self.clocks.get_mut(entity).map_err(|_| UnknownClock(clock))
    }

    /// Returns the entity of a clock.
    ///
    /// # Errors
    ///
    /// [`UnknownClock`] if there is no such clock.
    pub fn entity(&self, clock: impl Into<ClockId>) -> Result<Entity, UnknownClock> {
        let (_, line) = self.timelines.find(clock.into())?;
        Ok(line.clock)
    }
}

impl fmt::Debug for Clocks<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.clocks).finish()
    }
}
