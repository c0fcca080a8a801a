//! Years of simulated time, exact to the nanosecond.
//!
//! Each part compares every firing with integer arithmetic in `u128`, and returns the number of
//! firings. A wrong firing panics.

mod fractions;
mod grid;
mod millennium;
mod sixty_hz;

use core::{num::NonZeroU32, time::Duration};

use bevy_app::App;
use bevy_due::DuePlugin;
use bevy_time::{Fixed, Time, TimePlugin, TimeUpdateStrategy, Virtual};

pub use fractions::fractions_of_nanoseconds;
pub use millennium::sparse_timers;
pub use sixty_hz::sixty_hertz_queue;

/// A day, in seconds.
pub const DAY: u64 = 24 * 3600;

/// A year of 365.25 days, in seconds.
pub const YEAR: u64 = 31_557_600;

/// Creates an app that never cuts a frame or a burst short.
fn app() -> App {
    let mut app = App::new();
    let plugin = DuePlugin {
        burst_limit: NonZeroU32::MAX,
        ..DuePlugin::default()
    };
    app.add_plugins((TimePlugin, plugin));
    app.world_mut()
        .resource_mut::<Time<Virtual>>()
        .set_max_delta(Duration::MAX);
    // A long frame should not run millions of fixed steps.
    app.insert_resource(Time::<Fixed>::from_duration(Duration::MAX));
    advance(&mut app, 0);
    app
}

/// Runs a frame of this many nanoseconds.
fn advance(app: &mut App, nanos: u64) {
    let by = Duration::from_nanos(nanos);
    app.insert_resource(TimeUpdateStrategy::ManualDuration(by));
    app.update();
}

/// SplitMix64, which gives the same numbers on every platform.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }
}
