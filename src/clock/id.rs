//! The names of clocks, and the errors about them.

use alloc::vec::Vec;
use core::fmt;

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};

/// Names a clock of a world: a built-in one, or an entity with a [`Clock`](crate::Clock).
///
/// # Examples
///
/// ```
/// use bevy_due::{ClockId, Timer};
///
/// // Runs even while the game is paused.
/// let autosave = Timer::every(300.0).on(ClockId::Real);
/// assert_eq!(autosave.clock(), Some(ClockId::Real));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "bevy_reflect",
    derive(Reflect),
    type_path = "bevy_due",
    reflect(Clone, Debug, Default, PartialEq, Hash)
)]
#[cfg_attr(feature = "serialize", derive(serde::Serialize, serde::Deserialize))]
pub enum ClockId {
    /// Real time: Bevy's `Time<Real>`.
    Real,
    /// Game time, the default: Bevy's `Time<Virtual>`.
    #[default]
    Virtual,
    /// One second per frame, even while the game is paused.
    Frames,
    /// The time of the fixed schedule: Bevy's `Time<Fixed>`. Its timers fire in
    /// [`FixedPreUpdate`](bevy_app::FixedPreUpdate).
    Fixed,
    /// The clock on this entity.
    Own(Entity),
}

impl MapEntities for ClockId {
    fn map_entities<M: EntityMapper>(&mut self, mapper: &mut M) {
        if let Self::Own(clock) = self {
            *clock = mapper.get_mapped(*clock);
        }
    }
}

impl From<Entity> for ClockId {
    fn from(clock: Entity) -> Self {
        Self::Own(clock)
    }
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("real"),
            Self::Virtual => f.write_str("virtual"),
            Self::Frames => f.write_str("frames"),
            Self::Fixed => f.write_str("fixed"),
            Self::Own(clock) => write!(f, "{clock}"),
        }
    }
}

/// The error for a clock that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchClock(pub ClockId);

impl fmt::Display for NoSuchClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ClockId::Own(entity) => {
                write!(
                    f,
                    "no clock on entity {entity}: insert a `Clock` there first"
                )
            }
            built_in => write!(f, "no {built_in} clock: the app has no `DuePlugin`"),
        }
    }
}

impl core::error::Error for NoSuchClock {}

/// The error for a clock that can't be the parent of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidParent {
    /// The parent does not exist.
    NoSuchClock(NoSuchClock),
    /// The parent is the clock itself or one of its descendants. These are the clocks of the
    /// cycle, each followed by its parent.
    Cycle(Vec<Entity>),
    /// The clock is a built-in one. Bevy's `Time` drives it.
    BuiltIn(ClockId),
}

impl fmt::Display for InvalidParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchClock(error) => error.fmt(f),
            Self::Cycle(clocks) => {
                f.write_str("a clock can't drive itself: ")?;
                let parents = clocks.iter().skip(1).chain(clocks.first());
                for (nth, (clock, parent)) in clocks.iter().zip(parents).enumerate() {
                    match nth {
                        0 => write!(f, "{clock} would run on {parent}")?,
                        _ => write!(f, ", which runs on {parent}")?,
                    }
                }
                Ok(())
            }
            Self::BuiltIn(clock) => write!(
                f,
                "the parent of the {clock} clock is fixed: spawn a `Clock` of your own"
            ),
        }
    }
}

impl core::error::Error for InvalidParent {}

impl From<NoSuchClock> for InvalidParent {
    fn from(error: NoSuchClock) -> Self {
        Self::NoSuchClock(error)
    }
}
