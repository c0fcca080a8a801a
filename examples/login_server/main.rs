//! A chat server on loopback, with a login that is checked elsewhere.
//!
//! ```sh
//! cargo run --example login_server --features worlds
//! ```
//!
//! Then `nc 127.0.0.1 7777` in other terminals, and there `login ada lovelace`, `say hello`, `who`
//! and `quit`. Ctrl-c ends the server.
//!
//! | | |
//! |---|---|
//! | a connection | an entity of the world `"server"`: what it may say now is its `MessageComponent`, replaced when it has logged in |
//! | a socket | a thread that reads lines, and sends them to that entity |
//! | writing | an `UpdateComponent`: whatever is pending, as much as the socket takes |
//! | a login | a question to one of two worlds `"accounts"`, in turn; with an answer, or word that there is none |
//! | chat | a message to all that follow it: those who have logged in |
//! | silence | a timer of the connection: a warning, then the end |
//!
//! In the order of reading: `server` starts and stops it all, `connection` is what a client may do,
//! `accounts` checks passwords, `socket` reads lines.

#![allow(missing_docs, unreachable_pub, reason = "a program")]

mod accounts;
mod connection;
mod server;
mod socket;

use core::error::Error;
use std::{env, sync::mpsc};

use server::{Server, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let port = match env::args().nth(1) {
        Some(port) => port
            .parse()
            .map_err(|error| format!("the port {port:?}: {error}"))?,
        None => 7777,
    };
    let (ended, when_ended) = mpsc::channel();
    ctrlc::set_handler(move || ended.send(()).unwrap_or_default())?;
    let server = Server::start(port, Settings::default())?;
    println!("listening on {}, ctrl-c ends it", server.address());
    when_ended.recv()?;
    println!("closing");
    for world in server.stop() {
        println!(
            "{} {}: {} messages undelivered{}",
            world.group,
            world.nth,
            world.undelivered.len(),
            world
                .panic
                .map_or(String::new(), |said| format!(", panicked: {said}")),
        );
    }
    Ok(())
}
