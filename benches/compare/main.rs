//! Compares this crate with other designs on the same work.
//!
//! ```text
//! cargo bench -p bevy_due_benches --bench compare -- [--quick] [--chart FILE] [TEXT]
//! ```
//!
//! `--quick` runs fewer frames and fewer turns. `--chart FILE` also draws a chart of frame times. With
//! a text such as `periodic,1000,` only the lines that contain it run.
//!
//! Prints CSV: `workload,n,peer,ours_ns,peer_ns,ratio`. Both sides take turns in one process. The
//! times are medians per unit, and the ratio is the time of the peer divided by ours. If the standard
//! error is a terminal, a bar shows how many turns have been taken.
//!
//! | workload | what it does | unit |
//! |---|---|---|
//! | `queue_periodic` | expires periodic timers with periods of 1 to 60 s | one expiry |
//! | `queue_cancel_90` | arms n/500 timers per frame for 1 to 30 s, and cancels nine in ten early | one lifetime: armed, then cancelled or expired |
//! | `queue_burst` | expires every timer in every frame | one expiry |
//! | `queue_clustered` | expires periodic timers with seven periods, from half a second to a minute | one expiry |
//! | `app_idle` | runs frames in which no timer is due for a year | one frame |
//! | `app_periodic_messages` | fires every 1 to 60 s, handled as messages | one frame |
//! | `app_periodic_observers` | fires every 1 to 60 s, handled by an observer | one frame |
//! | `app_due_15_percent` | fires 15 % of the timers in every frame, handled as messages | one frame |
//! | `app_burst` | fires every timer in every frame, all armed together, handled as messages | one frame |
//! | `app_spawn` | spawns entities with an id and a timer one by one, and runs a frame | one spawn |
//! | `app_spawn_batch` | spawns the same entities with `spawn_batch`, and runs a frame | one spawn |
//! | `app_despawn` | despawns the same entities one by one, and runs a frame | one despawn |
//! | `app_despawn_shuffled` | despawns the same entities in random order, and runs a frame. The next turn reuses their slots in that order | one despawn |
//! | `app_bullets` | spawns n bullets a second, which live two seconds | one frame |
//! | `app_buffs` | ticks a periodic effect on each unit, every 0.25 to 5 s, and changes a component | one frame |
//! | `app_keyed` | sets, refreshes and cancels one of four keyed timers on 1 % of the units each, while others end | one frame |
//! | `app_clocks` | runs frames with a clock and a timer on each entity, none due | one frame |
//! | `app_unit_clocks` | ticks five effects on each unit, every one to six seconds, with a clock on each unit, against the same without and against ticking | one frame |
//! | `app_requests` | answers one in a hundred of n open requests with time-outs, and makes it again | one frame |
//! | `systems_idle`, `systems_periodic` | runs fifty systems on several threads, with timers of which none is due, or that fire every 1 to 60 s | one frame |
//! | `app_observer_elsewhere` | fires 1 % of the timers in every frame, handled as messages, beside an observer on an entity without a timer | one frame |
//! | `app_exact_frames` | fires 1 % of the timers in every frame, handled as messages, with `DuePlugin::exact_frames` and without | one deadline |
//! | `app_gone_clocks_1_due`, `app_gone_clocks_1000_due` | fires so many timers in every frame, after n clocks with a timer each were spawned and despawned | one frame |
//! | `fast_forward_idle_clocks`, `fast_forward_idle_clocks_with_timers` | fast-forwards the game clock over 300 deadlines, beside n clocks on which nothing is due | one deadline |
//! | `snapshot` | takes a snapshot of all timers, 1 % of which fire in every frame | one snapshot |
//! | `restore` | goes back to the snapshot after a frame | one restore |
//! | `snapshot_gone_timers` | takes a snapshot of a thousand timers, after n others were spawned and despawned | one snapshot |
//! | `app_update` | calls a closure per entity every frame, which adds the time to a component | one call |
//! | `group_broadcast` | sends packets to both of two worlds on threads, which add them up | one packet sent |
//! | `group_exclusive` | sends each packet to one of the two worlds, in turn | one packet sent |
//! | `group_latency` | sends requests to another world, each after the reply to the last | one request; the median |
//! | `group_wake` | sends requests to another world, which replies after a moment, so that both worlds or threads sleep; the pauses do not count | one request; the median |
//! | `worlds_idle` | waits with n started worlds, or n plain threads, and measures the CPU time | one microsecond |
//! | `worlds_asleep` | waits with n worlds that sleep while nothing is due, or n threads that wait for a message, and measures the CPU time | one microsecond |
//! | `message_to_one` | sends one message to each of n entities in every frame | one message |
//! | `message_broadcast` | sends ten messages per frame to all followers, one in a hundred of n entities | one delivery |
//! | `message_from_thread` | sends from n threads as fast as they can while frames run | one message |
//!
//! A frame is a sixtieth of a second. No delay is longer than a minute, so the narrow buckets of
//! `TimerQueue` cover all of them. A longer delay costs it one or two more moves before the deadline.
//! A reaction in an app records the entity of the firing and touches none of its components. Short
//! runs see mostly the first expiries of the slower timers, long runs see several.
//!
//! In a queue workload, both sides count the expiries. An exact peer must also reach the same checksum
//! of the expiries in order. A peer without exact order may differ by the expiries of about three
//! frames. Apps must fire the same timers in each turn, in any order.
//!
//! A peer that is too slow for a size is skipped there, so its last line is the largest size that it
//! can handle.
//!
//! In reading order: `work` has the numbers, `sides` the turns and the table. `queue` has the queue
//! workloads, and `peers` the queues. `app` and `spawn` have the app workloads, and `contenders` the
//! apps. `lifetimes`, `buffs`, `keyed`, `clocks` and `requests` have what games do, and `executor` an app
//! on several threads. `elsewhere` has what should cost nothing, and exact frames. `rollback` has snapshots, `update` update callbacks, `message` messages, and
//! `group` and `idle_worlds` worlds on threads, each with its peers. `chart` draws the chart.

