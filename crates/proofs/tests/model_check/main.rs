//! The state that threads share, checked by Shuttle: the inbox, the groups of worlds, and their end.
//!
//! A plain build leaves these tests out. `crates/proofs/model_check` compiles the crate with
//! `--cfg shuttle`, which replaces its locks, atomics, channels and threads (`src/sync.rs`). The
//! checker then runs one thread at a time, chooses the one that takes each step, and runs each test
//! under many such schedules. A wait without a waker fails as a deadlock, and a `park_timeout` never
//! times out, so the interval of a world can't hide a lost wake-up.
//!
//! Shuttle was preferred to Loom because it can run whole apps with their threads. Loom tries all
//! schedules, and also the reorderings of weak memory. The first is done here for the inbox
//! (`check_all`). The second would find little: locks guard everything but flags and counters, which
//! publish no other data.

#![cfg(shuttle)]
#![allow(missing_docs, reason = "test code")]

mod groups;
mod inbox;
mod keys;
mod requests;
mod the_end;

use core::time::Duration;
use std::{
    env,
    sync::{Arc, Mutex},
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    message::{
        Delivery, Letter, MessageContext, MessageSender, MessageWorldExt, Packet, RefusalReason,
        SendError,
    },
    prelude::*,
    worlds::{
        GroupsHandle, LoopInterval, Parcel, ParcelCommandsExt, Refused, StableKey, WorldGroups,
        WorldReport,
    },
};
use bevy_ecs::{
    prelude::*,
    schedule::{ScheduleLabel, SingleThreadedExecutor},
};
use bevy_time::prelude::*;
use shuttle::{
    Config, MaxSteps, Runner,
    scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler},
    thread,
};

/// An interval so long that a world runs only when a message arrives.
const NEVER: LoopInterval = LoopInterval::Every(Duration::from_secs(3600));

const SAY: u32 = 1;
const EXIT: u32 = 2;

/// Runs a scenario under random schedules. In the second half of the time they have few preemptions,
/// so a waiting thread is overtaken many times.
fn check(scenario: fn()) {
    let any = check_for_half(|seed| RandomScheduler::new_from_seed(seed, BATCH), scenario);
    let few = check_for_half(|seed| PctScheduler::new_from_seed(seed, 3, BATCH), scenario);
    println!("{}: {any} random schedules, {few} of PCT", test_name());
}

/// The number of schedules from one seed.
const BATCH: usize = 50;

/// Runs batches of schedules for half the time of a test, and returns the number of schedules.
fn check_for_half<S: Scheduler + 'static>(new: impl Fn(u64) -> S, scenario: fn()) -> usize {
    let half = Duration::from_secs_f64(from_env("MODEL_CHECK_SECONDS", 1.0) / 2.0);
    let first = from_env("MODEL_CHECK_SEED", 0);
    let start = Instant::now();
    let seeds = (first..).take_while(|_| start.elapsed() < half);
    seeds
        .map(|seed| Runner::new(new(seed), config()).run(scenario))
        .sum()
}

/// Runs a scenario under all schedules. It must not wait in a loop.
fn check_all(scenario: fn()) {
    const MAX: usize = 1_000_000;

    let all = Runner::new(DfsScheduler::new(Some(MAX), false), config()).run(scenario);
    assert!(all < MAX, "too many schedules to try all");
    println!("{}: all {all} schedules", test_name());
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    // More steps than a scenario takes: it goes round in circles.
    config.max_steps = MaxSteps::FailAfter(100_000);
    config
}

fn from_env<T: core::str::FromStr>(name: &str, default: T) -> T {
    let text = env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or_default().into()
}

/// Records deliveries in order. The checker runs one thread at a time, so this lock never waits.
struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Log<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn push(&self, entry: T) {
        self.0.lock().unwrap().push(entry);
    }

    /// Takes all entries since the last call.
    fn take(&self) -> Vec<T> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Builds an app that only has the schedules of the plugin, because that is quick. [`frame`] runs them.
