//! Starts a cluster of zones, all joined, and prints what it costs. For a thousand shards with 10,000 entities each:
//! `cargo run --release -p bevy_due_ownership --example cluster_size -- 1000 10000`
//!
//! The hubs, links, zones and journals are real. All processes of the cluster run in this one, and links and disks
//! are in memory. `docs/thousand_shards.md` has figures.

use core::time::Duration;
use std::{env, fs, time::Instant};

use allocation_counter::measure;
use bevy_app::prelude::*;
use bevy_due::{
    DuePlugin,
    message::{MessageComponent, Packet},
    save::SaveWorldExt,
    worlds::{
        StableKey, WorldGroups,
        link::{Peer, PeerSettings},
    },
};
use bevy_due_ownership::{DurableEntityCommandsExt, Shard, SimulatedDisk, Zone};
use bevy_ecs::prelude::*;
use bevy_time::{TimePlugin, TimeUpdateStrategy};
use serde::{Deserialize, Serialize};

const GROUP: &str = "zones";
const FRAME: Duration = Duration::from_millis(16);
const LETTER: u32 = 1;
/// The letters and the moves of a step with many.
const MANY: u64 = 1000;
/// Frames in which nothing is on its way, before a step counts as done.
const QUIET: u32 = 5;

#[derive(Component, Clone, Serialize, Deserialize)]
struct Gold(u64);

fn main() -> Result {
    let sizes = env::args().skip(1).map(|it| it.parse().ok());
    let sizes: Option<Vec<u64>> = sizes.collect();
    let (shards, entities) = match sizes.as_deref() {
        Some(&[shards, entities]) if shards > 1 && entities > MANY => (shards, entities),
        _ => return Err("say how many shards, and how many entities each: `-- 100 2000`".into()),
    };
    let start = Instant::now();
    let processes = (0..shards).map(|nth| Process::start(nth, entities));
    let processes = processes.collect::<Result<Vec<_>>>()?;
    let took = start.elapsed();
    println!("{shards} shards with {entities} entities each start in {took:.1?}");
    println!("they hold {} MB, with their disks", resident() / 1_000_000);
    let mut cluster = Cluster::join(processes)?;
    cluster.print_steps()
}

/// A process with a zone and a disk.
struct Process {
    groups: WorldGroups,
    app: App,
    shard: Shard,
    disk: SimulatedDisk,
}

fn zone(nth: u64) -> StableKey {
    StableKey(1 + nth)
}

/// The key of entity `n` that is born in a zone.
fn entity(zone: u64, n: u64) -> StableKey {
    StableKey((1 + zone) << 32 | n)
}

impl Process {
    fn start(nth: u64, entities: u64) -> Result<Self> {
        let disk = SimulatedDisk::new(nth);
        let shard = Shard::open_simulated(disk.clone())?;
        let mut app = App::new();
        app.add_plugins((TimePlugin, DuePlugin::default()))
            .add_plugins(shard.zone(zone(nth)))
            .insert_resource(TimeUpdateStrategy::ManualDuration(FRAME));
        app.world_mut().add_saved_component::<Gold>("gold");
        let born = (0..entities).map(|n| (entity(nth, n), Gold(n)));
        app.world_mut().spawn_batch(born.collect::<Vec<_>>());
        let groups = WorldGroups::new();
        groups.add(GROUP, &mut app);
        app.update();
        shard.wait()?;
        Ok(Self {
            groups,
            app,
            shard,
            disk,
        })
    }

    /// Gives an entity commands.
    fn with(&mut self, key: StableKey, act: impl FnOnce(&mut EntityCommands)) {
        let world = self.app.world_mut();
        if let Some(entity) = world.resource::<Zone>().entity(key) {
            act(&mut world.commands().entity(entity));
            world.flush();
        }
    }
}

/// A link between two processes.
struct Wire([Peer; 2]);

/// What one end of links has cost.
#[derive(Default)]
struct Costs {
    sent: Traffic,
    got: Traffic,
    /// The bytes that the process holds for them.
    held: i64,
    /// The time that the process took for batches that came, and the most for one.
    busy: Duration,
    longest: Duration,
}

/// Batches with frames: parcels, changes of keys and worlds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Traffic {
    batches: u64,
    frames: u64,
    bytes: u64,
}

impl Wire {
    fn new(first: &Process, second: &Process, costs: &mut Costs) -> Self {
        // One thread carries everything, so no end may wait for long.
        let hour = Duration::from_secs(3600);
        let settings = PeerSettings {
            heartbeat: Duration::from_millis(1),
            suspect_after: hour,
            down_after: hour,
            ..PeerSettings::default()
        };
        let connect = |it: &Process| it.groups.handle().connect("peer", settings);
        Self([costs.hold(|| connect(first)), connect(second)])
    }

    /// Carries a batch from each end to the other, and notes what the first end costs.
    fn carry(&self, costs: &mut Costs) -> Result {
        let [first, second] = &self.0;
        let batch = costs.hold(|| first.next_batch());
        let batch = batch.ok_or("the link is closed")?;
        costs.held -= batch.capacity() as i64;
        costs.sent.note(&batch);
        second.receive(&batch)?;
        let batch = second.next_batch().ok_or("the link is closed")?;
        costs.got.note(&batch);
        let mut received = Ok(());
        let took = time(|| received = costs.hold(|| first.receive(&batch)));
        costs.busy += took;
        costs.longest = costs.longest.max(took);
        Ok(received?)
    }
}