#![allow(missing_docs, unreachable_pub, reason = "a program")]

mod app;
mod buffs;
mod chart;
mod clocks;
mod contenders;
mod elsewhere;
mod executor;
mod frames;
mod group;
mod idle_worlds;
mod keyed;
mod lifetimes;
mod message;
mod peers;
mod queue;
mod requests;
mod rollback;
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
    max_n: usize::MAX,
};
const FULL: Effort = Effort {
    pairs: 5,
    units: 600_000,
    max_n: usize::MAX,
};
/// Long enough for the assertions, too short for the times.
const TEST: Effort = Effort {
    pairs: 1,
    units: 2_000,
    max_n: 10_000,
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
            // Cargo passes this to every bench.
            "--bench" => {}
            // `cargo bench -p bevy_due_benches -- --test` passes this to every bench.
            "--test" => effort = TEST,
            unknown if unknown.starts_with("--") => {
                let error =
                    format!("unknown option {unknown}: use --quick, --chart PATH or --test");
                return Err(error.into());
            }
            name => name.clone_into(&mut filter),
        }
    }
    let lines = Table::measure(effort, filter, compare);
    if let Some(path) = chart {
        chart::draw(path.as_ref(), &lines)?;
    }
    Ok(())
}

fn compare(table: &mut Table) {
    queue::compare(table);
    app::compare(table);
    spawn::compare(table);
    lifetimes::compare(table);
    buffs::compare(table);
    keyed::compare(table);
    clocks::compare(table);
    requests::compare(table);
    executor::compare(table);
    elsewhere::compare(table);
    rollback::compare(table);
    update::compare(table);
    group::compare(table);
    idle_worlds::compare(table);
    message::compare(table);
}
