//! The state of timers as values: what a save reads, and a load puts.

mod data;
mod fields;
mod put;
mod read;
mod state;
mod world_state;

pub(super) use data::{LifetimeData, TimerData};
pub(crate) use {
    put::put_state,
    read::StateReader,
    state::TimerState,
    world_state::{MAX_STEPS, WorldState},
};

use super::{ClockId, Timer};

impl Timer {
    /// Puts the timer on the default clock if it was to run on one of these.
    pub(crate) fn leave_clock(&mut self, is_missing: impl Fn(ClockId) -> bool) {
        if self.clock().is_some_and(is_missing) {
            self.options_mut().clock = None;
        }
    }
}
