//! The login server of the examples, with clients on real sockets.

#![allow(missing_docs, unreachable_pub, reason = "parts of a program")]

#[path = "../../examples/login_server/accounts.rs"]
mod accounts;
#[path = "../../examples/login_server/client.rs"]
mod client;
#[path = "../../examples/login_server/output.rs"]
mod output;
#[path = "../../examples/login_server/player.rs"]
mod player;
#[path = "../../examples/login_server/server.rs"]
mod server;
#[path = "../../examples/login_server/settings.rs"]
mod settings;
#[path = "../../examples/login_server/socket.rs"]
mod socket;
#[path = "../../examples/login_server/stranger.rs"]
mod stranger;

mod crowd;
mod limits;
mod manners;
mod one_frame;
#[cfg(unix)]
mod program;
mod visitor;

use core::{net::Ipv4Addr, time::Duration};
use std::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use bevy_due::{Cooldown, worlds::WorldReport};
use server::Server;
use settings::Settings;
use visitor::Visitor;

/// Longer than anything takes here, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// No time-out of these settings passes within a test.
fn patient(line_rate: Cooldown) -> Settings {
    Settings {
        login_timeout: 10 * PATIENCE,
        login_time: |_| Duration::ZERO,
        warn_after: 1000 * PATIENCE,
        close_after: PATIENCE,
        line_rate,
    }
}

fn unlimited() -> Cooldown {
    Cooldown::new(Duration::ZERO)
}

fn start(line_rate: Cooldown) -> Server {
    Server::start(0, patient(line_rate)).expect("a free port")
}

/// Stops a server, which should not take long.
fn stop(server: Server) -> Vec<WorldReport> {
    let (stopped, when_stopped) = mpsc::channel();
    thread::spawn(move || stopped.send(server.stop()));
    let reports = when_stopped.recv_timeout(PATIENCE);
    reports.expect("should have stopped")
}

/// Returns the two ends of a connection.
fn socket_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    (listener.accept().unwrap().0, client)
}

fn assert_in_order(worlds: &[WorldReport]) {
    let order: Vec<_> = worlds
        .iter()
        .map(|world| (&*world.group, world.nth))
        .collect();
    assert_eq!(order, [("server", 0), ("accounts", 1), ("accounts", 0)]);
    for world in worlds {
        assert_eq!(world.panic, None, "{}", world.group);
    }
}

#[test]
fn clients_are_told_when_the_server_closes() {
    let server = start(unlimited());
    let clients = (0..100).map(|_| Visitor::new(server.address()));
    let mut clients: Vec<_> = clients.collect();
    clients[0].log_in("ada");
    assert_in_order(&stop(server));
    for client in &mut clients {
        client.wait_for("bye, the server closes");
        client.wait_for_end();
    }
}

#[test]
fn the_error_for_a_used_port_names_the_port() {
    let server = start(unlimited());
    let port = server.address().port();
    let error = Server::start(port, Settings::default())
        .map(drop)
        .unwrap_err();
    let expected = format!("can't listen on port {port}: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    stop(server);
}
