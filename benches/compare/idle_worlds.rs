//! Started worlds in which nothing is due, and plain threads that wake as often.

use core::time::Duration;
use std::thread;

use bevy_app::App;
use bevy_due::{WorldGroups, prelude::*};
use cpu_time::ProcessTime;

use crate::sides::{Done, Side, Table};

const WORLDS: usize = 100;

/// The default interval of a world.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 60);

pub fn compare(table: &mut Table) {
    let wall = |units: usize| Duration::from_micros(5 * units as u64);
    table.line(
        ("worlds_idle", WORLDS, "waiting_threads"),
        None,
        |units| side(wall(units), worlds),
        |units| side(wall(units), threads),
    );
}

/// Returns a side that measures the CPU time of a contender that runs for a while. A unit is a
/// microsecond.
fn side<R: 'static>(wall: Duration, start: fn() -> R) -> Side {
    let mut done = Done::default();
    Box::new(move || {
        let running = start();
        thread::sleep(wall / 4);
        let before = ProcessTime::now();
        thread::sleep(wall);
        let time = before.elapsed();
        drop(running);
        done.units += wall.as_micros() as u64;
        (time, done)
    })
}

/// Worlds with the default interval.
fn worlds() -> WorldGroups {
    let mut groups = WorldGroups::new();
    let build = |app: &mut App| {
        app.add_plugins(DuePlugin::default());
    };
    let started = groups.start("idle", WORLDS, build);
    started.expect("a hundred threads");
    groups
}

/// Threads that wait for a message, and wake as often as the worlds.
fn threads() -> crossbeam_channel::Sender<()> {
    let (send, sent) = crossbeam_channel::unbounded();
    for _ in 0..WORLDS {
        let sent = sent.clone();
        let is_over = move || {
            sent.recv_timeout(INTERVAL)
                .is_err_and(|error| error.is_disconnected())
        };
        thread::spawn(move || while !is_over() {});
    }
    send
}
