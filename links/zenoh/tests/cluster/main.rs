//! Clusters of operating-system processes on the loopback interface. Each is the example `node`.

mod faults;
mod finding;
mod garbage;
mod load;
mod node;
mod proxy;
mod the_end;

use core::{net::Ipv4Addr, time::Duration};
use std::net::TcpListener;

/// Longer than anything takes here, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns addresses with free ports.
fn addresses<const N: usize>() -> [String; N] {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    // All at once, so that they differ.
    let listeners = core::array::from_fn::<_, N, _>(listen);
    listeners.map(|listener| listener.local_addr().expect("a port").to_string())
}
