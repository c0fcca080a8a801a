//! `WorldGroups`, which runs worlds on their own threads.

mod asleep;
mod delivery;
mod held;
mod questions;
mod refusal;
mod remote;
mod running;
mod stress;
mod the_end;

use core::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, ThreadId},
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    Timer,
    message::{
        Delivery, MessageContext, MessageStats, NoAnswer, Packet, RefusalReason, ReplyError,
        ReplyTo,
    },
    prelude::*,
    worlds::{
        LoopInterval, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, Refused, StableKey,
        StartError, WorldGroups, WorldLink, WorldReport,
    },
};
use bevy_ecs::{
    error::{BevyError, ErrorContext, FallbackErrorHandler, Severity},
    prelude::*,
};
use bevy_time::TimePlugin;

/// The time limit of each wait.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An interval so long that a world runs only when a message arrives.
const NEVER: LoopInterval = LoopInterval::Every(Duration::from_secs(3600));

const SAY: u32 = 1;
const WAIT: u32 = 2;
const PANIC: u32 = 3;
const QUESTION: u32 = 4;
const ANSWER: u32 = 5;
const ANSWER_NOW: u32 = 6;
const GO: u32 = 7;

/// Starts worlds, and adds a `DuePlugin` to each.
trait StartWorlds {
    fn start_worlds(
        &mut self,
        group: &'static str,
        worlds: usize,
        build: impl Fn(&mut App) + Send + Sync + 'static,
    ) -> Result<(), StartError>;
}

impl StartWorlds for WorldGroups {
    fn start_worlds(
        &mut self,
        group: &'static str,
        worlds: usize,
        build: impl Fn(&mut App) + Send + Sync + 'static,
    ) -> Result<(), StartError> {
        self.start(group, worlds, move |app| {
            app.add_plugins(DuePlugin::default());
            build(app);
        })
    }
}

fn number(id: u32, number: u32) -> Packet {
    Packet::new(id, number.to_le_bytes())
}

fn read(packet: &Packet) -> u32 {
    u32::from_le_bytes(packet.payload().try_into().unwrap())
}

fn say(group: &'static str, to: impl Into<Delivery<StableKey>>, what: u32) -> Parcel {
    Parcel::new(group, to, number(SAY, what))
}

fn next<T>(receiver: &Receiver<T>) -> T {
    let next = receiver.recv_timeout(TIMEOUT);
    next.expect("it should have come long ago")
}

fn wait_until(mut is_so: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until this many worlds have ended by themselves, and returns their reports.
fn ended(groups: &mut WorldGroups, worlds: usize) -> Vec<WorldReport> {
    let mut reports = Vec::new();
    let all = || {
        reports.extend(groups.ended());
        reports.len() >= worlds
    };
    wait_until(all, "a world should have ended");
    reports
}

/// Asserts that worlds ended without a panic or a lost message.
fn end_well(reports: &[WorldReport]) {
    for report in reports {
        assert!(report.panic.is_none(), "{report:?}");
        assert!(report.undelivered.is_empty(), "{report:?}");
    }
}

fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort();
    all
}

/// Builds worlds with an entity that reports each packet it receives, with the number of its world.
/// That number is also the key of the entity.
fn listener(heard: Sender<(usize, u32)>) -> impl Fn(&mut App) + Send + Sync + 'static {
    let spawn = spawn_listener(heard);
    move |app| spawn(app.world_mut())
}

fn spawn_listener(heard: Sender<(usize, u32)>) -> impl Fn(&mut World) + Send + Sync + 'static {
    let worlds = AtomicUsize::new(0);
    move |world| {
        let nth = worlds.fetch_add(1, Ordering::Relaxed);
        let heard = heard.clone();
        let ears =
            MessageComponent::new().on_packet(SAY, move |_: MessageContext, said: &Packet| {
                heard.send((nth, read(said))).ok();
            });
        world.spawn((StableKey(nth as u64), ears));
    }
}

/// A gate that blocks callbacks until it is opened.
struct Gate {
    waits: Receiver<()>,
    open: Sender<()>,
    inside: Arc<(Sender<()>, Mutex<Receiver<()>>)>,
}

impl Gate {
    fn new() -> Self {
        let (arrive, waits) = mpsc::channel();
        let (open, opened) = mpsc::channel();
        Self {
            waits,
            open,
            inside: Arc::new((arrive, Mutex::new(opened))),
        }
    }

    /// Returns a function that waits at the gate.
    fn pass(&self) -> impl Fn() + Clone + Send + Sync + 'static {
        let inside = self.inside.clone();
        move || {
            let (arrive, opened) = &*inside;
            arrive.send(()).ok();
            opened.lock().unwrap().recv_timeout(TIMEOUT).ok();
        }
    }

    /// Returns a component that waits at the gate when it receives the packet `WAIT`.
    fn keeper(&self) -> MessageComponent {
        let pass = self.pass();
        MessageComponent::new().on_packet(WAIT, move |_: MessageContext, _: &Packet| pass())
    }

    /// Waits until a callback has reached the gate.
    fn somebody_waits(&self) {
        next(&self.waits);
    }

    fn open(&self) {
        self.open.send(()).unwrap();
    }
}
