//! This crate's timers beside other shapes of a timer queue, on the same work.
//!
//! ```text
//! cargo bench --bench compare                          everything
//! cargo bench --bench compare -- --quick               fewer frames and pairs
//! cargo bench --bench compare -- --quick periodic,1000, the lines that have that in them
//! cargo bench --bench compare -- --chart out.svg       everything, and a picture of the app's
//! ```
//!
//! Prints CSV: `workload,n,peer,ours_ns,peer_ns,ratio`. Both sides take turns in one process; the
//! times are medians, and the ratio is theirs by ours.
//!
//! | workload | what it does | unit |
//! |---|---|---|
//! | `queue_periodic` | timers that repeat every 1 to 60 s | an expiry |
//! | `queue_cancel_90` | n/500 armed a frame for 1 to 30 s, nine in ten cancelled early | a lifetime: armed, then cancelled or expired |
//! | `queue_burst` | everything due in every frame | an expiry |
//! | `queue_clustered` | periods out of seven, from half a second to a minute | an expiry |
//! | `app_idle` | nothing due within a year | a frame |
//! | `app_periodic_messages` | every 1 to 60 s, handled as messages | a frame |
//! | `app_periodic_observers` | every 1 to 60 s, handled by an observer | a frame |
//! | `app_due_15_percent` | 15 % due in every frame, handled as messages | a frame |
//! | `app_burst` | everything due in every frame, all armed together, handled as messages | a frame |
//! | `app_spawn` | entities of an id and a timer spawned one by one, and a frame | a spawn |
//! | `app_spawn_batch` | the same by `spawn_batch` | a spawn |
//! | `app_despawn` | all of them despawned one by one, and a frame | a despawn |
//! | `app_update` | a closure of each entity, called in every frame, adds the time to a component of it | a call |
//! | `group_broadcast` | packets to each of two worlds on threads of their own, which sum them up | a packet that is sent |
//! | `group_exclusive` | the same to one of the two in turn | a packet that is sent |
//! | `group_latency` | a world asks another, and asks again when it has the answer | a question; the median |
//! | `message_to_one` | one message to each of n entities in every frame | a message |
//! | `message_broadcast` | ten messages in every frame to one in a hundred of n entities that follow something | a message that somebody is given |
//! | `message_from_thread` | as many as n threads can send while frames are run | a message |
//!
//! A frame is a sixtieth of a second. Delays are no longer than a minute, which the narrow buckets
//! of `TimerQueue` cover: longer ones cost it a move or two more, ahead of their time. A reaction in
//! an app notes which entity it was for, and touches none of its components. The short runs see
//! mostly the first expiries of the slower timers, the long ones several.
//!
//! What a workload of the queue fires is counted on both sides,
//! and a checksum of it in order must be equal; of peers that keep no exact order, the count must,
//! but for what is due in about three frames. What an app fires must be the same in each turn,
//! in whatever order.
//!
//! A peer that is too slow for a size is left out there, so its last line is the most that it can.
//!
//! In the order of reading: `work` are the numbers, `sides` the turns and the table; `queue` are the
//! workloads of the queue and `peers` what they run on; `app` and `spawn` are the workloads of the
//! app and `contenders` what they run on; `update` are functions of entities, `message` messages,
//! `group` worlds on threads, each with what stands beside them; `chart` is the picture.

#![allow(missing_docs, unreachable_pub, reason = "a program")]

mod app;
mod chart;
mod contenders;
mod group;
mod message;
mod peers;
mod queue;
mod sides;
mod spawn;
mod update;
mod work;

use core::error::Error;
use std::env;

use sides::{Effort, Table};

const QUICK: Effort = Effort {
    pairs: 3,
    units: 200_000,
    most: usize::MAX,
};
const FULL: Effort = Effort {
    pairs: 5,
    units: 600_000,
    most: usize::MAX,
};
/// For what is asserted, not for the times.
const TEST: Effort = Effort {
    pairs: 1,
    units: 2_000,
    most: 10_000,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut effort = FULL;
    let mut chart = None;
    let mut filter = String::new();
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => effort = QUICK,
            "--chart" => chart = Some(arguments.next().ok_or("--chart needs a path")?),
            // What cargo says to every bench, and `cargo bench -- --test` to all of them.
            "--bench" => {}
            "--test" => effort = TEST,
            unknown if unknown.starts_with("--") => {
                return Err(format!("{unknown} is none of --quick, --chart and --test").into());
            }
            name => name.clone_into(&mut filter),
        }
    }
    let mut table = Table::new(effort, filter);
    queue::compare(&mut table);
    app::compare(&mut table);
    spawn::compare(&mut table);
    update::compare(&mut table);
    group::compare(&mut table);
    message::compare(&mut table);
    if let Some(path) = chart {
        chart::draw(path.as_ref(), table.lines())?;
    }
    Ok(())
}
