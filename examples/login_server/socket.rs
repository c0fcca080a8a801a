//! Reads lines from a socket.

use core::time::Duration;
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::mpsc::{self, Receiver},
    thread,
};

use bevy_due::{MessageSender, Payload, SendError};
use bevy_ecs::prelude::*;

use crate::connection::{BadLine, HungUp, Line, welcome};

/// Longer lines are an error.
pub const LONGEST_LINE: usize = 512;

/// A client that sends this many bytes without a line break is disconnected.
const ENOUGH: usize = 64 * 1024;

/// A client that reads nothing for this long is disconnected.
const PATIENCE: Duration = Duration::from_secs(2);

/// Spawns the entity of a client, and sends it the lines of the client until that disconnects.
pub fn serve(mut socket: TcpStream, sender: &MessageSender) -> io::Result<()> {
    let write_to = socket.try_clone()?;
    write_to.set_write_timeout(Some(PATIENCE))?;
    let (lines, to_write) = mpsc::sync_channel(16);
    let writer = thread::Builder::new().name("client writer".into());
    let writer = writer.spawn(move || write(write_to, &to_write))?;

    let (entity, welcomed) = mpsc::channel();
    let welcome = move |world: &mut World| {
        entity.send(welcome(world, lines)).unwrap_or_default();
    };
    // If the inbox is full or the world has ended, the writing thread ends.
    sender.run(welcome).ok();
    let result = match welcomed.recv() {
        Ok(client) => {
            let result = read_lines(&mut socket, |said| match said {
                Said::Line(line) => send(sender, client, Line(line)),
                Said::Bad(why) => send(sender, client, BadLine(why)),
            });
            send(sender, client, HungUp);
            result
        }
        Err(_) => Ok(()),
    };
    writer.join().ok();
    result
}

/// Writes output until the client is despawned or does not read, and then disconnects it.
fn write(mut socket: TcpStream, to_write: &Receiver<String>) {
    let mut lines = to_write.iter();
    lines.all(|lines| socket.write_all(lines.as_bytes()).is_ok());
    // The client may be gone already.
    socket.shutdown(Shutdown::Both).ok();
}

/// The input of a client.
#[derive(Debug, PartialEq)]
pub enum Said {
    Line(String),
    Bad(&'static str),
}

/// Reads lines until the client disconnects or its world ends.
pub fn read_lines(source: &mut impl Read, mut hear: impl FnMut(Said) -> bool) -> io::Result<()> {
    let mut line = Vec::new();
    let mut length = 0;
    let mut chunk = [0; 4096];
    loop {
        let read = match source.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The client is gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
        for &byte in &chunk[..read] {
            if byte != b'\n' {
                length += 1;
                if length <= LONGEST_LINE {
                    line.push(byte);
                }
                if length > ENOUGH {
                    hear(Said::Bad("far too long"));
                    return Ok(());
                }
                continue;
            }
            let said = match String::from_utf8(core::mem::take(&mut line)) {
                _ if length > LONGEST_LINE => Said::Bad("too long"),
                Err(_) => Said::Bad("not UTF-8"),
                Ok(line) => Said::Line(line.trim().into()),
            };
            length = 0;
            if !hear(said) {
                return Ok(());
            }
        }
    }
}

/// Sends a message, and waits while the inbox is full, so that the client waits, too. Returns `false`
/// if the world has ended.
fn send(sender: &MessageSender, client: Entity, mut message: impl Payload) -> bool {
    loop {
        message = match sender.send(client, message) {
            Ok(()) => return true,
            Err(SendError::Closed(_)) => return false,
            Err(SendError::Full(message)) => message,
        };
        thread::sleep(Duration::from_millis(10));
    }
}
