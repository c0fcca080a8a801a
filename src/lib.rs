//! Timers for Bevy that cost what is due, not what exists.

#![no_std]
#![warn(clippy::unwrap_used)]

#[cfg(feature = "std")]
extern crate std;

extern crate alloc;

pub mod queue;
