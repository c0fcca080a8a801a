//! The clients of a shard.
//!
//! A client says `play 7`. If player 7 is here, or comes soon, the shard says `here`, and obeys the client until
//! the player leaves. Otherwise it says `not here`, and the client asks the next shard.

use core::{net::Ipv4Addr, time::Duration};
use std::{
    io::{self, ErrorKind, Read},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
    time::Instant,
};

use bevy_due::worlds::StableKey;
use bevy_due_ownership::Zone;
use bevy_ecs::prelude::*;

use crate::{
    deed::Deed,
    keys,
    ledger::Ledger,
    player::{Seat, act, say, tell},
};

/// How long a client waits for a player who may be on the way.
const COMES_SOON: Duration = Duration::from_millis(200);
/// A client that sends a longer line is cut off.
const LONGEST_LINE: usize = 256;

/// The sockets of new clients.
#[derive(Resource)]
pub struct Door(Mutex<Receiver<TcpStream>>);

/// Listens for clients on a free port, and returns the port.
pub fn open_door() -> io::Result<(Door, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let (send, sockets) = mpsc::channel();
    thread::Builder::new().name("door".into()).spawn(move || {
        for socket in listener.incoming().flatten() {
            if socket.set_nonblocking(true).is_ok() {
                socket.set_nodelay(true).ok();
                send.send(socket).unwrap_or_default();
            }
        }
    })?;
    Ok((Door(Mutex::new(sockets)), port))
}

/// The connection of a client.
#[derive(Component)]
pub struct Connection {
    socket: Arc<TcpStream>,
    input: Vec<u8>,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    New,
    /// The client waits for its player.
    Waits {
        player: StableKey,
        until: Instant,
    },
    /// The client has sent its player to this shard.
    Plays {
        player: StableKey,
        to: u64,
    },
}

/// Lets new clients in.
pub fn let_in(door: Res<Door>, mut commands: Commands) {
    let sockets = door.0.lock().unwrap_or_else(PoisonError::into_inner);
    for socket in sockets.try_iter() {
        commands.spawn(Connection {
            socket: Arc::new(socket),
            input: Vec::new(),
            stage: Stage::New,
        });
    }
}

/// Obeys the clients.
pub fn obey(
    mut connections: Query<(Entity, &mut Connection)>,
    zone: Res<Zone>,
    mut commands: Commands,
) {
    for (id, mut connection) in &mut connections {
        // Nobody waits for the end of a connection, so what was read before counts.
        let is_open = connection.read().is_ok();
        while let Some(line) = connection.next_line() {
            connection.hear(&line, &zone, &mut commands);
        }
        if !is_open {
            commands.entity(id).despawn();
        }
    }
}

/// Tells clients where their players are.
pub fn find_players(
    mut connections: Query<(Entity, &mut Connection)>,
    mut players: Query<&mut Ledger>,
    zone: Res<Zone>,
    mut commands: Commands,
) {
    for (id, mut connection) in &mut connections {
        let last_word = match connection.stage {
            Stage::Waits { player, until } => match zone.entity(player) {
                Some(entity) => {
                    connection.stage = Stage::Plays { player, to: 0 };
                    let seat = Seat(connection.socket.clone());
                    if let Ok(mut ledger) = players.get_mut(entity) {
                        tell(&mut commands, Some(&seat), &mut ledger, "here");
                    }
                    commands.entity(entity).insert(seat);
                    continue;
                }
                None if Instant::now() < until => continue,
                None => "not here\n".to_owned(),
            },
            Stage::Plays { player, to } if zone.entity(player).is_none() => format!("moved {to}\n"),
            Stage::New | Stage::Plays { .. } => continue,
        };
        say(&mut commands, connection.socket.clone(), last_word);
        commands.entity(id).despawn();
    }
}

impl Connection {
    /// Reads what there is. Fails if the client is gone.
    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; LONGEST_LINE];
        loop {
            match (&*self.socket).read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        match self.input.len() > LONGEST_LINE && !self.input.contains(&b'\n') {
            true => Err(ErrorKind::InvalidData.into()),
            false => Ok(()),
        }
    }

    fn next_line(&mut self) -> Option<String> {
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.input.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn hear(&mut self, line: &str, zone: &Zone, commands: &mut Commands) {
        if let Some(player) = line.strip_prefix("play ") {
            if let Ok(player) = player.parse() {
                let player = keys::player(player);
                let until = Instant::now() + COMES_SOON;
                self.stage = Stage::Waits { player, until };
            }
            return;
        }
        let Stage::Plays { player, to } = &mut self.stage else {
            return;
        };
        if let (Some(player), Ok(deed)) = (zone.entity(*player), line.parse()) {
            if let Deed::Walk(shard) = deed {
                *to = shard;
            }
            commands.run_system_cached_with(act, (player, deed));
        }
    }
}
