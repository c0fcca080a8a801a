//! A disk in memory that loses power.

mod state;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Disk, DiskFile};
use state::{FileState, NameChange, SECTOR, State, next_random};

/// A disk in memory, for tests. It can lose power, fail and be full.
///
/// Of the bytes that were not synced, each sector of 512 bytes survives a loss of power or not, at random.
/// A sector has its old or its new bytes. The same holds for each name that was created, renamed or removed.
/// All of it follows from the seeds.
///
/// A clone is the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

impl SimulatedDisk {
    /// Creates an empty disk.
    pub fn new(seed: u64) -> Self {
        Self::with_state(State::new(seed))
    }

    fn with_state(state: State) -> Self {
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the disk as it is found after a loss of power at this moment. This one goes on.
    pub fn after_power_loss(&self, seed: u64) -> Self {
        let mut state = self.state().restarted();
        state.lose_power(seed);
        Self::with_state(state)
    }

    /// Returns the disk as it is found after the process was killed at this moment. This one goes on.
    pub fn after_kill(&self) -> Self {
        Self::with_state(self.state().restarted())
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

    /// Sets the number of bytes by which files can grow.
    pub fn set_free_bytes(&self, bytes: usize) {
        self.state().free_bytes = bytes;
    }

    /// Returns the number of operations so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Returns all files with their bytes, as a process sees them.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let files = state.names.iter();
        files
            .map(|(name, &file)| (name.clone(), state.files[file].cached.clone()))
            .collect()
    }

    /// Replaces the durable bytes of the file `name`, which is created if it is missing.
    pub fn replace(&self, name: &str, bytes: Vec<u8>) {
        let state = &mut *self.state();
        let file = *state.names.entry(name.into()).or_insert(state.files.len());
        state.synced_names.insert(name.into(), file);
        state
            .files
            .resize(state.files.len().max(file + 1), FileState::default());
        let synced = bytes.clone();
        state.files[file] = FileState {
            synced,
            cached: bytes,
            dirty: BTreeSet::new(),
        };
    }
}

impl Disk for SimulatedDisk {
    fn names(&mut self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.step()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        let file = state.files.len();
        state.rename_in_order(NameChange::Create(name.into(), file))?;
        state.files.push(FileState::default());
        Ok(Box::new(SimulatedFile {
            disk: self.clone(),
            file,
        }))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.state();
        state.step()?;
        Ok(Box::new(SimulatedFile {
            disk: self.clone(),
            file: state.find(name)?,
        }))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let file = state.find(from)?;
        state.rename_in_order(NameChange::Rename(from.into(), to.into(), file))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let file = state.find(name)?;
        state.rename_in_order(NameChange::Remove(name.into()))?;
        state.free_bytes = state
            .free_bytes
            .saturating_add(state.files[file].cached.len());
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        state.unsynced_names.clear();
        state.synced_names = state.names.clone();
        Ok(())
    }

    fn random(&mut self) -> u64 {
        next_random(&mut self.state().random)
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskFile for SimulatedFile {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut state = self.disk.state();
        state.step()?;
        Ok(state.files[self.file].cached.clone())
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        let start = offset as usize;
        let bytes = state.files[self.file].cached.get(start..start + into.len());
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let state = &mut *self.disk.state();
        let crash = state.step().err();
        let bytes = match &crash {
            None => bytes,
            // The operation that crashes. Those after it do nothing.
            Some(_) if state.operations == state.crash_after + 1 => {
                &bytes[..next_random(&mut state.random) as usize % (bytes.len() + 1)]
            }
            Some(_) => &[],
        };
        let start = offset as usize;
        let end = start + bytes.len();
        let file = &mut state.files[self.file];
        let growth = end.saturating_sub(file.cached.len());
        if growth > state.free_bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.free_bytes -= growth;
        file.cached.resize(file.cached.len() + growth, 0);
        file.cached[start..end].copy_from_slice(bytes);
        file.dirty.extend(start / SECTOR..end.div_ceil(SECTOR));
        crash.map_or(Ok(()), Err)
    }

    fn sync(&mut self) -> io::Result<()> {
        let state = &mut *self.disk.state();
        state.step()?;
        let file = &mut state.files[self.file];
        let dirty = core::mem::take(&mut file.dirty);
        if state.syncs_before_failure == 0 {
            state.syncs_before_failure = u64::MAX;
            return Err(io::Error::other("the simulated disk failed to sync"));
        }
        state.syncs_before_failure = state.syncs_before_failure.saturating_sub(1);
        for sector in dirty {
            file.write_back(sector);
        }
        Ok(())
    }
}
