//! What a process does at rest: the heartbeats, with a thread for each end of a connection.

use core::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::{
    fs,
    sync::Arc,
    thread::{self, JoinHandle},
};

use bevy_due::worlds::link::{Peer, PeerSettings};
use bevy_ecs::error::Result;
use cpu_time::ProcessTime;

use crate::{
    fit::print_line,
    process::{GROUP, Process},
    wire::Wire,
};

const REST: Duration = Duration::from_secs(10);

/// What the threads have carried.
#[derive(Default)]
pub(crate) struct Carried {
    batches: AtomicU64,
    bytes: AtomicU64,
}

impl Carried {
    pub(crate) fn now(&self) -> [u64; 2] {
        [&self.batches, &self.bytes].map(|it| it.load(Relaxed))
    }
}

pub(crate) fn print(sizes: &[u64]) -> Result {
    println!("One process with others at rest, for {REST:?}, with the default settings:");
    let mut points = Vec::new();
    for &others in sizes {
        let bytes = print_one(others)?;
        points.push((others as f64, bytes));
    }
    print_line(
        "bytes that a process sends per second, x others",
        &points,
        999.0,
    );
    Ok(())
}

fn print_one(others: u64) -> Result<f64> {
    let centre = Process::with_keys(1, 1);
    let leaves: Vec<_> = (1..=others)
        .map(|nth| Process::with_keys(1_000 * nth, 1))
        .collect();
    let resident = resident_bytes();
    let carried = Arc::new(Carried::default());
    let (peers, threads) = join(&centre, &leaves, &carried);
    while centre.groups.running(GROUP) as u64 <= others {
        thread::sleep(Duration::from_millis(10));
    }
    let resident = resident_bytes() - resident;
    thread::sleep(Duration::from_secs(1));
    let before = carried.now();
    let cpu = ProcessTime::now();
    thread::sleep(REST);
    let cpu = cpu.elapsed();
    let after = carried.now();
    let [batches, bytes] = [0, 1].map(|it| (after[it] - before[it]) as f64);
    let is_up = centre.groups.running(GROUP) as u64 == others + 1;
    println!(
        "{others:4} others: {:.0} batches/s and {:.0} B/s sent by the process, {:.2} µs of CPU per batch, {} KB \
         resident per thread, all up: {is_up}",
        batches / 2.0 / REST.as_secs_f64(),
        bytes / 2.0 / REST.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / batches,
        resident / 1000 / (2 * others),
    );
    end(&peers, threads)?;
    Ok(bytes / 2.0 / REST.as_secs_f64())
}

/// Joins a process with others, with a thread for each end.
pub(crate) fn join(
    centre: &Process,
    leaves: &[Process],
    carried: &Arc<Carried>,
) -> (Vec<Arc<Peer>>, Vec<JoinHandle<()>>) {
    let (mut peers, mut threads) = (Vec::new(), Vec::new());
    let connect = |leaf| Wire::with_settings(centre, leaf, PeerSettings::default());
    let wires: Vec<_> = leaves.iter().map(connect).collect();
    for wire in wires {
        let ends = wire.into_peers().map(Arc::new);
        for (from, to) in [(0, 1), (1, 0)] {
            let (from, to) = (ends[from].clone(), ends[to].clone());
            threads.push(run(from, to, carried.clone()));
        }
        peers.extend(ends);
    }
    (peers, threads)
}

/// Starts a thread that carries batches from an end to the other.
fn run(from: Arc<Peer>, to: Arc<Peer>, carried: Arc<Carried>) -> JoinHandle<()> {
    thread::spawn(move || {
        while let Some(batch) = from.next_batch() {
            carried.batches.fetch_add(1, Relaxed);
            carried.bytes.fetch_add(batch.len() as u64, Relaxed);
            to.receive(&batch).ok();
        }
    })
}

pub(crate) fn end(peers: &[Arc<Peer>], threads: Vec<JoinHandle<()>>) -> Result {
    for peer in peers {
        peer.close();
    }
    for thread in threads {
        thread.join().map_err(|_| "a thread has panicked")?;
    }
    Ok(())
}

/// Returns the memory of this process, or 0 where there is no `/proc`.
fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").ok().and_then(|it| {
        let resident = it.split(' ').nth(1)?;
        resident.parse::<u64>().ok()
    });
    pages.unwrap_or_default() * 4096
}
