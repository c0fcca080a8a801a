//! The sources from which a cooldown reads the time.

use core::time::Duration;

use bevy_ecs::world::World;
use bevy_time::{Time, Virtual};

use crate::clock::{Clock, ClockId, ClockTable, Clocks};

/// The source of the current time.
pub trait Now {
    #[doc(hidden)]
    fn now(&self) -> Duration;
}

impl Now for Clock {
    fn now(&self) -> Duration {
        self.now()
    }
}

/// The game time.
impl Now for Clocks<'_> {
    fn now(&self) -> Duration {
        let game_clock = self.get(ClockId::Virtual);
        game_clock.map_or(Duration::ZERO, |clock| clock.now())
    }
}

/// The game time.
impl Now for World {
    fn now(&self) -> Duration {
        game_time(self).unwrap_or_else(|| {
            let time = self.get_resource::<Time<Virtual>>();
            time.map_or(Duration::ZERO, Time::elapsed)
        })
    }
}

fn game_time(world: &World) -> Option<Duration> {
    let table = world.get_resource::<ClockTable>()?;
    let (_, reading) = table.read(ClockId::Virtual, world).ok()?;
    Some(reading.shown(reading.now))
}
