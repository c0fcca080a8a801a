//! A directory of the file system.

use core::hash::BuildHasher;
use std::{
    collections::hash_map::RandomState,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::{Disk, DiskFile};
use crate::error::JournalError;

/// A directory of the file system, which no other process can open as a journal.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The lock ends with the file, also when the process is killed.
    _lock: File,
}

const LOCK: &str = "journal.lock";

impl Directory {
    /// Creates the directory if it is missing, and locks it.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |error| JournalError::no_space_or_io(path.into(), "create", error);
        fs::create_dir_all(path).map_err(failed)?;
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path.join(LOCK))
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.into(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse {
                directory: path.into(),
            }),
            Err(TryLockError::Error(error)) => {
                Err(JournalError::io(path.join(LOCK), "lock", error))
            }
        }
    }
}

impl Disk for Directory {
    fn names(&mut self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // The journal has no file whose name is not UTF-8.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let path = self.path.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        Ok(Box::new(file))
    }

    fn open(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))?;
        Ok(Box::new(file))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&mut self) -> io::Result<()> {
        // Windows does not open directories as files, and NTFS logs the names itself.
        if cfg!(unix) {
            File::open(&self.path)?.sync_all()
        } else {
            Ok(())
        }
    }

    fn random(&mut self) -> u64 {
        // The keys of the standard library's hash maps come from the operating system.
        RandomState::new().hash_one(0)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl DiskFile for File {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.seek(SeekFrom::Start(0))?;
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.read_exact(into)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}
