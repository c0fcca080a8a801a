//! A durable journal for the entities of `bevy_due`.
//!
//! | name | what it does |
//! |---|---|
//! | [`Journal`] | keeps records in plain files, which survive torn writes |
//! | [`Committer`] | writes the records of many frames at once, on a thread of its own, and then runs their effects |
//!
//! An effect is anything that another world or a player can see. It never runs before its frame is durable.

mod committer;
mod crash_point;
mod disk;
mod error;
mod journal;

pub use committer::{Committer, Effect, Frame, Stall, SubmitError, Submitter};
#[cfg(feature = "crash-points")]
pub use crash_point::{CRASH_POINTS, set_crash_hook};
#[cfg(feature = "crash-points")]
pub use disk::SimulatedDisk;
pub use disk::{Disk, DiskFile};
pub use error::JournalError;
pub use journal::{Journal, JournalId, JournalOptions, Place, Record, Sync};
