//! What a simulated disk holds, and what it loses.

use core::mem;
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

pub(super) const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) random: u64,
    pub(super) files: Vec<FileState>,
    pub(super) names: BTreeMap<String, usize>,
    pub(super) synced_names: BTreeMap<String, usize>,
    pub(super) unsynced_names: Vec<NameChange>,
    pub(super) operations: u64,
    pub(super) crash_after: u64,
    pub(super) syncs_before_failure: u64,
    pub(super) free_bytes: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct FileState {
    /// The bytes that survive a loss of power.
    pub(super) synced: Vec<u8>,
    /// The bytes that a process reads.
    pub(super) cached: Vec<u8>,
    /// The sectors that the next sync makes durable.
    pub(super) dirty: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Create(String, usize),
    Rename(String, String, usize),
    Remove(String),
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: seed,
            files: Vec::new(),
            names: BTreeMap::new(),
            synced_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            operations: 0,
            crash_after: u64::MAX,
            syncs_before_failure: u64::MAX,
            free_bytes: usize::MAX,
        }
    }

    pub(super) fn restarted(&self) -> Self {
        let is_named = |file| {
            let changed = |change: &NameChange| match change {
                NameChange::Create(_, named) | NameChange::Rename(_, _, named) => *named == file,
                NameChange::Remove(_) => false,
            };
            self.names
                .values()
                .chain(self.synced_names.values())
                .any(|&named| named == file)
                || self.unsynced_names.iter().any(changed)
        };
        let files = self.files.iter().enumerate();
        let kept = files.map(|(place, file)| {
            if is_named(place) {
                file.clone()
            } else {
                FileState::default()
            }
        });
        Self {
            random: self.random,
            files: kept.collect(),
            names: self.names.clone(),
            synced_names: self.synced_names.clone(),
            unsynced_names: self.unsynced_names.clone(),
            operations: 0,
            crash_after: u64::MAX,
            syncs_before_failure: u64::MAX,
            free_bytes: self.free_bytes,
        }
    }

    /// Keeps what is durable, and some of the rest.
    pub(super) fn lose_power(&mut self, seed: u64) {
        self.random ^= seed;
        // A third of the seeds lose everything or nothing, which chance alone would rarely do.
        let odds = match seed % 6 {
            0 => 0,
            1 => 100,
            _ => 50,
        };
        let survives = |random: &mut u64| next_random(random) % 100 < odds;
        for file in &mut self.files {
            for sector in mem::take(&mut file.dirty) {
                if survives(&mut self.random) {
                    file.write_back(sector);
                }
            }
            file.cached.clone_from(&file.synced);
        }
        for change in mem::take(&mut self.unsynced_names) {
            if survives(&mut self.random) {
                change.apply(&mut self.synced_names);
            }
        }
        self.names.clone_from(&self.synced_names);
    }

    pub(super) fn step(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.operations > self.crash_after {
            return Err(io::Error::other("the simulated disk has crashed"));
        }
        Ok(())
    }

    pub(super) fn rename_in_order(&mut self, change: NameChange) -> io::Result<()> {
        self.step()?;
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> io::Result<usize> {
        self.names
            .get(name)
            .copied()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, file) => _ = names.insert(name.clone(), *file),
            Self::Rename(from, to, file) => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
            Self::Remove(name) => _ = names.remove(name),
        }
    }
}

impl FileState {
    pub(super) fn write_back(&mut self, sector: usize) {
        let start = sector * SECTOR;
        let end = self.cached.len().min(start + SECTOR);
        if self.synced.len() < end {
            self.synced.resize(end, 0);
        }
        self.synced[start..end].copy_from_slice(&self.cached[start..end]);
    }
}

/// Splitmix64: short, and equal everywhere.
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
