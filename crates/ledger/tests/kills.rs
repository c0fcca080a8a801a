//! The game, while its processes are killed and stopped.
#![cfg(unix)]

use std::process::Command;

/// Plays with arguments such as `"--kill --moves 1000"`.
fn play(arguments: &str) {
    let mut game = Command::new(env!("CARGO_BIN_EXE_ledger"));
    let output = game.args(arguments.split(' ')).output();
    let output = output.expect("the game starts");
    let lines = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{lines}{errors}");
    assert!(output.status.success(), "{}", output.status);
    let sums = lines.lines().last().expect("a line");
    for something in ["moves", "letters", "requests", "firings", "kills", "stops"] {
        let none = format!(" 0 {something}");
        assert!(sums.contains(something), "{sums}");
        assert!(!format!(" {sums}").contains(&none), "{sums}");
    }
}

#[test]
fn nothing_is_lost_over_zenoh() {
    play("--kill --stop --moves 10000 --seconds 20");
}

#[test]
fn nothing_is_lost_over_nats() {
    play("--kill --stop --moves 2000 --seconds 10 --nats");
}
