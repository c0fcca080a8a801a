//! Zones in a process each, with a disk each.

use core::time::Duration;
use std::time::Instant;

use allocation_counter::measure;
use bevy_app::prelude::*;
use bevy_due::{
    message::{MessageComponent, Packet},
    worlds::{StableKey, link::FromPeer},
};
use bevy_due_ownership::{DurableEntityCommandsExt, Shard, SimulatedDisk, Zone};
use bevy_ecs::{component::Component, error::Result};
use serde::{Deserialize, Serialize};

use crate::{
    process::Process,
    wire::{Traffic, Wire, settle},
};

const LETTER: u32 = 1;
/// The entities of each zone.
pub(crate) const ENTITIES: u64 = 8;
/// Frames in which nothing is on its way, before a step counts as done.
const QUIET: u32 = 5;
/// Zones have keys below this one, and entities have others.
const FIRST_ENTITY: u64 = 10_000;

#[derive(Component, Clone, Default, Serialize, Deserialize)]
struct Gold(u64);

/// Which processes are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Each two of them.
    All,
    /// The first one with each other one. They take only the keys of zones from each other.
    Star,
}

/// A process with a zone and a disk.
struct Node {
    process: Process,
    shard: Shard,
    disk: SimulatedDisk,
}

pub(crate) struct Cluster {
    nodes: Vec<Node>,
    wires: Vec<Wire>,
    shape: Shape,
}

/// What a step has cost.
pub(crate) struct Step {
    pub(crate) traffic: Traffic,
    /// The bytes that the journals have written, and their syncs.
    pub(crate) written: u64,
    pub(crate) syncs: u64,
    pub(crate) frames: u32,
}

fn zone(nth: u64) -> StableKey {
    StableKey(1 + nth)
}

/// The entity `n` that is born in a zone.
pub(crate) fn entity(zone: u64, n: u64) -> StableKey {
    StableKey(FIRST_ENTITY + 100 * zone + n)
}

fn ears() -> MessageComponent {
    MessageComponent::new().on_packet(LETTER, |mut me, _: &Packet| {
        if let Some(mut gold) = me.entity.get_mut::<Gold>() {
            gold.0 += 1;
        }
    })
}

impl Cluster {
    pub(crate) fn start(size: u64, shape: Shape) -> Result<Self> {
        let nodes: Vec<Node> = (0..size).map(start_node).collect::<Result<_>>()?;
        let mut wires = Vec::new();
        let joined = match shape {
            Shape::All => &nodes[..],
            Shape::Star => &nodes[..1],
        };
        for (nth, first) in joined.iter().enumerate() {
            let others = nodes[nth + 1..].iter();
            wires.extend(others.map(|second| Wire::new(&first.process, &second.process)));
        }
        if shape == Shape::Star {
            nodes.iter().for_each(|node| take_only_zones(&node.process));
        }
        let mut cluster = Self {
            nodes,
            wires,
            shape,
        };
        settle(&cluster.wires)?;
        cluster.step(|_| {})?;
        Ok(cluster)
    }

    /// Does something, and runs frames until nothing is on its way any more.
    pub(crate) fn step(&mut self, act: impl FnOnce(&mut Self)) -> Result<Step> {
        let written = self.written();
        act(self);
        let mut step = Step {
            traffic: Traffic::default(),
            written: 0,
            syncs: 0,
            frames: 0,
        };
        let mut quiet = 0;
        while quiet < QUIET {
            let before = step.traffic.frames;
            for node in &mut self.nodes {
                node.process.app.update();
            }
            for node in &self.nodes {
                node.shard.wait()?;
            }
            step.traffic += settle(&self.wires)?;
            step.frames += 1;
            let is_quiet = step.traffic.frames == before && self.on_the_way() == 0;
            quiet = if is_quiet { quiet + 1 } else { 0 };
        }
        step.frames -= QUIET;
        let after = self.written();
        (step.written, step.syncs) = (after.0 - written.0, after.1 - written.1);
        Ok(step)
    }

    fn written(&self) -> (u64, u64) {
        let written = self.nodes.iter().map(|node| &node.disk);
        let written = written.map(|disk| (disk.written(), disk.syncs()));
        written.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    }

    fn on_the_way(&self) -> usize {
        let worlds = self.nodes.iter().map(|node| node.process.app.world());
        worlds.map(|it| it.resource::<Zone>().on_the_way()).sum()
    }

    pub(crate) fn mail(&mut self, zone: u64, from: StableKey, to: StableKey) {
        let world = self.nodes[zone as usize].process.app.world_mut();
        if let Some(sender) = world.resource::<Zone>().entity(from) {
            let letter = Packet::new(LETTER, [0; 16]);
            world.commands().entity(sender).mail(to, letter);
            world.flush();
        }
    }

    /// Sends a letter from each zone to each other one with which it is joined.
    pub(crate) fn mail_to_all(&mut self) {
        let size = self.nodes.len() as u64;
        let senders = match self.shape {
            Shape::All => size,
            Shape::Star => 1,
        };
        for from in 0..senders {
            for to in (0..size).filter(|&to| to != from) {
                self.mail(from, entity(from, 2), entity(to, 3));
            }
        }
    }

    pub(crate) fn send(&mut self, zone_of: u64, key: StableKey, to: u64) {
        let world = self.nodes[zone_of as usize].process.app.world_mut();
        if let Some(moving) = world.resource::<Zone>().entity(key) {
            world.commands().entity(moving).move_to(zone(to));
            world.flush();
        }
    }

    /// Returns how long a frame of the first zone takes in which nothing happens.
    pub(crate) fn rest(&mut self) -> Result<Duration> {
        let frames = 200;
        let mut times = Vec::new();
        for _ in 0..frames {
            let start = Instant::now();
            self.nodes[0].process.app.update();
            times.push(start.elapsed());
            self.nodes[0].shard.wait()?;
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    /// Ends all processes. Returns what the first world has held.
    pub(crate) fn end(self) -> i64 {
        let mut nodes = self.nodes.into_iter();
        let first = nodes.next();
        first.map_or(0, |node| -measure(|| drop(node.process.app)).bytes_current)
    }
}

/// Letters and moves need the keys of zones only.
fn take_only_zones(process: &Process) {
    process.groups.permit(|_, what| match what {
        FromPeer::Key(address) => address.key.0 < FIRST_ENTITY,
        _ => true,
    });
}

fn start_node(nth: u64) -> Result<Node> {
    let disk = SimulatedDisk::new(nth);
    let shard = Shard::open_simulated(disk.clone())?;
    let plugin = shard.zone(zone(nth)).component::<Gold>("gold");
    let process = Process::start(|app: &mut App| {
        app.add_plugins(plugin);
        for n in 0..ENTITIES {
            app.world_mut().spawn((entity(nth, n), Gold(3), ears()));
        }
    });
    Ok(Node {
        process,
        shard,
        disk,
    })
}
