//! Starts and stops everything.

use core::{
    convert::Infallible,
    error::Error,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};
use std::{
    io::{self, ErrorKind, Write},
    net::TcpListener,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Instant,
};

use bevy_due::{
    Cooldown,
    message::{Delivery, MessageSender, MessageWorldExt, Packet},
    worlds::{Parcel, WorldGroups, WorldReport},
};

use crate::{accounts, client, settings::Settings, socket};

/// The time between two looks at the door.
const PAUSE: Duration = Duration::from_millis(20);

/// The time between two complaints about the door.
const COMPLAINT: Duration = Duration::from_secs(10);

pub struct Server {
    worlds: WorldGroups,
    address: SocketAddr,
    /// The door is open until this is dropped.
    open: Sender<Infallible>,
    /// Returns the threads of the clients.
    door: JoinHandle<Vec<JoinHandle<()>>>,
}

impl Server {
    /// Listens on a port of this machine, or on any free port if it is zero.
    pub fn start(port: u16, settings: Settings) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| format!("can't listen on port {port}: {error}"))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;

        let mut worlds = WorldGroups::new();
        let of_accounts = settings.clone();
        worlds.start(accounts::GROUP, 2, move |app| {
            accounts::build(app, &of_accounts);
        })?;
        let rate = settings.line_rate;
        let (sender, built) = mpsc::channel();
        worlds.start(client::GROUP, 1, move |app| {
            client::build(app, &settings);
            sender
                .send(app.world_mut().message_sender())
                .unwrap_or_default();
        })?;

        let sender = built.recv()?;
        let (open, closed) = mpsc::channel();
        let door = thread::Builder::new()
            .name("door".into())
            .spawn(move || watch_door(&listener, &closed, rate, &sender))?;
        Ok(Self {
            worlds,
            address,
            open,
            door,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses new clients, says goodbye to the others, and waits for the end of all worlds.
    ///
    /// Clients that do not read delay this by a second.
    pub fn stop(self) -> Vec<WorldReport> {
        drop(self.open);
        let clients = self.door.join().unwrap_or_default();
        let goodbye = Packet::new(client::GOODBYE, []);
        let goodbye = Parcel::new(client::GROUP, Delivery::All, goodbye);
        self.worlds.post(goodbye).ok();
        let start = Instant::now();
        while clients.iter().any(|client| !client.is_finished())
            && start.elapsed() < client::LAST_WORDS
        {
            thread::sleep(PAUSE);
        }
        // This cuts off the remaining clients.
        let reports = self.worlds.stop();
        for client in clients {
            client.join().ok();
        }
        reports
    }
}

/// Accepts clients until the door is closed, and returns their threads.
///
/// When no client waits, and when there are too many for the system, the door looks again after a
/// pause. It does not wait in `accept`, so it needs no client to close.
fn watch_door(
    listener: &TcpListener,
    closed: &Receiver<Infallible>,
    rate: Cooldown,
    sender: &MessageSender,
) -> Vec<JoinHandle<()>> {
    let start = Instant::now();
    let mut complaint = Cooldown::new(COMPLAINT);
    let mut clients: Vec<JoinHandle<()>> = Vec::new();
    loop {
        let client = listener.accept();
        let client = client.and_then(|(socket, _)| socket::serve(socket, rate, sender));
        let pause = match client {
            Ok(client) => {
                clients.retain(|client| !client.is_finished());
                clients.push(client);
                Duration::ZERO
            }
            Err(error) => {
                if !is_idle(&error) && complaint.try_use(start.elapsed()) {
                    writeln!(io::stderr(), "can't take more clients for now: {error}").ok();
                }
                PAUSE
            }
        };
        if closed.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            return clients;
        }
    }
}

/// Returns `true` if no client waits at the door.
fn is_idle(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
}
