//! A durable journal for the entities of `bevy_due`.
//!
//! | name | what it does |
//! |---|---|
//! | [`Journal`] | keeps records in plain files, which survive torn writes |

mod crash_point;
mod disk;
mod error;
mod journal;

#[cfg(feature = "crash-points")]
pub use crash_point::{CRASH_POINTS, set_crash_hook};
#[cfg(feature = "crash-points")]
pub use disk::SimulatedDisk;
pub use disk::{Disk, DiskFile};
pub use error::JournalError;
pub use journal::{Journal, JournalId, JournalOptions, Key, Place, Record, Sync};
