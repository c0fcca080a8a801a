//! An oracle of the whole crate: a model that is slow and obviously right plays the same operations
//! as a real app, and both must show the same after each of them.
//!
//! `fuzz.rs` is the root for libFuzzer, which chooses scripts by the code that they reach.

#![cfg(feature = "serialize")]

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "it needs only some of these helpers")]
mod support;

mod any;
mod entry;
#[rustfmt::skip]
mod found;
mod game;
mod model;
mod op;
mod play;
mod print;
mod progress;
mod rules;
mod search;

use std::{fs, path::Path};

use play::play_bytes;
use search::search;

#[test]
fn short_times_are_played_like_the_model() {
    search("short_times", rules::TINY);
}

#[test]
fn timers_without_observers_are_played_like_the_model() {
    search("without_observers", rules::BATCHES);
}

#[test]
fn times_of_a_game_are_played_like_the_model() {
    search("times_of_a_game", rules::REAL);
}

#[test]
fn the_end_of_time_is_played_like_the_model() {
    search("the_end_of_time", rules::LAST);
}

#[test]
fn exact_frames_are_played_like_the_model() {
    search("exact_frames", rules::EXACT);
}

/// See `crates/fuzz/README.md`.
#[test]
fn the_scripts_of_the_fuzzer_are_played_like_the_model() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/fuzz/corpus/oracle");
    let mut inputs: Vec<_> = fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(inputs.len() > 10, "a corpus of {} inputs", inputs.len());
    for input in inputs {
        play_bytes(&fs::read(input).unwrap());
    }
}
