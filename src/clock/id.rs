//! The names of clocks, and the errors about clocks.

use alloc::vec::Vec;
use core::fmt;

use bevy_ecs::{entity::MapEntities, prelude::*};
#[cfg(feature = "bevy_reflect")]
use bevy_reflect::{Reflect, std_traits::ReflectDefault};
use thiserror::Error;

use super::row::{VIRTUAL, built_in_id, built_in_key};

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
#[derive(MapEntities, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    Own(#[entities] Entity),
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

/// The error for a clock that does not exist, or for a change that a clock can't take.
#[derive(Error, Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClockError {
    /// There is no such clock.
    #[error(fmt = no_such_clock)]
    NoSuchClock(ClockId),
    /// The speed is negative, infinite or not a number.
    #[error("the speed of a clock must be finite and not negative, got {0}")]
    InvalidSpeed(f64),
    /// The new parent of a clock is the clock itself or one of its descendants. These are the clocks
    /// of the cycle, each followed by its parent.
    #[error(fmt = cycle)]
    Cycle(Vec<Entity>),
    /// A built-in clock can't get another parent. Bevy's `Time` drives it.
    #[error("the parent of the {0} clock is fixed: spawn a `Clock` of your own")]
    BuiltIn(ClockId),
    /// A clock can't be fast-forwarded from a timer handler.
    #[error("can't fast-forward from a timer handler: call it from a system or between frames")]
    Running,
}

fn no_such_clock(clock: &ClockId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match clock {
        ClockId::Own(clock) => write!(
            f,
            "no clock on entity {clock}: insert a `Clock` there first"
        ),
        built_in => write!(f, "no {built_in} clock: the app has no `DuePlugin`"),
    }
}

fn cycle(clocks: &[Entity], f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// A [`ClockId`] in eight bytes: the bits of an entity, or the key of a built-in clock in the high half.
/// The low half of the bits of an entity is never zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedClockId(u64);

impl From<ClockId> for PackedClockId {
    fn from(clock: ClockId) -> Self {
        Self(match clock {
            ClockId::Own(entity) => entity.to_bits(),
            built_in => u64::from(built_in_key(built_in).unwrap_or(VIRTUAL)) << 32,
        })
    }
}

impl From<PackedClockId> for ClockId {
    fn from(PackedClockId(bits): PackedClockId) -> Self {
        match bits as u32 {
            0 => built_in_id((bits >> 32) as u32).unwrap_or_default(),
            _ => Self::Own(Entity::from_bits(bits)),
        }
    }
}

impl fmt::Debug for PackedClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ClockId::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use bevy_ecs::world::World;

    use super::*;

    #[test]
    fn a_packed_clock_id_is_the_same_clock() {
        let mut world = World::new();
        let spawned = (0..100).map(|_| world.spawn_empty().id());
        let first = (0..5).map(|index| Entity::from_raw_u32(index).expect("it is a valid index"));
        let entities = first.chain(spawned).map(ClockId::Own);
        let built_in = [
            ClockId::Real,
            ClockId::Virtual,
            ClockId::Frames,
            ClockId::Fixed,
        ];
        for clock in entities.chain(built_in) {
            assert_eq!(ClockId::from(PackedClockId::from(clock)), clock);
        }
    }
}
