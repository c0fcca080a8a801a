//! Bevy's times, as the sources of the built-in clocks.

use core::time::Duration;

use bevy_ecs::{prelude::*, system::SystemParam};
use bevy_time::{Fixed, Real, Time, Virtual};

use super::{readings::TimeSource, row::BevyTime};

/// Bevy's clocks.
#[derive(SystemParam)]
pub(super) struct Times<'w> {
    real: Res<'w, Time<Real>>,
    virtual_time: Res<'w, Time<Virtual>>,
    fixed: Res<'w, Time<Fixed>>,
}

impl TimeSource for Times<'_> {
    fn elapsed(&self, time: BevyTime) -> Duration {
        match time {
            BevyTime::Real => self.real.elapsed(),
            BevyTime::Virtual => self.virtual_time.elapsed(),
            BevyTime::Fixed => self.fixed.elapsed(),
        }
    }

    fn was_paused(&self) -> bool {
        self.virtual_time.was_paused()
    }
}

impl TimeSource for World {
    fn elapsed(&self, time: BevyTime) -> Duration {
        fn elapsed<T: Default + Send + Sync + 'static>(world: &World) -> Duration {
            let time = world.get_resource::<Time<T>>();
            time.map_or(Duration::ZERO, Time::elapsed)
        }
        match time {
            BevyTime::Real => elapsed::<Real>(self),
            BevyTime::Virtual => elapsed::<Virtual>(self),
            BevyTime::Fixed => elapsed::<Fixed>(self),
        }
    }

    fn was_paused(&self) -> bool {
        let time = self.get_resource::<Time<Virtual>>();
        time.is_some_and(Time::was_paused)
    }
}
