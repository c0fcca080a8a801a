//! All clients, in a few threads.

use core::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU16, Ordering},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use fastrand::Rng;

use crate::client::Client;

const THREADS: u64 = 2;
/// The time between two looks at all sockets.
const PAUSE: Duration = Duration::from_millis(10);

/// What the clients and the parent share.
pub struct Field {
    pub players: u64,
    /// The ports of the shards, or zero while a shard is down.
    ports: Vec<AtomicU16>,
    is_resting: AtomicBool,
    is_over: AtomicBool,
    /// What clients have read that can't be.
    doubts: Mutex<Vec<String>>,
}

impl Field {
    pub fn new(players: u64, shards: u64) -> Self {
        Self {
            players,
            ports: (0..shards).map(|_| AtomicU16::new(0)).collect(),
            is_resting: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            doubts: Mutex::default(),
        }
    }

    pub fn shards(&self) -> usize {
        self.ports.len()
    }

    pub fn port(&self, shard: usize) -> u16 {
        self.ports[shard].load(Ordering::Relaxed)
    }

    pub fn set_port(&self, shard: usize, port: u16) {
        self.ports[shard].store(port, Ordering::Relaxed);
    }

    pub fn is_resting(&self) -> bool {
        self.is_resting.load(Ordering::Relaxed)
    }

    /// Lets the clients only read from now on.
    pub fn rest(&self) {
        self.is_resting.store(true, Ordering::Relaxed);
    }

    pub fn doubt(&self, what: impl fmt::Display) {
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.push(what.to_string());
    }

    pub fn doubts(&self) -> Vec<String> {
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.clone()
    }
}

pub struct Crowd {
    field: Arc<Field>,
    threads: Vec<JoinHandle<Vec<Client>>>,
}

impl Crowd {
    pub fn start(field: &Arc<Field>) -> Self {
        let thread = |nth| {
            let field = field.clone();
            let players = (0..field.players).filter(move |player| player % THREADS == nth);
            thread::spawn(move || play(&field, players.map(Client::new).collect()))
        };
        Self {
            field: field.clone(),
            threads: (0..THREADS).map(thread).collect(),
        }
    }

    /// Ends the clients, and returns them.
    pub fn end(self) -> Vec<Client> {
        self.field.is_over.store(true, Ordering::Relaxed);
        let clients = self.threads.into_iter().map(JoinHandle::join);
        clients
            .flat_map(|clients| clients.expect("a thread of clients does not panic"))
            .collect()
    }
}

fn play(field: &Field, mut clients: Vec<Client>) -> Vec<Client> {
    let mut random = Rng::new();
    while !field.is_over.load(Ordering::Relaxed) {
        for client in &mut clients {
            client.step(field, &mut random);
        }
        thread::sleep(PAUSE);
    }
    clients
}
