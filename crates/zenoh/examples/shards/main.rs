//! Shards of a world that can be killed at any moment, and lose nothing.
//!
//! ```sh
//! cargo run -p bevy_due_zenoh --example shards -- --shards 3 --players 500 --kill
//! ```
//!
//! Each shard is a process with a journal and one zone. The players are clients on TCP, which all run in the
//! first process. They walk between the zones with their poison, their cooldowns, their open requests and
//! their gold, and send each other letters with gold and curses. `--kill` kills a shard every second or so
//! and starts it again. So can you, with `kill -9 <pid>` or the key of its number.
//!
//! After `--seconds 60`, everything comes to rest and all processes end. Then the journals are read, and one
//! line tells whether anything was lost or has happened twice. If so, the exit status is 1.
//!
//! | | |
//! |---|---|
//! | a player | a durable entity: a `StableKey`, timers, a `Cooldown`, and the declared components `Ledger` and `Health` |
//! | a walk | `move_to` |
//! | a letter | `mail`: exactly once, in order |
//! | a question | `ask_world` to the sage of a zone. It completes exactly once: with an answer or with `NoAnswer` |
//! | what a client reads | sent by `after_commit` only, and numbered by the ledger. A number that comes twice, or falls, is an error |
//! | the reckoning | each journal has its own players, no two have the same, and the ledgers agree with each other |
//!
//! In the order of reading: `parent` runs everything, `process` is a shard as the parent sees it, `shard` is
//! the process itself, `connection` reads the lines of clients, `player` and `sage` hold the game, `ledger` is
//! what a player writes down, `crowd` and `client` are the clients, `audit` reads the journals at the end.

#![allow(missing_docs, unreachable_pub, reason = "a program")]

mod audit;
mod client;
mod connection;
mod crowd;
mod deed;
mod keys;
mod ledger;
mod options;
mod parent;
mod player;
mod process;
mod report;
mod sage;
mod screen;
mod shard;
mod view;

use std::process::ExitCode;

use bevy_ecs::error::BevyError;
use options::Options;

fn main() -> Result<ExitCode, BevyError> {
    match Options::from_command_line()? {
        Options::Parent(settings) => parent::run(&settings),
        Options::Shard(settings) => shard::run(&settings).map(|()| ExitCode::SUCCESS),
    }
}
