//! The fuzz targets: functions that must hold for any bytes. The oracle in `tests/oracle` is another one.
//!
//! `crates/fuzz/run` lets libFuzzer search for bytes that reach new code. `tests/fuzz_corpus.rs` runs the
//! bytes that it has found so far.

mod app;
mod bytes;
mod load;
mod queue;
mod save;

pub use load::load;
pub use queue::queue;
pub use save::{save, saved_worlds};

/// A fuzz target.
pub type Target = fn(&[u8]);

/// The targets, by the names of their files in `fuzz_targets/`.
pub const TARGETS: [(&str, Target); 3] = [("load", load), ("queue", queue), ("save", save)];
