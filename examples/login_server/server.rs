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
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use bevy_due::{
    Cooldown,
    message::{MessageSender, MessageWorldExt},
    worlds::{WorldGroups, WorldReport},
};
use socket2::{Domain, Socket, Type};

use crate::{accounts, client, output::Output, settings::Settings, socket};

/// As many clients may wait at the door. `TcpListener::bind` lets 128 wait. The system ignores the
/// next one, which tries again a second later.
const MOST_WAITING: i32 = 4096;

/// The time between two looks at the door.
const PAUSE: Duration = Duration::from_millis(20);

/// The time between two complaints about the door.
const COMPLAINT: Duration = Duration::from_secs(10);

/// When the server ends, its clients have this long to hear the goodbye.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// When the server ends, each world has this long to end its frame.
const LAST_FRAME: Duration = Duration::from_millis(100);

pub struct Server {
    worlds: WorldGroups,
    address: SocketAddr,
    /// The door is open until this is dropped.
    open: Sender<Infallible>,
    door: JoinHandle<Vec<Arc<Output>>>,
}

impl Server {
    /// Listens on a port of this machine, or on any free port if it is zero.
    pub fn start(port: u16, settings: Settings) -> Result<Self, Box<dyn Error>> {
        let listener =
            listen(port).map_err(|error| format!("can't listen on port {port}: {error}"))?;
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

    /// Refuses new clients, says goodbye to the others, and ends all worlds.
    ///
    /// The goodbye is not a message to the entities, because it would wait behind all others. Each
    /// step has a time limit, so a crowd does not delay the end.
    pub fn stop(self) -> Vec<WorldReport> {
        drop(self.open);
        let clients = self.door.join().unwrap_or_default();
        let start = Instant::now();
        let has_time = || start.elapsed() < LAST_WORDS;
        for client in clients.iter().take_while(|_| has_time()) {
            client.say("bye, the server closes");
        }
        // Not before all have heard it, because the end of thousands of threads takes longer.
        for client in clients.iter().take_while(|_| has_time()) {
            client.close();
        }
        while has_time() && clients.iter().any(is_served) {
            thread::sleep(PAUSE);
        }
        // This cuts off the remaining clients.
        self.worlds.stop_within(LAST_FRAME)
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // A new server need not wait until the connections of the last one are forgotten.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(MOST_WAITING)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Accepts clients until the door is closed, and returns them.
///
/// When no client waits, and when there are too many for the system, the door forgets those that have
/// left, and looks again after a pause. It does not wait in `accept`, so it needs no client to close.
fn watch_door(
    listener: &TcpListener,
    closed: &Receiver<Infallible>,
    rate: Cooldown,
    sender: &MessageSender,
) -> Vec<Arc<Output>> {
    let start = Instant::now();
    let mut complaint = Cooldown::new(COMPLAINT);
    let mut clients = Vec::new();
    loop {
        let client = listener.accept();
        let client = client.and_then(|(socket, _)| socket::serve(socket, rate, sender));
        let pause = match client {
            Ok(client) => {
                clients.push(client);
                Duration::ZERO
            }
            Err(error) => {
                clients.retain(is_served);
                let is_idle = error.kind() == ErrorKind::WouldBlock;
                if !is_idle && complaint.try_use(start.elapsed()) {
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

/// Returns `true` until the world and both threads of a client have let go of it.
fn is_served(client: &Arc<Output>) -> bool {
    Arc::strong_count(client) > 1
}
