//! A [`ClockId`] in eight bytes.

use core::fmt;

use bevy_ecs::entity::Entity;

use super::ClockId;

/// A [`ClockId`] in eight bytes: the bits of an entity, or a number that no entity has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedClockId(u64);

/// The low half of the bits of an entity is never zero.
const fn built_in(number: u64) -> u64 {
    number << 32
}

const REAL: u64 = built_in(0);
const VIRTUAL: u64 = built_in(1);
const FRAMES: u64 = built_in(2);
const FIXED: u64 = built_in(3);

impl From<ClockId> for PackedClockId {
    fn from(clock: ClockId) -> Self {
        Self(match clock {
            ClockId::Real => REAL,
            ClockId::Virtual => VIRTUAL,
            ClockId::Frames => FRAMES,
            ClockId::Fixed => FIXED,
            ClockId::Own(entity) => entity.to_bits(),
        })
    }
}

impl From<PackedClockId> for ClockId {
    fn from(PackedClockId(bits): PackedClockId) -> Self {
        match bits {
            REAL => Self::Real,
            VIRTUAL => Self::Virtual,
            FRAMES => Self::Frames,
            FIXED => Self::Fixed,
            bits => Self::Own(Entity::from_bits(bits)),
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
