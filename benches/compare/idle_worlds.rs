//! Started worlds in which nothing is due, and plain threads that wait in the same way.

use core::time::Duration;
use std::thread;

use bevy_app::App;
use bevy_due::{
    prelude::*,
    worlds::{LoopInterval, WorldGroups},
};
use cpu_time::ProcessTime;
use crossbeam_channel::{Receiver, Sender};

use crate::sides::{Done, Side, Table};

const WORLDS: usize = 100;

/// The default interval of a world.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 60);

pub fn compare(table: &mut Table) {
    let wall = |units: usize| Duration::from_micros(5 * units as u64);
    table.line(
        ("worlds_idle", WORLDS, "waiting_threads"),
        None,
        |units| side(wall(units), || worlds(LoopInterval::default())),
        |units| side(wall(units), || threads(wake_often)),
    );
    table.line(
        ("worlds_asleep", WORLDS, "sleeping_threads"),
        None,
        |units| side(wall(units), || worlds(LoopInterval::WhenDue(INTERVAL))),
        |units| side(wall(units), || threads(sleep)),
    );
}

/// Returns a side that measures the CPU time of a contender that runs for a while. A unit is a
/// microsecond.
fn side<R: 'static>(wall: Duration, start: impl Fn() -> R + 'static) -> Side {
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

fn worlds(interval: LoopInterval) -> WorldGroups {
    let mut groups = WorldGroups::new();
    let build = move |app: &mut App| {
        app.add_plugins(DuePlugin::default())
            .insert_resource(interval);
    };
    let started = groups.start("idle", WORLDS, build);
    started.expect("a hundred threads");
    groups
}

/// Threads that wait for a message until the channel is closed.
fn threads(wait: fn(Receiver<()>)) -> Sender<()> {
    let (send, sent) = crossbeam_channel::unbounded();
    for _ in 0..WORLDS {
        let sent = sent.clone();
        thread::spawn(move || wait(sent));
    }
    send
}

/// Wakes as often as a world with the default interval.
fn wake_often(sent: Receiver<()>) {
    let is_over = || {
        let message = sent.recv_timeout(INTERVAL);
        message.is_err_and(|error| error.is_disconnected())
    };
    while !is_over() {}
}

fn sleep(sent: Receiver<()>) {
    while sent.recv().is_ok() {}
}
