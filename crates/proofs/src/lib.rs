//! Tests of `bevy_due` that need heavy dependencies or long runs.
//!
//! The package is a member of the workspace, but not a default one. A plain `cargo test` leaves it out.

pub mod fuzz;
pub mod long_time;
