//! This crate's queue beside other shapes of a timer queue, on the same work.
//!
//! ```text
//! cargo bench --bench compare                       everything
//! cargo bench --bench compare -- --quick            fewer frames and pairs
//! cargo bench --bench compare -- --quick periodic   what has that in its name
//! ```
//!
//! Prints CSV: `workload,n,peer,ours_ns,peer_ns,ratio`. Both sides take turns in one process; the
//! times are medians, and the ratio is theirs by ours. The unit is per expiry for `queue_periodic`,
//! `queue_burst` and `queue_clustered`, per lifetime (armed, then cancelled or expired) for
//! `queue_cancel_90`. A peer that can't get through a size is left out there.
//!
//! What fires is counted on both sides, and a checksum of it in order must be equal; of peers that
//! keep no exact order, the count must.

#![allow(missing_docs, unreachable_pub, reason = "a program")]

mod peers;
mod queue;
mod sides;

use std::env;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often both sides take their turn.
    pub pairs: usize,
    /// Whether a turn is a short one.
    pub quick: bool,
}

fn main() {
    let mut quick = false;
    let mut filter = String::new();
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--quick" => quick = true,
            // What cargo says to every bench, and `cargo bench -- --test` to all of them.
            "--bench" => {}
            "--test" => return,
            name => name.clone_into(&mut filter),
        }
    }
    let effort = Effort {
        pairs: if quick { 3 } else { 7 },
        quick,
    };
    println!("workload,n,peer,ours_ns,peer_ns,ratio");
    queue::compare(effort, &filter);
}
