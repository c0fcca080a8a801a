//! The time on the game clock, at hand for many timers that are inserted together.

use core::time::Duration;

use bevy_ecs::world::World;

use super::{
    readings::TimeSource,
    row::{Age, BevyTime, ClockKey},
    shared::ClockTable,
    table::VIRTUAL,
};

/// The time on the game clock, kept until a clock changes or Bevy's time advances.
#[derive(Debug)]
pub(crate) struct GameTime {
    table: ClockTable,
    /// The number of changes and Bevy's time at the latest reading.
    read_at: Option<(u64, Duration)>,
    now: u64,
}

impl GameTime {
    /// The key and the age of the game clock.
    pub(crate) const CLOCK: (ClockKey, Age) = (VIRTUAL, VIRTUAL as Age);

    pub(crate) fn new(table: &ClockTable) -> Self {
        Self {
            table: table.clone(),
            read_at: None,
            now: 0,
        }
    }

    /// Returns the time on the game clock at a moment at which Bevy's clock shows `elapsed`.
    pub(crate) fn now(&mut self, BevyElapsed(elapsed): BevyElapsed) -> u64 {
        let read_at = Some((self.table.changes(), elapsed));
        if self.read_at != read_at {
            let state = self.table.live(VIRTUAL, &BevyElapsed(elapsed));
            // The game clock always exists.
            self.now = state.map_or(0, |state| state.now);
            self.read_at = read_at;
        }
        self.now
    }
}

/// The time on Bevy's game clock.
pub(crate) struct BevyElapsed(Duration);

impl BevyElapsed {
    pub(crate) fn of(world: &World) -> Self {
        Self(TimeSource::elapsed(world, BevyTime::Virtual))
    }
}

impl TimeSource for BevyElapsed {
    fn elapsed(&self, time: BevyTime) -> Duration {
        debug_assert_eq!(time, BevyTime::Virtual, "only game time is known");
        self.0
    }

    fn was_paused(&self) -> bool {
        false
    }
}
