//! A chat server on loopback, whose logins are checked by other worlds.
//!
//! ```sh
//! cargo run --example login_server --features worlds
//! ```
//!
//! Then `nc 127.0.0.1 7777` in other terminals, and there `login ada ada`, `say hello`, `who` and
//! `quit`. The password of a name is the name backwards. Ctrl-c ends the server.
//!
//! | | |
//! |---|---|
//! | a connection | an entity of the world `"server"`. Its `MessageComponent` holds the commands that are allowed now, and is replaced after the login |
//! | a socket | a thread that reads lines and sends them to that entity |
//! | writing | an `UpdateComponent` that passes pending output to the socket |
//! | a login | a request to one of two worlds `"accounts"`, in turn. It completes with a reply or with `NoAnswer` |
//! | chat | a message to all followers: the clients that have logged in |
//! | silence | a timer of the connection: first a warning, then the end |
//!
//! In the order of reading: `server` starts and stops everything, `connection` holds the commands of a
//! client, `accounts` checks passwords, `socket` reads lines.

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
