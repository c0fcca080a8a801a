//! Runs the `game_loop` example as a user would.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// `cargo test` builds the examples next to the tests.
fn game_loop(arguments: &[&str]) -> Output {
    let test = env::current_exe().unwrap();
    let target = test.parent().and_then(Path::parent).unwrap();
    let example = target
        .join("examples/game_loop")
        .with_extension(env::consts::EXE_EXTENSION);
    Command::new(&example)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| {
            let example = example.display();
            panic!("{example}: {error}; `cargo test` builds it, `cargo test --test` does not")
        })
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

/// Runs an encounter of one ability with these numbers and returns the error it prints.
fn error_message(case: &str, numbers: &str) -> String {
    let file: PathBuf = env::temp_dir().join(format!("bevy_due_{}_{case}.ron", std::process::id()));
    fs::write(
        &file,
        format!("(\n  boss: \"B\",\n  abilities: [\n    (name: \"A\", {numbers}, effect: Hit(1)),\n  ],\n)\n"),
    )
    .unwrap();
    let output = game_loop(&["--fast", "--encounter", file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(1), "{case} should be rejected");
    assert!(output.stdout.is_empty(), "no fight should start");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    let place = message.strip_prefix(file.to_str().unwrap());
    place.expect("should name the file").trim().to_owned()
}

#[test]
fn a_fast_fight_is_the_same_on_every_run() {
    let first = game_loop(&["--fast"]);
    assert!(first.status.success());
    let log = stdout(&first);
    for line in [
        "Cleave hits for 20",
        "The bomb kills 3 minions",
        "The cast is interrupted: Cancelled",
        "The hero slows down time",
        "The shield takes another 0.5 s",
        "The poison has worn off",
        "Gorvath is enraged",
        "The bell ends the fight",
    ] {
        assert!(log.contains(line), "{line:?} should be in\n{log}");
    }
    assert_eq!(log.matches("Three minions join").count(), 3);
    assert_eq!(
        log.lines().last(),
        Some("frames 601, fired 53, cancelled 9, still armed 5")
    );
    for _ in 0..3 {
        assert_eq!(stdout(&game_loop(&["--fast"])), log);
    }
}

#[test]
fn every_bundled_encounter_runs_to_the_end() {
    let encounters = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/encounters");
    for file in fs::read_dir(encounters).unwrap() {
        let file = file.unwrap().path();
        let output = game_loop(&["--fast", "--encounter", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", file.display());
        assert!(stdout(&output).contains("frames "));
    }
}

#[test]
fn a_bad_encounter_is_rejected_with_its_position_and_value() {
    assert_eq!(
        error_message("negative_delay", "first: -1.5, every: 1"),
        ":4:24: a number of seconds must be finite and not negative, got -1.5 s, at `-1.5`"
    );
    assert_eq!(
        error_message("zero_interval", "first: 1, every: 0.0"),
        ":4:34: an interval must be longer than zero, got 0 s, at `0.0`"
    );
    assert_eq!(
        error_message("zero_times", "first: 1, every: 1, times: 0"),
        ":4:44: Expected a nonzero u32 but found the unsigned integer `0` instead, at `0`"
    );
    assert_eq!(
        error_message("malformed", "first: soon, every: 1"),
        ":4:23: Expected float, at `soon`"
    );
}

#[test]
fn a_missing_encounter_is_named_in_the_error() {
    let output = game_loop(&["--encounter", "no/such/encounter.ron"]);
    assert_eq!(output.status.code(), Some(1));
    let message = str::from_utf8(&output.stderr).unwrap();
    assert!(message.starts_with("no/such/encounter.ron: "), "{message}");
}
