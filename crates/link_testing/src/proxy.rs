//! A TCP proxy that can stop to carry.

use core::net::Ipv4Addr;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

/// A TCP proxy. While it is cut, it carries nothing, but keeps all connections.
#[derive(Debug)]
pub struct Proxy {
    /// The address at which it listens.
    pub address: String,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    is_cut: Mutex<bool>,
    mended: Condvar,
}

impl Gate {
    fn pass(&self) {
        let is_cut = self.is_cut.lock().expect("no panic");
        let open = self.mended.wait_while(is_cut, |is_cut| *is_cut);
        drop(open.expect("no panic"));
    }

    fn set(&self, is_cut: bool) {
        *self.is_cut.lock().expect("no panic") = is_cut;
        self.mended.notify_all();
    }
}

impl Proxy {
    /// Starts a proxy to an address, at a free port.
    pub fn to(address: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let own = listener.local_addr().expect("a port").to_string();
        let gate = Arc::new(Gate::default());
        let (to, of_thread) = (address.to_owned(), gate.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&to) else {
                    continue;
                };
                carry(&client, &server, &of_thread);
                carry(&server, &client, &of_thread);
            }
        });
        Self { address: own, gate }
    }

    /// Stops to carry.
    pub fn cut(&self) {
        self.gate.set(true);
    }

    /// Carries again, and also what has waited.
    pub fn mend(&self) {
        self.gate.set(false);
    }
}

/// Carries bytes in one direction.
fn carry(from: &TcpStream, to: &TcpStream, gate: &Arc<Gate>) {
    let (mut from, mut to) = (clone(from), clone(to));
    let gate = gate.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut bytes).unwrap_or(0);
            gate.pass();
            if read == 0 || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.set_nodelay(true).expect("a socket");
    stream.try_clone().expect("a socket")
}
