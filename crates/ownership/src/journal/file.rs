//! The file under a database: its lock, its creation and its errors.

#[cfg(feature = "simulated-disk")]
use super::simulated::SimulatedDisk;
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use redb::{Builder, Database, DatabaseError, StorageBackend, StorageError, backends::FileBackend};

use super::{ID_PREFIX, JournalId};
use crate::error::JournalError;

/// The memory for pages that were read or written, in bytes.
const CACHE_BYTES: usize = 16 << 20;

const PAGE: usize = 4096;

/// A file that this process has locked.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    File(File),
    #[cfg(feature = "simulated-disk")]
    Simulated(SimulatedDisk),
}

impl JournalFile {
    /// Creates a file under a preliminary name, fills it, and renames it.
    pub(super) fn create(
        path: &Path,
        fill: impl FnOnce(&Self) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        if path.exists() {
            return Err(JournalError::Exists { file: path.into() });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let unfinished = PathBuf::from(name);
        let failed = |error| JournalError::io(path.into(), "create", error);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = lock(&unfinished, options.truncate(false))?;
        // An attempt that was interrupted may have left something.
        file.set_len(0).map_err(failed)?;
        fill(&Self::new(&unfinished, file))?;
        fs::rename(&unfinished, path).map_err(failed)?;
        sync_directory(path).map_err(failed)
    }

    /// Opens an existing file.
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let file = lock(path, OpenOptions::new().read(true).write(true))?;
        let file = Self::new(path, file);
        match path.metadata() {
            Ok(metadata) if metadata.len() == 0 => Err(file.damaged("it is empty".into())),
            _ => Ok(file),
        }
    }

    fn new(path: &Path, file: File) -> Self {
        Self {
            path: path.into(),
            storage: Storage::File(file),
        }
    }

    #[cfg(feature = "simulated-disk")]
    pub(super) fn simulated(disk: SimulatedDisk) -> Self {
        Self {
            path: "the simulated disk".into(),
            storage: Storage::Simulated(disk),
        }
    }

    /// Opens the database in the file, and checks each page.
    pub(super) fn database(&self) -> Result<Database, JournalError> {
        let mut builder = Builder::new();
        builder
            .set_cache_size(CACHE_BYTES)
            .set_check_integrity_on_open(true);
        let database = match &self.storage {
            Storage::File(file) => {
                let file = file.try_clone().map_err(StorageError::Io);
                let backend = file.map_err(DatabaseError::from).and_then(FileBackend::new);
                backend.and_then(|backend| open_rewritten(&builder, Synced(backend)))
            }
            #[cfg(feature = "simulated-disk")]
            Storage::Simulated(disk) => open_rewritten(&builder, disk.clone()),
        };
        database.map_err(|error| self.error("open", error))
    }

    pub(super) fn error(
        &self,
        operation: &'static str,
        error: impl Into<redb::Error>,
    ) -> JournalError {
        let file = self.path.clone();
        match error.into() {
            redb::Error::Io(error) if is_damage(&error) => self.damaged(error.to_string()),
            redb::Error::Io(error) => JournalError::no_space_or_io(file, operation, error),
            redb::Error::Corrupted(reason) => self.damaged(reason),
            redb::Error::UpgradeRequired(version) => self.newer(format!("of redb {version}")),
            error => JournalError::io(file, operation, io::Error::other(error)),
        }
    }

    pub(super) fn newer(&self, version: String) -> JournalError {
        JournalError::Newer {
            file: self.path.clone(),
            version,
        }
    }

    pub(super) fn damaged(&self, reason: String) -> JournalError {
        JournalError::Damaged {
            file: self.path.clone(),
            journal: find_id(&self.path),
            reason,
        }
    }
}

/// Opens a file that nobody else has open.
fn lock(path: &Path, options: &OpenOptions) -> Result<File, JournalError> {
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => JournalError::Missing { file: path.into() },
        _ => JournalError::io(path.into(), "open", error),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { file: path.into() }),
        Err(TryLockError::Error(error)) => Err(JournalError::io(path.into(), "lock", error)),
    }
}

/// Opens a database after it has written each page again. If a sync failed in the process before, the operating system
/// shows pages that are not on the disk, and another sync alone would not change that.
fn open_rewritten(
    builder: &Builder,
    backend: impl StorageBackend,
) -> Result<Database, DatabaseError> {
    let len = backend.len()?;
    let mut chunk = vec![0; 1 << 20];
    for start in (0..len).step_by(chunk.len()) {
        let chunk = &mut chunk[..(len - start).min(1 << 20) as usize];
        backend.read(start, chunk)?;
        for (nth, page) in chunk.chunks(PAGE).enumerate() {
            // Pages that were never written take no space.
            if page.iter().any(|&byte| byte != 0) {
                backend.write(start + (nth * PAGE) as u64, page)?;
            }
        }
    }
    if len > 0 {
        backend.sync_data()?;
    }
    builder.create_with_backend(backend)
}

/// Returns `true` for an error of reading that says something of the bytes and not of the disk.
fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    matches!(error.kind(), InvalidData | UnexpectedEof)
}

/// Looks for the id in the bytes of a damaged file.
fn find_id(path: &Path) -> Option<JournalId> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
    let prefix = ID_PREFIX.as_bytes();
    let mut ids = bytes.windows(prefix.len() + 32);
    let id = ids.find_map(|bytes| bytes.strip_prefix(prefix))?;
    let id = core::str::from_utf8(id).ok()?;
    u128::from_str_radix(id, 16).ok().map(JournalId)
}

/// Makes the name of a new file durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// A file of redb. A sync that finds no space is no error that can be repeated: the operating system may have
/// dropped what it could not write.
#[derive(Debug)]
struct Synced(FileBackend);

impl StorageBackend for Synced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.0.sync_data();
        synced.map_err(|error| io::Error::other(format!("sync failed: {error}")))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}
