//! What the tests and the examples of the links share: a node that obeys commands, a driver that runs it in
//! a process of its own, a proxy that can be cut, and the scenarios that every link has to pass.

pub mod example;
pub mod figures;
pub mod nats_server;
pub mod node;
pub mod proxy;
pub mod scenarios;

use core::{net::Ipv4Addr, time::Duration};
use std::net::TcpListener;

/// Longer than anything takes in a test, on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Returns addresses with free ports.
pub fn addresses<const N: usize>() -> [String; N] {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    // All at once, so that they differ.
    let listeners = core::array::from_fn::<_, N, _>(listen);
    listeners.map(|listener| listener.local_addr().expect("a port").to_string())
}
