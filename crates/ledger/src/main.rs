//! A game whose processes are killed and stopped at any moment, and lose nothing.
//!
//! ```sh
//! cargo run --release -p bevy_due_ledger -- --shards 3 --kill --stop --seconds 60
//! ```
//!
//! Each shard is a process with a file and one zone. The players move between the zones with their hunger, their
//! poison, their cooldowns, their open requests and their gold, and send each other letters with gold and poison.
//! At the end nobody begins anything new, and everything comes to rest. Then the parent compares the books of all
//! players, as the processes have them and as their files have them. The exit status is 1 if anything was lost or
//! has happened twice.
//!
//! | | |
//! |---|---|
//! | a player | a durable entity: a `StableKey`, timers, a `Cooldown`, and declared components |
//! | a letter | `mail`: exactly once, in order |
//! | a question | `ask_world` to the sage of a zone. It completes exactly once: with an answer or with `NoAnswer` |
//! | what clients see | lines that `after_commit` prints: never twice, and all of it is in the files |
//!
//! In the order of reading: `options` is the command line, `books` is what a player writes down, `player` is the
//! game, `shard` is a process, `member` and `cluster` are the parent, which starts, kills and stops processes,
//! `disk` is a bad disk, `audit` compares everything.

mod audit;
mod books;
mod cluster;
mod disk;
mod member;
mod options;
mod player;
mod shard;

use std::{env, process::ExitCode};

use bevy_ecs::error::BevyError;

fn main() -> Result<ExitCode, BevyError> {
    let arguments: Vec<_> = env::args().collect();
    if let [_, shard, settings] = &*arguments
        && shard == "shard"
    {
        if let Err(error) = shard::run(&shard::read_word(settings)?) {
            eprintln!("{}", error.to_string().trim_end());
            return Ok(ExitCode::FAILURE);
        }
        return Ok(ExitCode::SUCCESS);
    }
    cluster::run(&options::Options::from_command_line()?)
}
