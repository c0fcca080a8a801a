//! The fuzz targets: functions that must hold for any bytes.
//!
//! `crates/fuzz/run` lets libFuzzer search for bytes that reach new code. `tests/fuzz_corpus.rs` runs the
//! bytes that it has found so far.

mod app;
mod bytes;
mod load;
mod queue;
mod save;
mod timers;

pub use load::load;
pub use queue::queue;
pub use save::{save, saved_worlds};
pub use timers::timers;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets, by the names of their files in `fuzz/`.
pub const TARGETS: [(&str, Target); 4] = [
    ("load", load),
    ("queue", queue),
    ("save", save),
    ("timers", timers),
];
