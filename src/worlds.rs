//! Worlds: headless apps that send each other parcels, on threads of this process or in others.
//!
//! [`WorldGroups`] starts worlds in named groups. Their entities post [`Parcel`]s, with
//! [`ParcelCommandsExt`] and [`ParcelEntityCommandsExt`]. A [`link`] carries them to other processes. The
//! [guide](crate::guide::worlds) shows all of it.

// The way of a parcel: an entity posts it (`ext`), and the `world_link` of its world takes it to the
// `hub`. The hub puts it into the inbox of another world, or into the queue of another process
// (`remote`). A `link` carries it there, and hands it to the hub of that process.
mod address;
mod ext;
mod groups;
mod handle;
mod hub;
pub mod link;
mod members;
mod news;
mod parcel;
mod remote;
mod sleep;
mod world_link;
mod world_thread;

pub(crate) use address::bind;
pub use address::{Address, StableKey};
pub use ext::{ParcelCommandsExt, ParcelEntityCommandsExt};
pub use groups::WorldGroups;
pub use handle::GroupsHandle;
#[cfg(feature = "serialize")]
pub(crate) use parcel::post_reply;
pub use parcel::{Parcel, Refused};
pub use sleep::LoopInterval;
pub(crate) use sleep::restore_max_delta;
pub use world_link::WorldLink;
pub(crate) use world_link::connect;
pub use world_thread::{StartError, WorldReport};
