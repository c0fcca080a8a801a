//! Worlds that send each other parcels, on threads of this process or in other processes.
//!
//! An entity [posts](ext) a [`parcel`], and the [`link`] of its world takes it to the [`hub`]. The
//! hub puts it into the inbox of another world, which [receives](receive) it.

mod address;
mod ext;
mod groups;
mod hub;
mod interval;
mod link;
mod members;
mod parcel;
mod receive;
mod remote;
mod report;
mod sleep;
mod start_error;
mod world_thread;

pub(crate) use address::bind;
pub use address::{Address, StableKey};
pub use ext::{ParcelCommandsExt, ParcelEntityCommandsExt};
pub use groups::{ParcelReceiver, WorldGroups};
pub use interval::LoopInterval;
pub(crate) use link::connect;
pub use link::{Link, WorldLink};
pub use parcel::{Parcel, Refused};
#[cfg(feature = "serialize")]
pub(crate) use receive::post_reply;
pub use report::WorldReport;
pub use start_error::StartError;
