//! What the examples `figures` of the links share: worlds that count and measure, and a table.

use core::time::Duration;
use std::{
    process::Child,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Instant,
};

use bevy_app::prelude::*;
use bevy_due::{
    Timer,
    message::{Delivery, MessageContext, Packet},
    prelude::*,
    worlds::{
        LoopInterval, Parcel, ParcelCommandsExt, ParcelEntityCommandsExt, StableKey, WorldGroups,
        link::Link,
    },
};
use bevy_ecs::prelude::*;

/// How often each figure is measured.
pub const ROUNDS: usize = 5;
/// The round trips of a round.
pub const TRIPS: usize = 10_000;
/// The parcels of a round.
pub const PARCELS: usize = 1_000_000;
/// What each parcel carries.
pub const PAYLOAD: [u8; 64] = [7; 64];

const ASK: u32 = 1;
const REPLY: u32 = 2;
const GO: u32 = 3;
const COUNT: u32 = 4;
const DONE: u32 = 5;

/// Prints a table of what each round has measured, and returns the medians.
pub fn print_table<const N: usize>(names: [&str; N], mut figures: [Vec<f64>; N]) -> [f64; N] {
    println!("| | lowest | median | highest |\n|---|---|---|---|");
    for (name, values) in names.iter().zip(&mut figures) {
        values.sort_by(f64::total_cmp);
        let [low, median, high] = [values[0], values[ROUNDS / 2], values[ROUNDS - 1]];
        println!("| {name} | {low:.0} | {median:.0} | {high:.0} |");
    }
    println!();
    figures.map(|values| values[ROUNDS / 2])
}

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct KillOnDrop(pub Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns the median in microseconds.
pub fn median(mut trips: Vec<Duration>) -> f64 {
    trips.sort();
    trips[trips.len() / 2].as_secs_f64() * 1e6
}

/// Returns how many thousands of [`PARCELS`] a second has carried since a start.
pub fn thousands_per_second(start: Instant) -> f64 {
    PARCELS as f64 / start.elapsed().as_secs_f64() / 1e3
}

/// Starts the worlds that answer and count, in the process that serves.
pub fn serve(link: impl Link) -> Result<WorldGroups> {
    let mut groups = WorldGroups::new();
    groups.start("echo", 1, answerer)?;
    groups.start("sink", 1, sink)?;
    groups.join(link)?;
    Ok(groups)
}

/// Worlds that measure, in the process that asks.
#[derive(Debug)]
pub struct Worlds {
    groups: WorldGroups,
    trips: Receiver<Vec<Duration>>,
    done: Receiver<()>,
}

impl Worlds {
    /// Starts the worlds, and waits until they know those of the other process.
    pub fn connect(link: impl Link) -> Result<Self> {
        let (tell_trips, trips) = mpsc::channel();
        let (tell_done, done) = mpsc::channel();
        let mut groups = WorldGroups::new();
        groups.start("local", 1, answerer)?;
        groups.start("askers", 1, move |app| {
            asker(app, tell_trips.clone(), tell_done.clone());
        })?;
        groups.join(link)?;
        while groups.running("sink") == 0 {
            thread::yield_now();
        }
        Ok(Self {
            groups,
            trips,
            done,
        })
    }

    /// Returns the median round trip to a group in microseconds: `"echo"` in the other process, or
    /// `"local"` in this one.
    pub fn round_trips(&self, group: &str) -> Result<f64> {
        let go = Packet::new(GO, group.as_bytes());
        self.groups
            .post(Parcel::new("askers", Delivery::InTurn, go))?;
        Ok(median(self.trips.recv()?))
    }

    /// Returns the thousands of parcels per second to the other process.
    pub fn throughput(&self) -> Result<f64> {
        let start = Instant::now();
        let packet = Packet::new(COUNT, PAYLOAD);
        for _ in 0..PARCELS {
            let mut parcel = Parcel::new("sink", Delivery::InTurn, packet.clone());
            while let Err(refused) = self.groups.post(parcel) {
                // The queue is full.
                thread::sleep(Duration::from_micros(100));
                parcel = refused.parcel;
            }
        }
        self.done.recv()?;
        Ok(thousands_per_second(start))
    }
}

/// A world that runs a frame only when a message arrives.
fn add_due(app: &mut App) {
    let due = DuePlugin {
        inbox_capacity: 1 << 24,
        inbox_bytes: 1 << 30,
        ..DuePlugin::default()
    };
    app.add_plugins(due);
    app.insert_resource(LoopInterval::Every(Duration::from_secs(3600)));
}

fn answerer(app: &mut App) {
    add_due(app);
    let reply = |mut me: MessageContext, asked: &Packet| -> Result {
        Ok(me.reply(Packet::new(REPLY, asked.payload()))?)
    };
    app.world_mut()
        .spawn(MessageComponent::new().on_packet(ASK, reply));
}

fn sink(app: &mut App) {
    #[derive(Component)]
    struct Counted(usize);

    add_due(app);
    let count = |mut me: MessageContext, _: &Packet| {
        let Some(mut counted) = me.entity.get_mut::<Counted>() else {
            return;
        };
        counted.0 += 1;
        if counted.0 == PARCELS {
            counted.0 = 0;
            let done = Packet::new(DONE, []);
            me.commands
                .post(Parcel::new("askers", Delivery::InTurn, done));
        }
    };
    app.world_mut()
        .spawn((Counted(0), MessageComponent::new().on_packet(COUNT, count)));
}

/// The round trips of an entity that asks again after each reply.
#[derive(Component, Default)]
struct Trips {
    group: String,
    start: Option<Instant>,
    times: Vec<Duration>,
}

fn asker(app: &mut App, trips: Sender<Vec<Duration>>, done: Sender<()>) {
    add_due(app);
    let trips = Arc::new(Mutex::new(trips));
    let asker = MessageComponent::new()
        .on_packet(GO, |mut me: MessageContext, group: &Packet| {
            if let Some(mut trips) = me.entity.get_mut::<Trips>() {
                trips.group = String::from_utf8_lossy(group.payload()).into();
            }
            ask(me);
        })
        .on_packet(REPLY, move |mut me: MessageContext, _: &Packet| {
            let Some(mut all) = me.entity.get_mut::<Trips>() else {
                return;
            };
            if let Some(start) = all.start {
                all.times.push(start.elapsed());
            }
            if all.times.len() < TRIPS {
                ask(me);
            } else if let Ok(trips) = trips.lock() {
                trips.send(core::mem::take(&mut all.times)).ok();
            }
        })
        .on_packet(DONE, move |_: MessageContext, _: &Packet| _ = done.send(()));
    app.world_mut()
        .spawn((StableKey(1), Trips::default(), asker));
}

fn ask(mut me: MessageContext) {
    let Some(mut trips) = me.entity.get_mut::<Trips>() else {
        return;
    };
    trips.start = Some(Instant::now());
    let parcel = Parcel::new(
        trips.group.clone(),
        Delivery::InTurn,
        Packet::new(ASK, PAYLOAD),
    );
    let id = me.entity.id();
    me.commands
        .entity(id)
        .ask_world(parcel, Timer::after(3600.0));
}
