//! A process that starts in a large cluster: all others connect at once, with a thread for each end.

use core::time::Duration;
use std::{sync::Arc, thread, time::Instant};

use bevy_ecs::error::Result;

use crate::{
    process::{GROUP, Process},
    rest::{Carried, end, join},
};

/// How long to wait for all connections.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn print(sizes: &[(u64, u64)]) -> Result {
    println!("One process to which all others connect at once, with the default settings:");
    for &(others, keys) in sizes {
        print_one(others, keys)?;
    }
    Ok(())
}

fn print_one(others: u64, keys: u64) -> Result {
    let centre = Process::with_keys(1, keys);
    let leaves: Vec<_> = (1..=others)
        .map(|nth| Process::with_keys(1_000_000 * nth, keys))
        .collect();
    let carried = Arc::new(Carried::default());
    let start = Instant::now();
    let (peers, threads) = join(&centre, &leaves, &carried);
    let running = || centre.groups.running(GROUP) as u64;
    let (mut most, mut drops) = (0, 0);
    while most <= others && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
        let now = running();
        drops += u64::from(now < most);
        most = most.max(now);
    }
    let took = start.elapsed();
    thread::sleep(Duration::from_secs(15));
    let [batches, bytes] = carried.now();
    println!(
        "{others} others with {keys} keys each: {most} worlds known after {took:.1?}, {} of them 15 s later, fewer than \
         before in {drops} looks; {bytes} B in {batches} batches in both directions",
        running(),
    );
    // Without its hub, no peer looks for keys to remove.
    drop(centre);
    end(&peers, threads)
}
