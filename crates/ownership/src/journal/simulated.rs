//! A disk in memory that loses power.

use core::{mem, time::Duration};
use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use redb::StorageBackend;

const SECTOR: usize = 512;

/// A disk in memory with one file, for tests. It can lose power, fail, be slow and be full.
///
/// Of the bytes that were not synced, each sector of 512 bytes survives a loss of power or not, at random.
/// A sector has its old or its new bytes. All of it follows from the seeds.
///
/// A clone is the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Clone, Debug)]
struct State {
    random: u64,
    /// The bytes that survive a loss of power.
    synced: Vec<u8>,
    /// The bytes that a process reads.
    cached: Vec<u8>,
    /// The sectors that the next sync makes durable.
    dirty: BTreeSet<usize>,
    operations: u64,
    crash_after: u64,
    written: u64,
    syncs: u64,
    syncs_before_failure: u64,
    sync_takes: Duration,
    free_bytes: usize,
}

impl SimulatedDisk {
    /// Creates an empty disk.
    pub fn new(seed: u64) -> Self {
        Self::of(State {
            random: seed,
            synced: Vec::new(),
            cached: Vec::new(),
            dirty: BTreeSet::new(),
            operations: 0,
            crash_after: u64::MAX,
            written: 0,
            syncs: 0,
            syncs_before_failure: u64::MAX,
            sync_takes: Duration::ZERO,
            free_bytes: usize::MAX,
        })
    }

    fn of(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the disk as it is found after a loss of power at this moment. This one goes on.
    pub fn after_power_loss(&self, seed: u64) -> Self {
        let mut state = self.state().restarted();
        state.lose_power(seed);
        Self::of(state)
    }

    /// Returns the disk as it is found after the process was killed at this moment. This one goes on.
    pub fn after_kill(&self) -> Self {
        Self::of(self.state().restarted())
    }

    /// Lets all operations after the next `operations` fail. A write that crashes writes a part.
    pub fn crash_after(&self, operations: u64) {
        let mut state = self.state();
        state.crash_after = state.operations.saturating_add(operations);
    }

    /// Lets the sync after the next `syncs` fail. Its bytes can be read, and are never synced.
    pub fn fail_sync_after(&self, syncs: u64) {
        self.state().syncs_before_failure = syncs;
    }

    /// Sets how long each sync takes.
    pub fn set_sync_time(&self, time: Duration) {
        self.state().sync_takes = time;
    }

    /// Sets the number of bytes by which the file can grow.
    pub fn set_free_bytes(&self, bytes: usize) {
        self.state().free_bytes = bytes;
    }

    /// Returns the number of syncs so far.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Returns the number of bytes that were written so far.
    pub fn written(&self) -> u64 {
        self.state().written
    }

    /// Returns `true` if nothing was ever written.
    pub(crate) fn is_empty(&self) -> bool {
        self.state().cached.is_empty()
    }
}

impl State {
    fn restarted(&self) -> Self {
        Self {
            operations: 0,
            crash_after: u64::MAX,
            written: 0,
            syncs: 0,
            syncs_before_failure: u64::MAX,
            sync_takes: Duration::ZERO,
            ..self.clone()
        }
    }

    /// Keeps what is durable, and some of the rest.
    fn lose_power(&mut self, seed: u64) {
        self.random ^= seed;
        // A third of the seeds lose everything or nothing, which chance alone would rarely do.
        let odds = match seed % 6 {
            0 => 0,
            1 => 100,
            _ => 50,
        };
        for sector in mem::take(&mut self.dirty) {
            if next_random(&mut self.random) % 100 < odds {
                self.write_back(sector);
            }
        }
        self.cached.clone_from(&self.synced);
    }

    fn write_back(&mut self, sector: usize) {
        let start = sector * SECTOR;
        let end = self.cached.len().min(start + SECTOR);
        if start < end {
            let len = self.synced.len().max(end);
            self.synced.resize(len, 0);
            self.synced[start..end].copy_from_slice(&self.cached[start..end]);
        }
    }

    fn step(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.operations > self.crash_after {
            return Err(io::Error::other("the simulated disk has crashed"));
        }
        Ok(())
    }

    fn grow(&mut self, len: usize) -> io::Result<()> {
        let growth = len.saturating_sub(self.cached.len());
        if growth > self.free_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.free_bytes -= growth;
        self.cached.resize(self.cached.len() + growth, 0);
        Ok(())
    }
}

impl StorageBackend for SimulatedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state();
        let start = offset as usize;
        let bytes = state.cached.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let len = len as usize;
        let freed = state.cached.len().saturating_sub(len);
        state.free_bytes = state.free_bytes.saturating_add(freed);
        state.cached.truncate(len);
        state.grow(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let takes = self.state().sync_takes;
        thread::sleep(takes);
        let state = &mut *self.state();
        state.step()?;
        let dirty = mem::take(&mut state.dirty);
        if state.syncs_before_failure == 0 {
            state.syncs_before_failure = u64::MAX;
            return Err(io::Error::other("the simulated disk failed to sync"));
        }
        state.syncs_before_failure = state.syncs_before_failure.saturating_sub(1);
        state.syncs += 1;
        let len = state.cached.len();
        state.synced.resize(len, 0);
        for sector in dirty {
            state.write_back(sector);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let state = &mut *self.state();
        let crash = state.step().err();
        let data = match &crash {
            None => data,
            // The operation that crashes. Those after it do nothing.
            Some(_) if state.operations == state.crash_after + 1 => {
                &data[..next_random(&mut state.random) as usize % (data.len() + 1)]
            }
            Some(_) => &[],
        };
        let start = offset as usize;
        let end = start + data.len();
        state.grow(end)?;
        state.written += data.len() as u64;
        state.cached[start..end].copy_from_slice(data);
        state.dirty.extend(start / SECTOR..end.div_ceil(SECTOR));
        crash.map_or(Ok(()), Err)
    }
}

/// Splitmix64: short, and equal everywhere.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