fn app(due: DuePlugin) -> App {
    let mut app = App::empty();
    app.init_resource::<AppTypeRegistry>()
        .init_resource::<Time>()
        .init_resource::<Time<Real>>()
        .init_resource::<Time<Virtual>>()
        .init_resource::<Time<Fixed>>()
        .add_plugins(due);
    for schedule in [First.intern(), PreUpdate.intern()] {
        app.edit_schedule(schedule, |schedule| {
            // The checker sees no other threads than its own.
            schedule.set_executor(SingleThreadedExecutor::new());
        });
    }
    app
}

/// Reads the clocks, and runs the timers, the updates and the messages.
fn frame(app: &mut App) {
    app.world_mut().run_schedule(First);
    app.world_mut().run_schedule(PreUpdate);
}

fn number(id: u32, number: u32) -> Packet {
    Packet::new(id, number.to_le_bytes())
}

fn read(packet: &Packet) -> u32 {
    u32::from_le_bytes(packet.payload().try_into().unwrap())
}

fn say(to: impl Into<Delivery<StableKey>>, what: u32) -> Parcel {
    Parcel::new("worlds", to, number(SAY, what))
}

/// Starts worlds of the group "worlds". The n-th has an entity with the key n that logs the packets
/// `SAY` with n, and ends its world on the packet `EXIT`.
fn start_worlds(groups: &mut WorldGroups, worlds: usize, log: &Log<(u64, u32)>) {
    for nth in 0..worlds as u64 {
        let log = log.clone();
        let build = move |app: &mut App| {
            let log = log.clone();
            let ears = MessageComponent::new()
                .on_packet(SAY, move |_: MessageContext, said: &Packet| {
                    log.push((nth, read(said)));
                })
                .on_packet(EXIT, |mut me: MessageContext, _: &Packet| {
                    me.commands.write_message(AppExit::Success);
                });
            app.add_plugins(DuePlugin::default()).insert_resource(NEVER);
            app.world_mut().spawn((StableKey(nth), ears));
        };
        groups.start("worlds", 1, build).unwrap();
    }
}

/// Posts three numbers from each of two threads, to the worlds in turn.
fn post_on_two_threads(groups: &WorldGroups) -> [thread::JoinHandle<Vec<u32>>; 2] {
    [0..3, 3..6].map(|numbers| post_on_thread(groups, Delivery::InTurn, numbers))
}

/// Posts numbers on a thread. The thread returns the accepted numbers. All others were refused
/// because no world runs.
fn post_on_thread(
    groups: &WorldGroups,
    to: Delivery<StableKey>,
    numbers: impl IntoIterator<Item = u32> + Send + 'static,
) -> thread::JoinHandle<Vec<u32>> {
    let handle = groups.handle();
    let post = move |what: &u32| match handle.post(say(to, *what)) {
        Ok(()) => true,
        Err(refused) => {
            assert_eq!(refused.reason, RefusalReason::UnknownGroup);
            assert_eq!(refused.parcel, say(to, *what), "it comes back as it was");
            false
        }
    };
    thread::spawn(move || numbers.into_iter().filter(post).collect())
}

/// Returns the numbers that worlds handed back at their end.
fn undelivered(reports: &[WorldReport]) -> impl Iterator<Item = u32> {
    let letters = reports.iter().flat_map(|report| &report.undelivered);
    letters.map(|letter| read(letter.packet().unwrap()))
}

fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort();
    all
}

/// Checks that each accepted number was delivered or handed back, once.
fn assert_none_lost(accepted: Vec<u32>, log: &Log<(u64, u32)>, reports: &[WorldReport]) {
    let delivered = log.take().into_iter().map(|entry| entry.1);
    let arrived = sorted(delivered.chain(undelivered(reports)));
    assert_eq!(arrived, sorted(accepted));
}
