//! The state of timers as data: what a save writes and a load reads.

#[cfg(feature = "serialize")]
mod capture;
#[cfg(feature = "serialize")]
mod data;
pub(super) mod sheet;
mod state;
#[cfg(feature = "serialize")]
mod world_state;
mod written;

#[cfg(feature = "serialize")]
pub(crate) use capture::Capture;
#[cfg(feature = "serialize")]
pub(super) use data::{LifetimeData, TimerData};
pub(super) use sheet::Written;
pub(super) use state::Loaded;
pub(crate) use state::TimerState;
#[cfg(feature = "serialize")]
pub(crate) use world_state::{MAX_STEPS, SavedWorld, load_world_state};
pub(crate) use written::forget_written;
#[cfg(feature = "serialize")]
pub(crate) use written::write_timer_states;
