//! Links in memory, which count what they carry.

use core::{ops::AddAssign, time::Duration};
use std::time::Instant;

use allocation_counter::measure;
use bevy_due::worlds::link::{Peer, PeerSettings};
use bevy_ecs::error::Result;

use crate::process::Process;

/// The place of the number of frames in a batch.
const FRAMES: core::ops::Range<usize> = 41..45;

/// What links have carried, and what that has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// The batches with frames.
    pub(crate) batches: u64,
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    /// The batches without frames.
    pub(crate) empty: u64,
    /// The bytes that the first end of each link holds now, and did not before.
    pub(crate) held: i64,
    /// The longest time in which a first end took a batch without frames. A connection begins with one.
    pub(crate) begin: Duration,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.batches += other.batches;
        self.bytes += other.bytes;
        self.frames += other.frames;
        self.empty += other.empty;
        self.held += other.held;
        self.begin = self.begin.max(other.begin);
    }
}

impl Traffic {
    pub(crate) fn note(&mut self, batch: &[u8]) -> u32 {
        let frames = batch[FRAMES].try_into().map_or(0, u32::from_le_bytes);
        match frames {
            0 => self.empty += 1,
            _ => {
                self.batches += 1;
                self.bytes += batch.len() as u64;
                self.frames += u64::from(frames);
            }
        }
        frames
    }
}

/// Two processes with a link. This thread carries everything, so nothing may wait for long.
pub(crate) struct Wire([Peer; 2]);

impl Wire {
    pub(crate) fn new(first: &Process, second: &Process) -> Self {
        let hour = Duration::from_secs(3600);
        let settings = PeerSettings {
            heartbeat: Duration::from_millis(1),
            suspect_after: hour,
            down_after: hour,
            ..PeerSettings::default()
        };
        Self::with_settings(first, second, settings)
    }

    pub(crate) fn with_settings(first: &Process, second: &Process, settings: PeerSettings) -> Self {
        let connect = |to: &Process| to.groups.handle().connect("peer", settings);
        Self([connect(first), connect(second)])
    }

    pub(crate) fn first(&self) -> &Peer {
        &self.0[0]
    }

    pub(crate) fn into_peers(self) -> [Peer; 2] {
        self.0
    }

    /// Carries what waits at both ends.
    pub(crate) fn carry(&self) -> Result<Traffic> {
        let [first, second] = &self.0;
        let mut traffic = Traffic::default();
        loop {
            let mut batch = None;
            let used = measure(|| batch = first.next_batch());
            let batch = batch.ok_or("the link is closed")?;
            traffic.held += used.bytes_current - batch.capacity() as i64;
            let frames = traffic.note(&batch);
            second.receive(&batch)?;
            if frames == 0 {
                break;
            }
        }
        loop {
            let batch = second.next_batch().ok_or("the link is closed")?;
            let frames = traffic.note(&batch);
            let mut taken = Ok(());
            let start = Instant::now();
            let used = measure(|| taken = first.receive(&batch));
            taken?;
            traffic.held += used.bytes_current;
            if frames == 0 {
                traffic.begin = traffic.begin.max(start.elapsed());
                return Ok(traffic);
            }
        }
    }
}

/// Carries what waits everywhere, until nothing comes any more.
pub(crate) fn settle(wires: &[Wire]) -> Result<Traffic> {
    let mut traffic = Traffic::default();
    let mut quiet = 0;
    while quiet < 3 {
        let before = traffic.frames;
        for wire in wires {
            traffic += wire.carry()?;
        }
        quiet = if traffic.frames == before {
            quiet + 1
        } else {
            0
        };
    }
    Ok(traffic)
}

/// Joins each two of the processes.
pub(crate) fn join_all(processes: &[Process]) -> Vec<Wire> {
    let pairs = processes.iter().enumerate();
    let pairs = pairs.flat_map(|(nth, first)| {
        let others = &processes[nth + 1..];
        others.iter().map(move |second| Wire::new(first, second))
    });
    pairs.collect()
}
