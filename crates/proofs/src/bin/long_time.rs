//! Simulates years and checks every deadline in exact arithmetic. A wrong deadline ends the program
//! with a panic.
//!
//! ```text
//! cargo run --release --package bevy_due_proofs --bin long_time
//! ```
//!
//! `-- quick` runs what the tests run: a day, and ten years of sparse timers.

use std::{env::args, time::Instant};

use bevy_due_proofs::long_time::{
    DAY, YEAR, fractions_of_nanoseconds, sixty_hertz_queue, sparse_timers,
};

fn main() {
    let is_quick = args().nth(1).is_some_and(|arg| arg == "quick");
    let (years, days, seconds) = match is_quick {
        true => (10, 1, DAY),
        false => (1000, 30, 10 * YEAR),
    };
    report(
        &format!("{years} years of sparse timers, by fast-forward"),
        || sparse_timers(years),
    );
    report(
        &format!("{days} days on clocks of odd speeds, by frames"),
        || fractions_of_nanoseconds(days * DAY),
    );
    let span = seconds / DAY;
    report(
        &format!("{span} days of a timer of 60 Hz, on the queue alone"),
        || sixty_hertz_queue(seconds),
    );
}

fn report(name: &str, run: impl FnOnce() -> u64) {
    let start = Instant::now();
    let firings = run();
    println!("{name}: {firings} exact firings, {:.1?}", start.elapsed());
}
