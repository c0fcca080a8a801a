//! Worlds that send each other parcels, on threads of this process or in other processes.
//!
//! An entity [posts](ext) a [`parcel`], and the [link](world_link) of its world takes it to the [`hub`].
//! The hub puts it into the inbox of another world, which [receives](receive) it, or into the queue of
//! another [process](remote). A [`link`] carries it there, and a [`peer`] hands it to the hub of that
//! process.

mod address;
mod claim;
mod effect;
mod ext;
mod filter;
mod groups;
mod handle;
mod hub;
mod interval;
mod link;
mod members;
mod news;
mod parcel;
mod peer;
mod receive;
mod refusal;
mod remote;
mod report;
mod sleep;
mod start_error;
mod undelivered;
mod world_link;
mod world_thread;

pub(crate) use address::bind;
pub use address::{Address, StableKey};
pub use effect::Effect;
pub use ext::{ParcelCommandsExt, ParcelEntityCommandsExt};
pub use filter::FromPeer;
pub use groups::WorldGroups;
pub use handle::GroupsHandle;
pub use interval::LoopInterval;
pub use link::Link;
pub use news::{HasRoom, Liveness, PeerChanged};
pub use parcel::{Parcel, Refused};
pub use peer::Peer;
#[cfg(feature = "serialize")]
pub(crate) use receive::post_reply;
pub use remote::{BatchError, PeerSettings};
pub use report::WorldReport;
pub use start_error::StartError;
pub use world_link::WorldLink;
pub(crate) use world_link::connect;
