//! Why the file of a shard could not be opened or written.

use std::{io, path::PathBuf, sync::Arc, time::Instant};

use thiserror::Error;

use crate::ids::JournalId;

/// What is left to do if a file is lost.
const IF_LOST: &str = "If it is lost, make a new shard of a copy with `Shard::restore`, or begin anew with \
                       `Shard::create`. Other shards take back what was on its way to it with `Shard::reclaim`";

/// The reason why the file of a shard could not be created, opened or written.
///
/// After any error but [`Full`](JournalError::Full) the shard writes nothing more: open it again.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum JournalError {
    /// There is no file to open.
    #[error(
        "there is no file {}: create a new shard with `Shard::create`. If there was one, bring it back. {IF_LOST}: \
         its id is in the log of its last start",
        file.display()
    )]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// There is a file already where one was to be created.
    #[error(
        "there is a file {} already: open it with `Shard::open`, or choose another name", file.display()
    )]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// Another process, or another shard of this process, has the file open.
    #[error("{} is in use: stop the process that has it open, or choose another file", file.display())]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// The file is not as it was written: a part is missing or has changed.
    #[error(
        "{} is damaged: {reason}. Check the disk. {IF_LOST}{}",
        file.display(),
        match journal {
            Some(id) => format!("({id})"),
            None => ": its id is in the log of its last start".into(),
        }
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The id of the shard, if it can still be found in the file.
        journal: Option<JournalId>,
        /// What is wrong.
        reason: String,
    },
    /// A release with another format has written the file.
    #[error(
        "{} has the format {version}, which this release does not know: start the release that wrote it",
        file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// The version of its format.
        version: String,
    },
    /// The disk has no space. Nothing is lost: the shard tries again.
    #[error("no space for {}: {error}; free some space on its disk", file.display())]
    Full {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        #[source]
        error: Arc<io::Error>,
    },
    /// The operating system failed to read, write or sync a file.
    #[error(
        "could not {operation} {}: {error}; check the disk and the permissions, then open the shard again",
        file.display()
    )]
    Io {
        /// The file.
        file: PathBuf,
        /// The operation that failed.
        operation: &'static str,
        /// The error of the operating system.
        #[source]
        error: Arc<io::Error>,
    },
    /// The disk has not answered for too long.
    #[error(
        "the disk has not answered for {} seconds: check it, then start the shard again. Nobody has seen what was not \
         stored",
        since.elapsed().as_secs()
    )]
    Hangs {
        /// Since when it has not.
        since: Instant,
    },
    /// The shard was closed.
    #[error("the shard was closed")]
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
