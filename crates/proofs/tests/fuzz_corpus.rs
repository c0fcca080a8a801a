//! The inputs that fuzzing has found, run without a fuzzer. See `crates/fuzz/README.md`.

#![allow(missing_docs, reason = "test code")]

use std::{env, fs, path::Path};

use bevy_due_proofs::fuzz::{TARGETS, Target, save, saved_worlds};

/// Runs all inputs of a target.
fn run_corpus(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|target| target.0 == name).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/corpus")
        .join(name);
    let mut inputs: Vec<_> = fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(inputs.len() > 10, "a corpus of {} inputs", inputs.len());
    for input in inputs {
        run_input(name, target, &input);
    }
}

fn run_input(name: &str, target: Target, input: &Path) {
    let bytes = fs::read(input).unwrap();
    // Shown if the target panics.
    println!("{name}: {}", input.display());
    target(&bytes);
}

#[test]
fn the_queue_holds_for_the_corpus() {
    run_corpus("queue");
}

#[test]
fn loading_holds_for_the_corpus() {
    run_corpus("load");
}

#[test]
fn saved_worlds_hold_for_the_corpus() {
    run_corpus("save");
}

/// Flips bits in saved worlds, and cuts them off, at every place.
#[test]
fn saved_worlds_hold_with_any_byte_broken() {
    for world in saved_worlds() {
        save(&world);
        for place in 1..world.len() {
            for flip in [1, 1 << 4, 1 << 7] {
                let mut broken = world.clone();
                broken[place] ^= flip;
                save(&broken);
            }
            save(&world[..place]);
        }
    }
}

/// Runs the file that `FUZZ_INPUT` names, if any.
#[test]
fn a_given_input_holds() {
    if let Some(input) = env::var_os("FUZZ_INPUT") {
        for (name, target) in TARGETS {
            if Path::new(&input).iter().any(|part| part == name) {
                run_input(name, target, Path::new(&input));
            }
        }
    }
}

#[test]
fn each_target_has_a_corpus_and_a_file() {
    for (name, _) in TARGETS {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        assert!(fuzz.join("corpus").join(name).is_dir(), "{name}");
        assert!(
            fuzz.join("fuzz_targets")
                .join(name)
                .with_extension("rs")
                .is_file(),
            "{name}"
        );
    }
}
