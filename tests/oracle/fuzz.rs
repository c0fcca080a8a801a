//! The oracle as a target of libFuzzer: bytes choose a script. See `crates/fuzz/README.md`.

#![no_main]
#![allow(
    dead_code,
    unexpected_cfgs,
    reason = "these modules belong to the tests of the crate"
)]

#[path = "../support/mod.rs"]
mod support;

mod any;
mod entry;
mod game;
mod model;
mod op;
mod play;
mod print;
mod progress;
mod rules;
mod search;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| play::play_bytes(bytes));
