//! Prints the checksum of the scripted world of `tests/determinism.rs`, on one thread and on many,
//! with other systems in several orders. Exits with an error if one of them is not the expected one.
//!
//! ```text
//! cargo run --release --package bevy_due_proofs --bin checksum
//! ```

#[path = "../../../../tests/scripted_world/many_threads.rs"]
mod many_threads;
#[path = "../../../../tests/scripted_world/mod.rs"]
mod scripted_world;

use std::process::ExitCode;

use bevy_app::App;
use many_threads::on_many_threads;
use scripted_world::{Checksum, EXPECTED, TIMERS, on_one_thread, play};

fn main() -> ExitCode {
    println!("{TIMERS} timers, expected checksum {EXPECTED:#018x}");
    let mut all_equal = true;
    let mut run = |name: &str, executor: fn(&mut App), order: Option<u64>| {
        let record = play(executor, order);
        println!(
            "{:#018x} {name}: {} firings, {} cancellations, {} calls, {} deliveries",
            record.checksum.0,
            record.firings,
            record.cancellations,
            record.calls,
            record.deliveries
        );
        all_equal &= record.checksum == Checksum(EXPECTED);
    };
    run("on one thread", on_one_thread, None);
    run("on four threads", on_many_threads, None);
    for seed in 0..8 {
        let name = format!("on one thread, other systems in order {seed}");
        run(&name, on_one_thread, Some(seed));
        let name = format!("on four threads, other systems in order {seed}");
        run(&name, on_many_threads, Some(seed));
    }
    match all_equal {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
