//! Kills processes again and again while entities move and send letters between them, and then counts.
//!
//! Three processes have a zone each, with a journal. 300 entities move between them, send each other gold, and
//! have periodic timers. This program starts itself as these processes, kills and stops them at random moments, and
//! reads their files in the end. Without an argument it makes 10,000 moves. `-- --full` makes 100,000.

#[cfg(unix)]
mod audit;
#[cfg(unix)]
mod game;
#[cfg(unix)]
mod kills;
#[cfg(unix)]
mod ledger;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod seen;
#[cfg(unix)]
mod shard;

#[cfg(unix)]
fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("shard") => shard::run(&arguments[1..]),
        Some("--full") => kills::run(&kills::FULL),
        _ => kills::run(&kills::QUICK),
    }
}

#[cfg(not(unix))]
fn main() {}
