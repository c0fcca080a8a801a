//! Processes that are all joined with each other.

use allocation_counter::measure;
use bevy_due::{
    message::{Delivery, Packet},
    worlds::{Parcel, StableKey},
};
use bevy_ecs::error::Result;

use crate::{
    fit::print_line,
    process::{GROUP, Process},
    wire::{Traffic, Wire, join_all, settle},
};

const KEYS: u64 = 200;

/// The bytes of a batch with one change of a key of the group, and with one parcel without a key.
/// `docs/thousand_shards.md` reckons with them.
const KEY_BATCH: u64 = 45 + 1 + (4 + GROUP.len() as u64 + 8) + 8;
const PARCEL_BATCH: u64 =
    45 + 1 + 32 + 1 + (4 + GROUP.len() as u64) + 1 + 1 + 4 + 4 + PAYLOAD as u64;
const PAYLOAD: usize = 10;

/// What a cluster costs.
struct Costs {
    /// The bytes that all processes hold for each other.
    held: i64,
    start: Traffic,
    /// One more key in one process.
    key: Traffic,
    /// A parcel to all worlds.
    to_all: Traffic,
}

pub(crate) fn print(sizes: &[u64]) -> Result {
    println!("Processes with one world each, all joined, without keys and with {KEYS} each:");
    let [mut held, mut with_keys, mut start, mut key, mut to_all] = [const { Vec::new() }; 5];
    for &size in sizes {
        let ends = (size * (size - 1)) as f64;
        let [empty, full] = [costs_of(size, 0)?, costs_of(size, KEYS)?];
        let connection = empty.held as f64 / ends;
        let per_key = (full.held - empty.held) as f64 / ends / KEYS as f64;
        println!(
            "{size:4} processes: {connection:.0} B per connection and end, {per_key:.0} B per key and end, start {} B \
             in {} batches, a new key {} B in {}, to all {} B in {}",
            full.start.bytes,
            full.start.batches,
            full.key.bytes,
            full.key.batches,
            full.to_all.bytes,
            full.to_all.batches,
        );
        let (others, process) = ((size - 1) as f64, size as f64);
        held.push((others, empty.held as f64 / process));
        with_keys.push((others * KEYS as f64, per_key * others * KEYS as f64));
        start.push((others * KEYS as f64, full.start.bytes as f64 / process));
        key.push((others, full.key.bytes as f64));
        to_all.push((others, full.to_all.bytes as f64));
    }
    print_line(
        "bytes that a process holds without keys, x other processes",
        &held,
        999.0,
    );
    print_line("bytes for x keys of others", &with_keys, 999e3);
    print_line(
        "bytes that a process sends at the start, for x keys of others",
        &start,
        999e3,
    );
    print_line("bytes of a new key, x other processes", &key, 999.0);
    print_line(
        "bytes of a parcel to all, x other processes",
        &to_all,
        999.0,
    );
    Ok(())
}

fn costs_of(size: u64, keys: u64) -> Result<Costs> {
    let first = |nth| 1_000_000 * (nth + 1);
    let mut processes: Vec<_> = (0..size)
        .map(|nth| Process::with_keys(first(nth), keys))
        .collect();
    let mut joined: Result<(Vec<Wire>, Traffic)> = Err("not joined".into());
    let used = measure(|| joined = join(&mut processes));
    let (wires, start) = joined?;
    for process in &processes {
        assert_eq!(process.groups.running(GROUP) as u64, size, "all are up");
    }
    processes[0].app.world_mut().spawn(StableKey(7));
    let key = settle(&wires)?;
    let packet = Packet::new(1, [0; PAYLOAD]);
    let parcel = Parcel::new(GROUP, Delivery::All, packet);
    processes[0].groups.post(parcel)?;
    let to_all = settle(&wires)?;
    let others = size - 1;
    assert_eq!(key.bytes, KEY_BATCH * others, "the page reckons with this");
    assert_eq!(
        to_all.bytes,
        PARCEL_BATCH * others,
        "the page reckons with this"
    );
    Ok(Costs {
        held: used.bytes_current,
        start,
        key,
        to_all,
    })
}

fn join(processes: &mut [Process]) -> Result<(Vec<Wire>, Traffic)> {
    let wires = join_all(processes);
    let start = settle(&wires)?;
    for process in processes {
        process.app.update();
    }
    Ok((wires, start))
}
