//! Why a journal could not be opened or written.

use core::fmt;
use std::{io, path::PathBuf, sync::Arc};

/// The reason why a journal could not be opened or written.
///
/// After any error but [`Full`](JournalError::Full) the journal writes nothing more: open it again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process, or another journal of this process, has the directory open.
    InUse {
        /// The directory of the journal.
        directory: PathBuf,
    },
    /// A file has changed since it was written and synced, or is missing.
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// The position in the file from which it cannot be read, in bytes.
        offset: u64,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A newer release has written the file.
    Newer {
        /// The file.
        file: PathBuf,
        /// The version of its format.
        version: u16,
    },
    /// A newer release has written a record of a kind that this release does not know.
    UnknownRecord {
        /// The file.
        file: PathBuf,
        /// The position of the record's batch in the file, in bytes.
        offset: u64,
        /// The number of the kind.
        tag: u8,
    },
    /// The disk has no space for the next segment. Nothing is lost: append again later.
    Full {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        error: Arc<io::Error>,
    },
    /// The operating system failed to read, write or sync a file.
    Io {
        /// The file.
        file: PathBuf,
        /// The operation that failed.
        operation: &'static str,
        /// The error of the operating system.
        error: Arc<io::Error>,
    },
    /// The records of one batch are larger than 1 GiB.
    TooLarge {
        /// The size of the batch, in bytes.
        bytes: u64,
    },
    /// An effect of a frame panicked on the thread of the committer.
    EffectPanicked,
    /// The committer was closed.
    Closed,
}

impl JournalError {
    pub(crate) fn io(file: PathBuf, operation: &'static str, error: io::Error) -> Self {
        Self::Io {
            file,
            operation,
            error: Arc::new(error),
        }
    }

    /// Like [`io`](Self::io), for operations that can be repeated when there is space again.
    pub(crate) fn no_space_or_io(file: PathBuf, operation: &'static str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full {
                file,
                error: Arc::new(error),
            },
            _ => Self::io(file, operation, error),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { directory } => write!(
                f,
                "the journal in {} is in use: stop the process that has it open, or choose another directory",
                directory.display()
            ),
            Self::Damaged {
                file,
                offset,
                reason,
            } => write!(
                f,
                "{} is damaged at byte {offset}: {reason}; check the disk, and restore the whole directory \
                 from a copy",
                file.display()
            ),
            Self::Newer { file, version } => write!(
                f,
                "{} has version {version} of the format, and this release knows version {}: start the \
                 release that wrote it, or a newer one",
                file.display(),
                crate::journal::VERSION
            ),
            Self::UnknownRecord { file, offset, tag } => write!(
                f,
                "{} has a record of the unknown kind {tag} in the batch at byte {offset}: start the release \
                 that wrote it, or a newer one",
                file.display()
            ),
            Self::Full { file, error } => {
                write!(
                    f,
                    "no space for {}: {error}; free some space on its disk",
                    file.display()
                )
            }
            Self::Io {
                file,
                operation,
                error,
            } => write!(
                f,
                "could not {operation} {}: {error}; check the disk, then open the journal again",
                file.display()
            ),
            Self::TooLarge { bytes } => write!(
                f,
                "the records of one batch have {bytes} bytes, more than {}: commit fewer or smaller entities \
                 at once",
                crate::journal::MAX_BATCH_BYTES
            ),
            Self::Closed => f.write_str("the committer was closed"),
            Self::EffectPanicked => f.write_str(
                "an effect panicked, and the committer has stopped: see the message of the panic",
            ),
        }
    }
}

impl core::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Full { error, .. } | Self::Io { error, .. } => Some(&**error),
            _ => None,
        }
    }
}
