//! The operations that a journal needs of a disk.

mod directory;
#[cfg(feature = "crash-points")]
mod simulated;

use core::fmt::Debug;
use std::{io, path::PathBuf};

pub(crate) use directory::Directory;
#[cfg(feature = "crash-points")]
pub use simulated::SimulatedDisk;

/// A directory of files, as a journal uses it.
///
/// A change is durable after a sync only: of the file for its bytes, of the names for new, renamed and
/// removed files.
pub trait Disk: Debug + Send {
    /// Returns the names of all files.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, as all other methods do.
    fn names(&mut self) -> io::Result<Vec<String>>;

    /// Creates an empty file, and replaces the file of that name, if any.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to read and write it.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn open(&mut self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file at once, or not at all.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Makes created, renamed and removed names durable.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn sync_names(&mut self) -> io::Result<()>;

    /// Returns a random number.
    fn random(&mut self) -> u64;

    /// Returns the path of a file for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// An open file of a [`Disk`].
pub trait DiskFile: Debug + Send {
    /// Reads the whole file.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Reads as many bytes as `into` has, from `offset` on.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system, or `UnexpectedEof`.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` from `offset` on.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes the bytes written so far durable.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system. The bytes may then be lost although they can be read:
    /// a second sync proves nothing.
    fn sync(&mut self) -> io::Result<()>;
}
