//! Starts and stops everything.

use core::{
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use std::{
    io,
    net::{TcpListener, TcpStream},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use bevy_due::{MessageSender, Packet, Parcel, WorldGroups, WorldReport, prelude::*};
use bevy_ecs::prelude::*;

use crate::{accounts, connection, socket};

/// The time limits of the server.
#[derive(Resource, Clone, Debug)]
pub struct Settings {
    /// The time limit for the check of a password.
    pub login_timeout: Duration,
    /// The duration of the check for a name.
    pub login_time: fn(&str) -> Duration,
    /// The time of silence after which a client is warned.
    pub warn_after: Duration,
    /// The further time of silence after which a client is disconnected.
    pub close_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            login_timeout: Duration::from_secs(2),
            login_time: |name| match name {
                "sloth" => Duration::from_secs(3),
                _ => Duration::from_millis(300),
            },
            warn_after: Duration::from_secs(60),
            close_after: Duration::from_secs(30),
        }
    }
}

pub struct Server {
    worlds: WorldGroups,
    address: SocketAddr,
    is_closed: Arc<AtomicBool>,
    door: JoinHandle<()>,
}

impl Server {
    /// Listens on a port of this machine, or on any free port if it is zero.
    pub fn start(port: u16, settings: Settings) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| format!("can't listen on port {port}: {error}"))?;
        let address = listener.local_addr()?;

        let mut worlds = WorldGroups::new();
        let of_accounts = settings.clone();
        worlds.start(accounts::GROUP, 2, move |app| {
            accounts::build(app, &of_accounts);
        })?;
        let (sender, built) = mpsc::channel();
        worlds.start(connection::GROUP, 1, move |app| {
            connection::build(app, &settings);
            sender
                .send(app.world_mut().message_sender())
                .unwrap_or_default();
        })?;

        let is_closed = Arc::new(AtomicBool::new(false));
        let (sender, closed) = (built.recv()?, is_closed.clone());
        let door = thread::Builder::new()
            .name("door".into())
            .spawn(move || open_door(&listener, &sender, &closed))?;
        Ok(Self {
            worlds,
            address,
            is_closed,
            door,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new clients, says goodbye to the others, and waits for the end of all worlds.
    pub fn stop(self) -> Vec<WorldReport> {
        self.is_closed.store(true, Ordering::Release);
        // The door waits for a client.
        TcpStream::connect(self.address).ok();
        let goodbye = Packet::new(connection::GOODBYE, []);
        let goodbye = Parcel::new(connection::GROUP, Delivery::All, goodbye);
        self.worlds.post(goodbye).ok();
        let reports = self.worlds.stop();
        if self.door.join().is_err() {
            eprintln!("the thread at the door has panicked");
        }
        reports
    }
}

/// Accepts clients, each with a thread that reads its lines.
fn open_door(listener: &TcpListener, sender: &MessageSender, is_closed: &AtomicBool) {
    let mut readers: Vec<JoinHandle<()>> = Vec::new();
    for client in listener.incoming() {
        if is_closed.load(Ordering::Acquire) {
            break;
        }
        let reader = client.and_then(|client| {
            let sender = sender.clone();
            let reader = thread::Builder::new().name("client".into());
            reader.spawn(move || tell(socket::serve(client, &sender)))
        });
        readers.retain(|reader| !reader.is_finished());
        match reader {
            Ok(reader) => readers.push(reader),
            // There may be too many clients for now.
            Err(error) => tell(Err(error)),
        }
    }
    // The sockets are closed with the world.
    for reader in readers {
        reader.join().ok();
    }
}

fn tell(result: io::Result<()>) {
    if let Err(error) = result {
        eprintln!("a client: {error}");
    }
}
