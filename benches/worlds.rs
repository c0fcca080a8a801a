//! Measures a crowd of worlds on threads beside as many plain apps of Bevy on threads.
//!
//! ```text
//! cargo bench -p bevy_due_benches --bench worlds -- [--quick]
//! ```
//!
//! Prints CSV: `side,n,kib,start_us,cpu_us,post_us,wake_us,stop_us`, one line per process. Each side has a process
//! of its own, and they take turns. All numbers are per world:
//!
//! - `kib`: the resident memory after the first frame of all;
//! - `start_us`: the time from the first start until all have had a frame;
//! - `cpu_us`: the CPU time of all threads in this time;
//! - `post_us`: the time in which a parcel to all is posted, or a message to each app is sent;
//! - `wake_us`: the same until all have seen it;
//! - `stop_us`: the time in which all end, one after the other.

#![allow(missing_docs, reason = "a program")]

use core::{
    error::Error,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use std::{
    env, fs,
    process::Command,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    message::{Delivery, Packet},
    prelude::*,
    worlds::{LoopInterval, Parcel, WorldGroups},
};
use bevy_time::{Fixed, Time, TimePlugin};
use cpu_time::ProcessTime;

/// A page of memory.
const PAGE: u64 = 4096;

/// The number of worlds that have had a frame, and then of those that have got the message.
static SEEN: AtomicUsize = AtomicUsize::new(0);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    if let [side, n] = &args[..]
        && let Ok(n) = n.parse()
    {
        return match side.as_str() {
            "bevy_due" => measure::<WorldGroups>(side, n),
            _ => measure::<Apps>(side, n),
        };
    }
    let is_test = args.iter().any(|arg| arg == "--test");
    let is_quick = args.iter().any(|arg| arg == "--quick");
    let (turns, n) = match (is_test, is_quick) {
        (true, _) => (1, "10"),
        (_, true) => (3, "1000"),
        _ => (3, "10000"),
    };
    println!("side,n,kib,start_us,cpu_us,post_us,wake_us,stop_us");
    for _ in 0..turns {
        for side in ["bevy_due", "bevy"] {
            let status = Command::new(env::current_exe()?).args([side, n]).status()?;
            assert!(status.success(), "{side} has failed");
        }
    }
    Ok(())
}

trait Crowd {
    fn start(n: usize) -> Self;
    /// Sends something to all.
    fn post(&mut self);
    fn stop(self);
}

fn measure<C: Crowd>(side: &str, n: usize) -> Result<(), Box<dyn Error>> {
    let before = resident()?;
    let (start, cpu) = (Instant::now(), ProcessTime::now());
    let mut crowd = C::start(n);
    wait_for(n);
    let (started, cpu) = (start.elapsed(), cpu.elapsed());
    thread::sleep(Duration::from_millis(200));
    let bytes = resident()? - before;

    let post = Instant::now();
    crowd.post();
    let posted = post.elapsed();
    wait_for(2 * n);
    let woken = post.elapsed();

    let stop = Instant::now();
    crowd.stop();
    let stopped = stop.elapsed();

    let kib = bytes / 1024 / n as u64;
    let times = [started, cpu, posted, woken, stopped];
    let [started, cpu, posted, woken, stopped] =
        times.map(|time| time.as_nanos() as f64 / 1000.0 / n as f64);
    println!("{side},{n},{kib},{started:.1},{cpu:.1},{posted:.1},{woken:.1},{stopped:.1}");
    Ok(())
}

fn wait_for(seen: usize) {
    while SEEN.load(SeqCst) < seen {
        thread::sleep(Duration::from_micros(100));
    }
}

fn see() {
    SEEN.fetch_add(1, SeqCst);
}

/// A world that has slept catches up on the fixed steps, which are not measured here.
fn long_steps() -> Time<Fixed> {
    Time::from_seconds(3600.0)
}

fn resident() -> Result<u64, Box<dyn Error>> {
    let pages = fs::read_to_string("/proc/self/statm")?;
    let pages = pages.split(' ').nth(1).ok_or("no resident pages")?;
    Ok(PAGE * pages.parse::<u64>()?)
}

impl Crowd for WorldGroups {
    fn start(n: usize) -> Self {
        let mut groups = Self::new();
        let build = |app: &mut App| {
            app.add_plugins((TimePlugin, DuePlugin::default()))
                .insert_resource(LoopInterval::WhenDue(Duration::from_millis(10)))
                .insert_resource(long_steps())
                .add_systems(Startup, see);
            let post = MessageComponent::new().on_packet(1, |_, _: &Packet| see());
            app.world_mut().spawn(post);
        };
        groups.start("crowd", n, build).expect("enough threads");
        groups
    }

    fn post(&mut self) {
        let parcel = Parcel::new("crowd", Delivery::All, Packet::new(1, [0]));
        Self::post(self, parcel).expect("all have room");
    }

    fn stop(self) {
        Self::stop(self);
    }
}

/// Apps of Bevy on threads, which run a frame for each message and end with their channels.
type Apps = Vec<(mpsc::Sender<()>, JoinHandle<()>)>;

impl Crowd for Apps {
    fn start(n: usize) -> Self {
        let start = |nth| {
            let (message, messages) = mpsc::channel();
            let (built, was_built) = mpsc::channel();
            let thread = thread::Builder::new().name(format!("crowd {nth}"));
            let thread = thread.spawn(move || {
                let mut app = App::new();
                app.add_plugins(TimePlugin)
                    .insert_resource(long_steps())
                    .add_systems(Startup, see);
                app.finish();
                app.cleanup();
                built.send(()).ok();
                app.update();
                while messages.recv().is_ok() {
                    app.update();
                    see();
                }
            });
            was_built.recv().expect("it builds");
            (message, thread.expect("enough threads"))
        };
        (0..n).map(start).collect()
    }

    fn post(&mut self) {
        for (message, _) in self {
            message.send(()).expect("it runs");
        }
    }

    fn stop(self) {
        for (message, thread) in self.into_iter().rev() {
            drop(message);
            thread.join().expect("it does not panic");
        }
    }
}
