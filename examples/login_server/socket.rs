//! Reads lines from a socket.

use core::{mem, time::Duration};
use std::{
    io::{self, BufRead, BufReader, Read},
    net::TcpStream,
    sync::{Arc, mpsc},
    thread,
    time::Instant,
};

use bevy_due::{
    Cooldown,
    message::{MessageSender, Payload, SendError},
};
use bevy_ecs::prelude::*;

use crate::{
    client::{BadLine, Client, HungUp, Line},
    output::Output,
    stranger::welcome,
};

/// Longer lines are an error.
pub const LONGEST_LINE: usize = 512;

/// Starts the two threads of a client.
pub fn serve(socket: TcpStream, rate: Cooldown, sender: &MessageSender) -> io::Result<Arc<Output>> {
    // On some systems, a socket inherits this from its listener.
    socket.set_nonblocking(false)?;
    // The output is written in large pieces anyway.
    socket.set_nodelay(true)?;
    let output = Arc::new(Output::new(socket));
    // If the client is refused from here on, dropping this ends the connection and the threads.
    let client = Client(output.clone());

    let to_write = output.clone();
    let writer = thread::Builder::new().name("client writer".into());
    let writer = writer.spawn(move || to_write.write())?;

    let sender = sender.clone();
    let to_read = output.clone();
    let reader = thread::Builder::new().name("client".into());
    reader.spawn(move || {
        let entity = enter(client, &sender);
        if let Some(entity) = entity {
            read_lines(&to_read, rate, |said| match said {
                Said::Line(line) => send(&sender, entity, Line(line)),
                Said::Bad(why) => send(&sender, entity, BadLine(why)),
            });
            send(&sender, entity, HungUp);
        }
        // The client may still read.
        writer.join().ok();
        if let Some(entity) = entity {
            let despawn = move |world: &mut World| _ = world.try_despawn(entity);
            sender.run(despawn).ok();
        }
    })?;
    Ok(output)
}

/// Spawns the entity of a client. If the inbox is full or the world has ended, the client is
/// dropped.
fn enter(client: Client, sender: &MessageSender) -> Option<Entity> {
    let (entity, welcomed) = mpsc::channel();
    let welcome = move |world: &mut World| {
        entity.send(welcome(world, client)).unwrap_or_default();
    };
    sender.run(welcome).ok()?;
    welcomed.recv().ok()
}

/// The input of a client.
enum Said {
    Line(String),
    Bad(&'static str),
}

/// Reads lines until the client hangs up, the output is closed, or `hear` returns `false`.
///
/// Each line costs a charge, and a long line costs one for each piece. While there is none, nothing
/// is read. Soon the client can send no more: TCP slows it down.
fn read_lines(output: &Output, mut rate: Cooldown, mut hear: impl FnMut(Said) -> bool) {
    let start = Instant::now();
    let mut input = BufReader::with_capacity(LONGEST_LINE, &output.socket);
    let mut is_too_long = false;
    loop {
        let mut line = Vec::new();
        let mut piece = (&mut input).take(LONGEST_LINE as u64);
        // After an error there is nothing to read, either.
        let Ok(1..) = piece.read_until(b'\n', &mut line) else {
            return;
        };
        while !rate.try_use(start.elapsed()) {
            if output.closes_within(rate.remaining(start.elapsed())) {
                return;
            }
        }
        // The last line may have no end.
        let is_whole = line.ends_with(b"\n") || line.len() < LONGEST_LINE;
        if !is_whole {
            is_too_long = true;
            continue;
        }
        let said = match mem::take(&mut is_too_long) {
            true => Said::Bad("too long"),
            false => read(&line),
        };
        if !hear(said) {
            return;
        }
    }
}

fn read(line: &[u8]) -> Said {
    match str::from_utf8(line).map(str::trim) {
        Err(_) => Said::Bad("not UTF-8"),
        // An escape sequence could do anything to the terminals of the others.
        Ok(line) if line.contains(char::is_control) => Said::Bad("not plain text"),
        Ok(line) => Said::Line(line.into()),
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