impl Costs {
    /// Calls something, and notes what it allocates.
    fn hold<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let mut result = None;
        self.held += measure(|| result = Some(call())).bytes_current;
        result.expect("it was called")
    }
}

impl Traffic {
    fn note(&mut self, batch: &[u8]) {
        // The head of a batch ends with the number of frames.
        let frames = batch[41..45].try_into().map_or(0, u32::from_le_bytes);
        if frames > 0 {
            self.batches += 1;
            self.frames += u64::from(frames);
            self.bytes += batch.len() as u64;
        }
    }
}

struct Cluster {
    processes: Vec<Process>,
    /// Number `n` leads from the first process to process `n + 1`. Then come those of the others.
    wires: Vec<Wire>,
}

impl Cluster {
    /// Joins each two processes, and waits until each knows all worlds.
    fn join(mut processes: Vec<Process>) -> Result<Self> {
        let start = Instant::now();
        let (before, shards) = (resident(), processes.len());
        let [mut first, mut others] = [(); 2].map(|()| Costs::default());
        let mut wires = Vec::new();
        for (nth, process) in processes.iter().enumerate() {
            let costs = if nth == 0 { &mut first } else { &mut others };
            let to = processes[nth + 1..].iter();
            wires.extend(to.map(|other| Wire::new(process, other, costs)));
        }
        let is_up = |process: &Process| process.groups.running(GROUP) == shards;
        // Each tells each other one of its world, of one key, and that this is all.
        let frames = 3 * (shards as u64 - 1);
        while first.got.frames < frames || !processes.iter().all(is_up) {
            for (nth, wire) in wires.iter().enumerate() {
                let is_first = nth < shards - 1;
                wire.carry(if is_first { &mut first } else { &mut others })?;
            }
        }
        println!("all are joined after {:.1?}", start.elapsed());
        println!("they hold {} MB more", (resident() - before) / 1_000_000);
        println!("one sends {:?}, gets {:?}", first.sent, first.got);
        println!("it holds {} B more", first.held);
        let Costs { busy, longest, .. } = first;
        println!("it is busy for {busy:.1?}, and for one batch {longest:.1?}");
        for process in &mut processes {
            process.app.update();
            process.shard.wait()?;
        }
        Ok(Self { processes, wires })
    }

    fn print_steps(&mut self) -> Result {
        let all = self.processes.len();
        let ears = MessageComponent::new().on_packet(LETTER, |_, _: &Packet| {});
        self.processes[1].with(entity(1, 0), |it| _ = it.insert(ears));
        let mail = |process: &mut Process, n| {
            let letter = Packet::new(LETTER, [0; 16]);
            process.with(entity(0, n), |it| _ = it.mail(entity(1, 0), letter));
        };
        let go =
            |process: &mut Process, n| process.with(entity(0, n), |it| _ = it.move_to(zone(1)));
        self.step("a letter to an unknown zone", all, |it| mail(it, 0))?;
        self.step("a letter to a known zone", 2, |it| mail(it, 0))?;
        self.step("1000 letters", 2, |it| (0..MANY).for_each(|n| mail(it, n)))?;
        self.step("a move", 2, |it| go(it, MANY))?;
        self.step("1000 moves", 2, |it| (0..MANY).for_each(|n| go(it, n)))?;
        let app = &mut self.processes[all - 1].app;
        let mut frames = [(); 201].map(|()| time(|| app.update()));
        frames.sort_unstable();
        let lost = time(|| self.wires[0].0[0].disconnected());
        let rest = frames[100];
        println!("a frame at rest takes {rest:.1?}, and to lose a process {lost:.1?}");
        Ok(())
    }

    /// Lets the first process do something, and runs frames of this many processes until nothing is on its way.
    fn step(&mut self, what: &str, count: usize, act: impl FnOnce(&mut Process)) -> Result {
        let written = self.written();
        act(&mut self.processes[0]);
        let mut costs = Costs::default();
        let [mut frames, mut quiet] = [0, 0];
        let mut busy = Duration::ZERO;
        while quiet < QUIET {
            let before = (costs.sent, costs.got);
            for process in &mut self.processes[..count] {
                busy += time(|| process.app.update());
            }
            let processes = &self.processes[..count];
            processes.iter().try_for_each(|it| it.shard.wait())?;
            let on_the_way = |it: &Process| it.app.world().resource::<Zone>().on_the_way();
            let is_quiet = processes.iter().all(|it| on_the_way(it) == 0);
            for wire in &self.wires[..count - 1] {
                wire.carry(&mut costs)?;
            }
            frames += 1;
            quiet += 1;
            if !is_quiet || before != (costs.sent, costs.got) {
                quiet = 0;
            }
        }
        println!(
            "{what}: {} frames, worlds are busy for {busy:.1?}",
            frames - QUIET
        );
        println!("    sends {:?}, gets {:?}", costs.sent, costs.got);
        let [bytes, syncs] = [0, 1].map(|it| self.written()[it] - written[it]);
        println!("    the journals write {bytes} B in {syncs} syncs");
        Ok(())
    }

    /// Returns the bytes that the journals of the first two processes have written, and their syncs.
    fn written(&self) -> [u64; 2] {
        let disks = self.processes[..2].iter().map(|it| &it.disk);
        disks.fold([0; 2], |[bytes, syncs], it| {
            [bytes + it.written(), syncs + it.syncs()]
        })
    }
}

fn time(call: impl FnOnce()) -> Duration {
    let start = Instant::now();
    call();
    start.elapsed()
}

/// Returns the memory of this process, or 0 where there is no `/proc`.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|it| it.parse().ok());
    4096 * pages.unwrap_or(0_u64)
}
