//! The constants with which a script is played.

use core::{num::NonZeroU32, time::Duration};

use bevy_app::App;
use bevy_due::DuePlugin;

use crate::support::unobserved_app_with;

/// The last time that a clock can show, counted from its start: 511 years, in nanoseconds.
pub(crate) const END: u64 = u64::MAX - (1 << 61) - 1;

/// The constants with which a script is played.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The nanoseconds of a unit.
    pub(crate) unit: u64,
    pub(crate) burst_limit: u32,
    pub(crate) seed: u64,
    /// The units of a fixed step, or zero for none.
    pub(crate) step: u64,
    /// The nanoseconds by which the built-in clocks are ahead at the start.
    pub(crate) ahead: u64,
    /// Whether there are observers of firings. Without them, timers fire in batches.
    pub(crate) is_observed: bool,
    pub(crate) exact_frames: bool,
}

pub(crate) const ALL: [Rules; 5] = [TINY, BATCHES, REAL, LAST, EXACT];

/// Short times, so that most deadlines are equal, and a low limit.
pub(crate) const TINY: Rules = Rules {
    unit: 1,
    burst_limit: 3,
    seed: 7,
    step: 13,
    ahead: 0,
    is_observed: true,
    exact_frames: false,
};

/// Frames that are played deadline by deadline.
pub(crate) const EXACT: Rules = Rules {
    exact_frames: true,
    ..TINY
};

/// No observers, so that timers fire in batches.
pub(crate) const BATCHES: Rules = Rules {
    is_observed: false,
    ..TINY
};

/// Times as in a game.
pub(crate) const REAL: Rules = Rules {
    unit: 1_666_667,
    burst_limit: 1000,
    seed: 0,
    step: 10,
    ahead: 0,
    is_observed: true,
    exact_frames: false,
};

/// Built-in clocks that soon reach the end of time.
pub(crate) const LAST: Rules = Rules {
    ahead: END - 300,
    step: 0,
    ..TINY
};

impl Rules {
    pub(crate) fn nanos(&self, units: u64) -> u64 {
        units.saturating_mul(self.unit)
    }

    pub(crate) fn span(&self, units: u64) -> Duration {
        Duration::from_nanos(self.nanos(units))
    }

    /// Returns an app with these constants.
    pub(crate) fn app(&self) -> App {
        unobserved_app_with(self.plugin())
    }

    fn plugin(&self) -> DuePlugin {
        DuePlugin {
            burst_limit: NonZeroU32::new(self.burst_limit).expect("a limit of at least one"),
            delay_seed: self.seed,
            exact_frames: self.exact_frames,
            ..DuePlugin::default()
        }
    }
}
