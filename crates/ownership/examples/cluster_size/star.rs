//! One process of a large cluster: all others are joined with it alone.

use core::time::Duration;
use std::time::Instant;

use bevy_due::{
    message::{Delivery, Packet},
    worlds::{Parcel, StableKey, link::FromPeer},
};
use bevy_ecs::error::Result;

use crate::{
    process::{GROUP, Process},
    wire::{Traffic, Wire, settle},
};

/// Which keys the process takes from others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Takes {
    All,
    NoKeys,
}

pub(crate) fn print(sizes: &[(u64, u64)]) -> Result {
    println!("One process with others, as it is in a cluster in which all are joined:");
    for &(others, keys) in sizes {
        // The largest case needs about 5 GB, so only the whole of it is run.
        if keys < 10_000 {
            print_one(others, [keys, 0], Takes::All)?;
            print_one(others, [0, keys], Takes::All)?;
            print_one(others, [keys, keys], Takes::NoKeys)?;
        }
        print_one(others, [keys, keys], Takes::All)?;
    }
    Ok(())
}

/// A process with all its others.
struct Star {
    centre: Process,
    wires: Vec<Wire>,
    /// They end after the centre. With its hub, each would look for keys to remove.
    _leaves: Vec<Process>,
    start: Traffic,
    /// The time in which connections began in all, and the last one.
    begun: [Duration; 2],
}

impl Star {
    fn join(others: u64, [mine, theirs]: [u64; 2], takes: Takes) -> Result<Self> {
        let mut centre = Process::with_keys(1, mine);
        if takes == Takes::NoKeys {
            let permits = |_: &str, what: FromPeer| !matches!(what, FromPeer::Key(_));
            centre.groups.permit(permits);
        }
        let (mut leaves, mut wires) = (Vec::new(), Vec::new());
        let mut start = Traffic::default();
        let mut begun = [Duration::ZERO; 2];
        for nth in 1..=others {
            let leaf = Process::with_keys(1_000_000 * nth, theirs);
            let wire = [Wire::new(&centre, &leaf)];
            let joined = settle(&wire)?;
            centre.app.update();
            begun = [begun[0] + joined.begin, joined.begin];
            start += joined;
            wires.extend(wire);
            leaves.push(leaf);
        }
        assert_eq!(centre.groups.running(GROUP) as u64, others + 1);
        Ok(Self {
            centre,
            wires,
            _leaves: leaves,
            start,
            begun,
        })
    }
}

fn print_one(others: u64, keys: [u64; 2], takes: Takes) -> Result {
    let mut star = Star::join(others, keys, takes)?;
    let Star { start, begun, .. } = &star;
    println!(
        "{others} others, keys here and in each {keys:?}, takes {takes:?}: {} B held, {} B per other; {} B at the start \
         in {} batches; connections began in {:.1?}, the last one in {:.1?}",
        start.held,
        start.held / others as i64,
        start.bytes,
        start.batches,
        begun[0],
        begun[1],
    );
    let Star { centre, wires, .. } = &mut star;
    let bind = time(|| _ = centre.app.world_mut().spawn(StableKey(999_999)));
    let bound = settle(wires)?;
    let parcel = Parcel::new(GROUP, Delivery::All, Packet::new(1, [0; 10]));
    let mut posted = Ok(());
    let post = time(|| posted = centre.groups.post(parcel));
    posted?;
    let asked = settle(wires)?;
    let lost = time(|| wires[0].first().disconnected());
    println!(
        "    a new key {bind:.1?} and {} B; a parcel to all {post:.1?} and {} B; a lost process {lost:.1?}",
        bound.bytes, asked.bytes
    );
    Ok(())
}

fn time(call: impl FnOnce()) -> Duration {
    let start = Instant::now();
    call();
    start.elapsed()
}
