//! What the clocks of a zone show.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use bevy_due::moving::TimePassed;
use bevy_ecs::world::World;
use bevy_time::{Fixed, Real, Time, Virtual};
use serde::{Deserialize, Serialize};

/// The readings of the built-in clocks of a zone, since the zone was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Readings {
    real: Duration,
    game: Duration,
    fixed: Duration,
    frames: u64,
    /// The wall clock, in milliseconds since 1970.
    wall: u64,
}

impl Readings {
    /// Reads the clocks of a world, which has had this number of frames.
    pub(crate) fn of(world: &World, frames: u64) -> Self {
        let [real, game, fixed] = [
            world.get_resource::<Time<Real>>().map(Time::elapsed),
            world.get_resource::<Time<Virtual>>().map(Time::elapsed),
            world.get_resource::<Time<Fixed>>().map(Time::elapsed),
        ]
        .map(Option::unwrap_or_default);
        Self {
            real,
            game,
            fixed,
            frames,
            wall: wall_clock(),
        }
    }

    /// Returns these readings after the zone was down. Game time stands still meanwhile; real time does not.
    pub(crate) fn after_a_stop(self) -> Self {
        let wall = wall_clock();
        let before = match self.wall {
            // The zone is new.
            0 => wall,
            before => before,
        };
        let down = Duration::from_millis(wall.saturating_sub(before));
        Self {
            real: self.real + down,
            wall,
            ..self
        }
    }

    /// Returns what the clocks of the zone show, if they showed `self` when this world showed `start`.
    pub(crate) fn advanced(self, start: Self, now: Self) -> Self {
        Self {
            real: self.real + now.real.saturating_sub(start.real),
            game: self.game + now.game.saturating_sub(start.game),
            fixed: self.fixed + now.fixed.saturating_sub(start.fixed),
            frames: self.frames + now.frames.saturating_sub(start.frames),
            wall: now.wall,
        }
    }

    /// Returns the real time since the zone was created, with the time while it was down.
    pub(crate) fn real(&self) -> Duration {
        self.real
    }

    /// Returns the time that has passed on each clock.
    pub(crate) fn since(&self, earlier: &Self) -> TimePassed {
        let frames = self.frames.saturating_sub(earlier.frames);
        TimePassed {
            real: self.real.saturating_sub(earlier.real),
            game: self.game.saturating_sub(earlier.game),
            fixed: self.fixed.saturating_sub(earlier.fixed),
            frames: u32::try_from(frames).unwrap_or(u32::MAX),
        }
    }

    /// Returns `true` if a second of wall time has passed.
    pub(crate) fn is_old(&self, now: &Self) -> bool {
        now.wall.saturating_sub(self.wall) >= 1000
    }
}

/// Returns the milliseconds since 1970.
fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
