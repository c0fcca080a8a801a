//! A chat server on loopback, whose logins are checked by other worlds.
//!
//! ```sh
//! cargo run --example login_server --features worlds
//! ```
//!
//! Then `nc 127.0.0.1 7777` in other terminals, and there `login ada ada`, `say hello`, `who` and
//! `quit`. The password of a name is the name backwards. Ctrl-c ends the server, and a second ctrl-c
//! ends it at once.
//!
//! | | |
//! |---|---|
//! | a connection | an entity of the world `"server"`. Its `MessageComponent` holds the commands that are allowed now, and is replaced after the login |
//! | reading | a thread that reads lines and sends them to that entity |
//! | writing | a callback adds lines to an `Output`, and a thread writes them |
//! | a login | a request to one of two worlds `"accounts"`, in turn. It completes with a reply or with `NoAnswer` |
//! | silence | a timer of the connection: first a warning, then the end |
//! | leaving | a client has a second to read the rest, then `DespawnAfter` cuts it off |
//! | the end | the main thread adds a last line to each `Output`, and gives the clients a moment to read it |
//!
//! A slow or hostile client costs only itself. The world never waits for a client:
//!
//! | a client that | |
//! |---|---|
//! | sends too much | is read at a limited rate: a `Cooldown` with a charge per line. TCP slows it down |
//! | reads too little | is cut off at 64 KiB of waiting output |
//! | sends nothing | is dismissed after a while |
//! | is one too many | waits until another client leaves |
//! | speaks or arrives in a crowd | is among the first 20 lines of the frame, or only counted |
//! | sends escape sequences, or the name of another | gets an error |
//!
//! In the order of reading: `server` starts and stops everything, `socket` reads lines and `output`
//! writes them, `client`, `stranger` and `player` hold the commands of a client, `accounts` checks
//! passwords.

#![allow(missing_docs, unreachable_pub, reason = "a program")]

mod accounts;
mod client;
mod output;
mod player;
mod server;
mod settings;
mod socket;
mod stranger;

use core::{error::Error, fmt::Display};
use std::{
    env,
    io::{self, Write},
    process,
    sync::mpsc,
};

use server::Server;
use settings::Settings;

/// The exit status of a program that ctrl-c has ended: 128 and the number of the signal.
const EXIT_BY_CTRL_C: i32 = 130;

fn main() -> Result<(), Box<dyn Error>> {
    let port = match env::args().nth(1) {
        Some(port) => port
            .parse()
            .map_err(|error| format!("the port {port:?}: {error}"))?,
        None => 7777,
    };
    let (ended, when_ended) = mpsc::channel();
    ctrlc::set_handler(move || {
        // Only the first ctrl-c is received.
        if ended.send(()).is_err() {
            process::exit(EXIT_BY_CTRL_C);
        }
    })?;
    let server = Server::start(port, Settings::default())?;
    tell(format_args!(
        "listening on {}, ctrl-c ends it",
        server.address()
    ));
    when_ended.recv()?;
    drop(when_ended);
    tell("closing");
    for world in server.stop() {
        let how = match world.panic {
            Some(said) => format!(", panicked: {said}"),
            None if world.is_left_behind => ", still busy".into(),
            None => String::new(),
        };
        tell(format_args!(
            "{} {}: {} messages undelivered{how}",
            world.group,
            world.nth,
            world.undelivered.len(),
        ));
    }
    Ok(())
}

/// Prints a line. `println!` would panic if the output is closed.
fn tell(line: impl Display) {
    writeln!(io::stdout(), "{line}").ok();
}
