//! A disk in memory that counts what is written.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{io, path::PathBuf, sync::Arc};

use bevy_due_ownership::{Disk, DiskFile, SimulatedDisk};

/// A disk in memory that counts the bytes and the syncs of its files.
#[derive(Clone, Debug)]
pub(crate) struct CountingDisk {
    disk: SimulatedDisk,
    written: Arc<Written>,
}

#[derive(Debug, Default)]
struct Written {
    bytes: AtomicU64,
    syncs: AtomicU64,
}

#[derive(Debug)]
struct CountingFile {
    file: Box<dyn DiskFile>,
    written: Arc<Written>,
}

impl CountingDisk {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            disk: SimulatedDisk::new(seed),
            written: Arc::default(),
        }
    }

    /// Returns the bytes that were written so far, and the number of syncs.
    pub(crate) fn written(&self) -> (u64, u64) {
        let Written { bytes, syncs } = &*self.written;
        (bytes.load(Relaxed), syncs.load(Relaxed))
    }

    fn counting(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let written = self.written.clone();
        Box::new(CountingFile { file, written })
    }
}

impl Disk for CountingDisk {
    fn names(&mut self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.create(name)?;
        Ok(self.counting(file))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = self.disk.open(name)?;
        Ok(self.counting(file))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.disk.sync_names()
    }

    fn random(&mut self) -> u64 {
        self.disk.random()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

impl DiskFile for CountingFile {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.file.read()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, into)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.written.bytes.fetch_add(bytes.len() as u64, Relaxed);
        self.file.write_at(offset, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.written.syncs.fetch_add(1, Relaxed);
        self.file.sync()
    }
}
